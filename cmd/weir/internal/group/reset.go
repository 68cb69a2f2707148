package group

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"
	"github.com/spf13/cobra"

	"github.com/weir-go/weir/cmd/weir/internal/awsconf"
	"github.com/weir-go/weir/cmd/weir/internal/cli"
	"github.com/weir-go/weir/cmd/weir/internal/explain"
	"github.com/weir-go/weir/cmd/weir/internal/figures"
	"github.com/weir-go/weir/cmd/weir/internal/records"
	"github.com/weir-go/weir/cmd/weir/internal/shardlag"
	"github.com/weir-go/weir/cmd/weir/internal/stores"
	"github.com/weir-go/weir/cmd/weir/internal/target"
	"github.com/weir-go/weir/internal/change"
	"github.com/weir-go/weir/internal/operate"
	"github.com/weir-go/weir/internal/streams"
	"github.com/weir-go/weir/lease"
	"github.com/weir-go/weir/shard"
)

// guard contains the flags and checks of all commands that change progress.
type guard struct {
	yes   bool
	dump  string
	watch target.WatchFlag
}

func (g *guard) register(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&g.yes, "yes", false, "do not ask")
	g.watch.Register(cmd, "how long to look whether workers send heartbeats, by default until all that do not count as dead")
}

func (g *guard) registerDump(cmd *cobra.Command) {
	cmd.Flags().StringVar(&g.dump, "dump", "", "`FILE` for the previous progress (default weir-APP-TIME.ndjson in the current directory)")
}

func (g *guard) check(cmd *cobra.Command, t cli.Terminal) error {
	if err := g.watch.Check(false); err != nil {
		return err
	}
	return cli.CanConfirm(cmd, t, g.yes)
}

type resetOptions struct {
	target.Flags
	guard
	out     cli.Format
	to      string
	streams []string
	shard   string
	running bool
	dry     bool
}

func resetCommand(t cli.Terminal) *cobra.Command {
	var o resetOptions
	cmd := &cobra.Command{
		Use:   "reset --app NAME --store URL --to WHERE",
		Short: "Move checkpoints: read again, or skip",
		Long: `Moves the checkpoints of an application, of some of its streams, or of one
shard: to the oldest record, to the latest, to a time, back by a duration, or,
for one shard, to a sequence number as in the column CHECKPOINT (NUMBER is the
position after that record, NUMBER+0 the position before it).

For a whole stream, every shard that can still be read is moved, finished shards
are opened again, and shards without a lease get one. Children wait again for
the end of their parents, so the order of each key is kept. The latest position
is the service's present time: open shards start there, and closed shards are
finished.

For one shard, its descendants move too, because their records are newer: to the
same place, or, with a sequence number, to their beginning. With "latest" only
the one shard moves.

Handlers that get their start position from a sink (ShardHandlers.Position or PullHandler.Position)
follow the sink and not the checkpoint. Reset the sink as well.

The command refuses while workers run, unless --while-running takes the leases
from them. It shows what it will do, asks for confirmation, and first writes the
previous progress to a file, which "weir group import --replace" restores. A
lease is changed only if it is as shown. The command reports leases that have
changed since, and can be run again.`,
		Example: `  weir group reset --app billing --store sqlite:billing.db --to 2h --dry-run
  weir group reset --app billing --store sqlite:billing.db --to oldest
  weir group reset --app billing --store dynamodb:weir --stream clicks --to 2026-01-31T12:00:00Z
  weir group reset --app billing --store dynamodb:weir --stream clicks --to latest --yes --dump before.ndjson`,
		Args: cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			url, err := o.URL(cmd, "app", "to")
			if err != nil {
				return err
			}
			wish, ago, err := parseTo(o.to)
			if err != nil {
				return err
			}
			if err := awsconf.CheckStreams(o.streams...); err != nil {
				return err
			}
			if cmd.Flags().Changed("shard") {
				if wish.Shard, err = o.ofOneStream(); err != nil {
					return err
				}
			}
			switch {
			case wish.To.Kind() == shard.Sequence && o.shard == "":
				return cli.Usagef("--to %s is a sequence number, which belongs to one shard: add --shard", o.to)
			}
			if o.dry {
				o.yes = true
			}
			if err := o.check(cmd, t); err != nil {
				return err
			}
			return o.run(cmd.Context(), t, url, wish, ago)
		},
	}
	o.Flags.Register(cmd)
	cmd.Flags().StringVar(&o.to, "to", "", "`WHERE`: oldest, latest, a time (2026-01-31T12:00:00Z), how long ago (15m), or a sequence number with --shard")
	cli.MustComplete(cmd, "to", "oldest\tthe oldest record in the stream", "latest\trecords that arrive from now on", "15m\tthe last quarter of an hour")
	cmd.Flags().StringArrayVar(&o.streams, "stream", nil, "only this stream, by `NAME` or ARN; may be repeated (default: every stream with leases)")
	cmd.Flags().StringVar(&o.shard, "shard", "", "only this shard and its descendants, by `ID` "+records.ShardHelp)
	cmd.Flags().BoolVar(&o.running, "while-running", false, "reset also while workers run: they lose the leases and start again at the new position")
	cmd.Flags().BoolVar(&o.dry, "dry-run", false, "show the changes and do nothing")
	o.guard.register(cmd)
	o.registerDump(cmd)
	o.out.Register(cmd, "output format")
	return cmd
}

