package group

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/weir-go/weir/cmd/weir/internal/awsconf"
	"github.com/weir-go/weir/cmd/weir/internal/cli"
	"github.com/weir-go/weir/cmd/weir/internal/records"
	"github.com/weir-go/weir/cmd/weir/internal/stores"
	"github.com/weir-go/weir/cmd/weir/internal/target"
	"github.com/weir-go/weir/internal/change"
	"github.com/weir-go/weir/internal/operate"
	"github.com/weir-go/weir/internal/streams"
)

type pruneOptions struct {
	target.Flags
	guard
	out     cli.Format
	streams []string
	dry     bool
}

func pruneCommand(t cli.Terminal) *cobra.Command {
	var o pruneOptions
	cmd := &cobra.Command{
		Use:   "prune --app NAME --store URL",
		Short: "Delete the leases of shards that are gone",
		Long: `Deletes the leases of shards that have left their streams, and of streams that
do not exist any more. Workers delete finished leases themselves, some minutes
after a shard has left. A lease that was not finished stays as a sign that
records were lost, until this command or "weir group delete" removes it.

The command refuses while workers run, because their leader may still have a
listing that contains such a shard, and would create its lease again. It shows
what it will do, asks for confirmation, and first writes the progress to a file.`,
		Example: `  weir group prune --app billing --store dynamodb:weir --dry-run
  weir group prune --app billing --store dynamodb:weir --stream orders --yes`,
		Args: cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			url, err := o.URL(cmd, "app")
			if err != nil {
				return err
			}
			if err := awsconf.CheckStreams(o.streams...); err != nil {
				return err
			}
			if o.dry {
				o.yes = true
			}
			if err := o.check(cmd, t); err != nil {
				return err
			}
			return o.run(cmd.Context(), t, url)
		},
	}
	o.Flags.Register(cmd)
	f := cmd.Flags()
	f.StringArrayVar(&o.streams, "stream", nil, "only this stream, by `NAME` or ARN; may be repeated (default: every stream with leases)")
	f.BoolVar(&o.dry, "dry-run", false, "show the changes and do nothing")
	o.guard.register(cmd)
	o.registerDump(cmd)
	o.out.Register(cmd, "output format")
	return cmd
}

func (o *pruneOptions) run(ctx context.Context, t cli.Terminal, url stores.URL) error {
	store, view, err := o.Open(ctx, t, url)
	if err != nil {
		return err
	}
	defer func() { _ = store.Close() }() // the writes are complete, so an error does not matter
	if !o.dry {
		if err := target.RefuseWhileRunning(ctx, t, store, o.App, view, o.look.UntilDead(view)); err != nil {
			return err
		}
	}
	if len(o.streams) == 0 {
		o.streams = target.StreamsOf(view.Leases)
	}
	client, err := o.AWS.Kinesis(ctx, t)
	if err != nil {
		return err
	}
	var steps []change.Step
	for _, name := range o.streams {
		about, err := awsconf.AskStream(ctx, client, name)
		switch {
		case errors.Is(err, streams.ErrNoStream):
			t.Note("stream %s does not exist", name)
			about.Stream = change.Stream{Name: awsconf.StreamName(name)}
		case err != nil:
			return fmt.Errorf("stream %s: %w", name, err)
		}
		steps = append(steps, change.Prune(about.Stream, view.Leases)...)
	}
	report := resetReport{App: o.App}
	n := toDo(steps)
	if o.out == cli.FormatText && len(steps) > 0 {
		if _, err := fmt.Fprint(t.Out, stepsText(steps)); err != nil {
			return err
		}
	}
	if n > 0 && !o.dry {
		if !o.yes {
			if err := cli.Confirm(ctx, t, fmt.Sprintf("Delete %s of %s?", cli.Count(n, "lease"), o.App), "yes"); err != nil {
				return err
			}
		}
		if report.Dump, err = target.DumpProgress(o.App, view, o.dump, time.Now()); err != nil {
			return fmt.Errorf("nothing was deleted, because the progress could not be saved: %w", err)
		}
		t.Note("the progress as it was is in %s", report.Dump)
	}
	var out outcome
	if !o.dry {
		out = carryOut(ctx, t, store, o.App, steps)
	}
	report.Steps = stepInfos(steps, out.State)
	if o.out == cli.FormatJSON {
		err = json.NewEncoder(t.Out).Encode(report)
	} else {
		err = report.pruned(t, out, n, o.dry)
	}
	return errors.Join(out.failure("deleted"), err)
}

// pruned prints the result of a prune.
func (r resetReport) pruned(t cli.Terminal, out outcome, n int, dry bool) (err error) {
	switch {
	case n == 0:
		err = cli.Textf(t.Out, "No lease can be deleted: their shards are in the streams, or they have owners.\n")
	case dry:
		err = cli.Textf(t.Out, "\n%s would be deleted; nothing was changed.\n", cli.Count(n, "lease"))
	default:
		err = cli.Textf(t.Out, "\n%s deleted.\n", cli.Count(out.Done, "lease"))
		for _, s := range r.Steps {
			if s.State == string(operate.Meanwhile) || s.State == string(operate.Left) {
				err = errors.Join(err, cli.Textf(t.Out, "%s/%s: %s\n", s.Stream, records.ShortID(s.Shard), s.State))
			}
		}
	}
	return err
}