// ofOneStream returns the ID of the shard in --shard. If the value also names a stream, that stream
// is used as --stream.
func (o *resetOptions) ofOneStream() (id string, err error) {
	switch len(o.streams) {
	case 0:
		id, stream, err := records.ParseShard(o.shard)
		if stream != "" {
			o.streams = []string{stream}
		}
		return id, err
	case 1:
		return records.ParseShardOf(o.streams[0], o.shard)
	}
	return "", cli.Usagef("--shard is a shard of one --stream, not of %d", len(o.streams))
}

// parseTo parses the value of --to.
func parseTo(s string) (w change.Wish, ago *time.Duration, err error) {
	if w, ago, err = change.ParseTo(s); err != nil {
		return w, nil, cli.Usagef("--to %v", err)
	}
	return w, ago, nil
}

// resetReport is the output of group reset.
type resetReport struct {
	App   string     `json:"app"`
	Dump  string     `json:"dump,omitempty"` // file with the progress before the reset
	Steps []stepInfo `json:"steps"`
}

func (o *resetOptions) run(ctx context.Context, t cli.Terminal, url stores.URL, wish change.Wish, ago *time.Duration) error {
	store, err := url.Open(ctx, t, &o.AWS, false, false)
	if err != nil {
		return err
	}
	defer func() { _ = store.Close() }() // the writes are complete, so an error does not matter
	view, err := store.ReadApp(ctx, o.App)
	if err != nil {
		return err
	}
	if len(view.Leases)+len(view.Workers)+len(view.Paused) == 0 {
		if err := o.CheckNew(); err != nil {
			return err
		}
	}
	if len(o.streams) == 0 {
		if o.streams = target.StreamsOf(view.Leases); len(o.streams) == 0 {
			return fmt.Errorf("application %s has no leases in that store: check --app and --store, or name a --stream to prepare it before its first worker", o.App)
		}
	}
	if o.shard != "" && len(o.streams) > 1 {
		return cli.Usagef("application %s reads %s: add --stream with the stream of --shard %s", o.App, cli.List(o.streams), o.shard)
	}
	if !o.running && !o.dry {
		if err := target.RefuseWhileRunning(ctx, t, store, o.App, view, o.watch.UntilDead(view)); err != nil {
			return orWhileRunning(err)
		}
	}
	client, err := o.AWS.Kinesis(ctx, t)
	if err != nil {
		return err
	}
	var steps []change.Step
	for _, name := range o.streams {
		more, err := resetStream(ctx, t, client, name, view.Leases, wish, ago)
		if err != nil {
			return err
		}
		steps = append(steps, more...)
	}
	report := resetReport{App: o.App}
	n := toDo(steps)
	if o.out == cli.FormatText {
		fmt.Fprint(t.Out, stepsText(steps))
	}
	if n > 0 && !o.dry {
		if !o.yes {
			if err := cli.Confirm(ctx, t, fmt.Sprintf("Move %s of %s?", cli.Count(n, "checkpoint"), o.App), "yes"); err != nil {
				return err
			}
		}
		if report.Dump, err = target.DumpProgress(o.App, view, o.dump, time.Now()); err != nil {
			return fmt.Errorf("nothing was changed, because the current progress could not be saved: %w", err)
		}
		t.Note("the progress as it was is in %s; \"weir group import --replace\" brings it back", report.Dump)
		t.Note("handlers that ask their sink where reading begins go by the sink, not by these checkpoints")
	}
	var out outcome
	if !o.dry {
		out = carryOut(ctx, t, store, o.App, steps)
	}
	report.Steps = stepInfos(steps, out.State)
	if o.out == cli.FormatJSON {
		err = json.NewEncoder(t.Out).Encode(report)
	} else {
		err = report.conclude(t, out, n, o.dry)
	}
	return errors.Join(out.failure("moved"), err)
}

func (r resetReport) conclude(t cli.Terminal, out outcome, n int, dry bool) (err error) {
	switch {
	case dry:
		err = cli.Textf(t.Out, "\n%s would move; nothing was changed.\n", cli.Count(n, "checkpoint"))
	case n == 0:
		err = cli.Textf(t.Out, "\nEverything is there already.\n")
	default:
		err = cli.Textf(t.Out, "\n%s moved.\n", cli.Count(out.Done, "checkpoint"))
		for _, s := range r.Steps {
			if s.State == string(operate.Meanwhile) || s.State == string(operate.Left) {
				err = errors.Join(err, cli.Textf(t.Out, "%s/%s: %s\n", s.Stream, records.ShortID(s.Shard), s.State))
			}
		}
	}
	return err
}

func orWhileRunning(err error) error {
	var running target.RunningError
	if errors.As(err, &running) {
		return fmt.Errorf("%w, or give --while-running to take the leases from them", err)
	}
	return err
}

// resetStream queries a stream, and returns the steps that fulfil the wish for this stream.
func resetStream(ctx context.Context, t cli.Terminal, client *kinesis.Client, name string, leases []lease.Lease, wish change.Wish, ago *time.Duration) ([]change.Step, error) {
	about, err := awsconf.AskStream(ctx, client, name)
	if err != nil {
		return nil, fmt.Errorf("stream %s: %w", name, err)
	}
	if about.Denied != nil {
		t.Note("when stream %s was created stays unknown: %s", name, explain.Error(about.Denied))
	}
	if wish.Shard != "" && !slices.ContainsFunc(about.Shards, func(s shard.Shard) bool { return s.ID == wish.Shard }) {
		return nil, fmt.Errorf("stream %s has no shard %s: it has %s", about.Name, wish.Shard, streams.ShardNames(about.Shards))
	}
	if ago != nil {
		wish.To = shard.At(about.Now.Add(-*ago))
	}
	switch wish.To.Kind() {
	case shard.Time:
		if at := wish.To.Time(); about.Retention > 0 && at.Before(about.Now.Add(-about.Retention)) {
			t.Note("stream %s keeps %s of records: reading begins with the oldest one that is there", about.Name, figures.Duration(about.Retention))
		}
	case shard.Sequence:
		in := shardlag.IteratorAt(wish.To)
		in.StreamName, in.StreamARN = awsconf.NameOrARN(name)
		in.ShardId = aws.String(wish.Shard)
		if _, err := client.GetShardIterator(ctx, in); err != nil {
			return nil, fmt.Errorf("--to %s: the service does not take it for shard %s of stream %s: %w", wish.To, wish.Shard, about.Name, err)
		}
	}
	return change.Reset(about.Stream, leases, wish)
}
