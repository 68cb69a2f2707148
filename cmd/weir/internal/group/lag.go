package group

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/weir-go/weir/cmd/weir/internal/cli"
	"github.com/weir-go/weir/cmd/weir/internal/explain"
	"github.com/weir-go/weir/cmd/weir/internal/figures"
	"github.com/weir-go/weir/cmd/weir/internal/records"
	"github.com/weir-go/weir/cmd/weir/internal/shardlag"
	"github.com/weir-go/weir/cmd/weir/internal/stores"
	"github.com/weir-go/weir/cmd/weir/internal/target"
	"github.com/weir-go/weir/health"
	"github.com/weir-go/weir/internal/observe"
	"github.com/weir-go/weir/lease"
)

type lagOptions struct {
	target.Flags
	out    cli.Format
	stream string
	max    time.Duration
	look   target.LookFlag
}

func lagCommand(t cli.Terminal) *cobra.Command {
	var o lagOptions
	cmd := &cobra.Command{
		Use:   "lag --app NAME --store URL [--max 5m]",
		Short: "Show the lag of each shard, or check it for a monitor",
		Long: `Shows how far each shard is behind: the age of the oldest record that is not
handled yet, by the service's clock. For this it reads each shard once at its
checkpoint, 16 shards at a time. These reads count against the five per second
that all readers of a shard share. Finished shards are omitted. It changes
nothing.

For each shard, and at the end for the application, it also shows the state, for
example ok, falling behind, unread (and why), or near the end of retention. The
application has the state of its worst shard. To know which workers live, the
command waits until each has sent a heartbeat or its FailoverAfter has passed.
Whether a lag grows or falls comes from the history that workers report once a
minute. Without it, use "weir exporter" or "weir dashboard".

With --max the exit code is 3 if any shard is further behind, and 1 if the lag
of a shard is unknown. It can therefore be used in any monitor that runs a
command.`,
		Example: `  weir group lag --app billing --store sqlite:billing.db
  weir group lag --app billing --store dynamodb:weir --max 5m
  weir group lag --app billing --store dynamodb:weir -o json | jq .worst_ms`,
		Args: cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			url, err := o.URL(cmd, "app")
			if err != nil {
				return err
			}
			if err := o.look.Check(true); err != nil {
				return err
			}
			if o.max < 0 {
				return cli.Usagef("--max %v: want a time such as 5m", o.max)
			}
			return o.run(cmd.Context(), t, url, cmd.Flags().Changed("max"))
		},
	}
	o.Register(cmd)
	cmd.Flags().StringVar(&o.stream, "stream", "", "only the shards of the stream `NAME`")
	cmd.Flags().DurationVar(&o.max, "max", 0, "exit with 3 if a shard is further behind than this")
	cli.MustComplete(cmd, "max", "1m", "5m", "1h")
	o.look.Register(cmd, "how long to look for heartbeats of workers, by default until all that do not send heartbeats count as dead; 0 is not at all")
	o.out.Register(cmd, "output format")
	return cmd
}

// lagReport is the output of group lag.
type lagReport struct {
	App      string       `json:"app"`
	State    health.State `json:"state"`    // state of the worst shard
	Sentence string       `json:"sentence"` // reason for the state
	Worst    *int64       `json:"worst_ms"` // null if no lag is known
	Behind   int          `json:"behind"`   // number of shards with records that are not handled
	Unknown  int          `json:"unknown"`
	Shards   []shardLag   `json:"shards"`
}

type shardLag struct {
	Stream string       `json:"stream"`
	Shard  string       `json:"shard"`
	Worker string       `json:"worker,omitempty"`
	State  health.State `json:"state"`
	// Reason is the label of a reason of package health. It is absent if the shard has no problem.
	// Why is the reason in words, with its details.
	Reason health.Reason `json:"reason,omitzero"`
	Why    string        `json:"why,omitempty"`
	Lag    *int64        `json:"lag_ms"` // null if the lag is not known
	Error  string        `json:"error,omitempty"`
}

func (o *lagOptions) run(ctx context.Context, t cli.Terminal, url stores.URL, limited bool) error {
	store, view, err := o.Open(ctx, t, url)
	if err != nil {
		return err
	}
	defer func() { _ = store.Close() }() // the store was only read
	if _, err := target.LeasesOf(o.App, view.Leases, o.stream); err != nil {
		return err
	}
	client, err := o.AWS.Kinesis(ctx, t)
	if err != nil {
		return err
	}
	var (
		watching sync.WaitGroup
		beats    map[string]bool
	)
	length := o.look.UntilDead(view)
	if target.NotEnded(view) > 0 && (!o.look.Given || o.look.Asked > 0) {
		watching.Go(func() { beats = target.WatchBeats(ctx, store, o.App, view, length) }) // ends after the given time, or with ctx
	}
	lags := shardlag.Ask(ctx, t, client, view.Leases, o.stream)
	kept := shardlag.Retentions(ctx, client, target.StreamsOf(view.Leases), nil)
	watching.Wait()
	if err := ctx.Err(); err != nil {
		return err
	}
	unknown, trouble := shardlag.FirstError(lags)
	if unknown > 0 && unknown == len(lags) {
		return trouble // without any answer there is nothing to report
	}
	seen := shardlag.LookAt(time.Now(), view, lags)
	seen.Retention, seen.Silent = kept, shardlag.SilentIn(view, beats, length)
	past, err := shardlag.Past(ctx, store, o.App, seen.At)
	if err != nil {
		t.Note("the history of the application is not known: %s", explain.Error(store.Explain(err)))
	}
	report := lagsOf(o.App, seen, past, lags)
	if o.out == cli.FormatJSON {
		err = json.NewEncoder(t.Out).Encode(report)
	} else {
		_, err = fmt.Fprint(t.Out, report.text(t.Columns(), t.Findings()))
	}
	if err != nil {
		return err
	}
	key, most := shardlag.Worst(lags)
	switch {
	case limited && most > o.max:
		return cli.Wrong(fmt.Sprintf("shard %s is %s behind, more than %s", key, age(most.Milliseconds()), figures.Duration(o.max)))
	case limited && unknown > 0:
		return fmt.Errorf("the lag of %s is not known: %w", cli.Count(unknown, "shard"), trouble)
	}
	return nil
}

// lagsOf evaluates the health of the shards whose lag was queried.
func lagsOf(
	app string, look observe.Look, past observe.Past, lags map[lease.Key]shardlag.Lag,
) lagReport {
	r, v := lagReport{App: app, Shards: []shardLag{}}, look.View
	var seen observe.Watch
	seen.Remember(past)
	seen.Add(look)
	_, stand := seen.Judge(look.At)
	shards := map[lease.Key]health.Named{}
	var asked []health.Named
	for _, s := range stand {
		key := lease.Key{Stream: s.Stream, Shard: s.Name}
		if _, was := lags[key]; was || len(lags) == 0 && s.Finished {
			asked = append(asked, s)
		}
		shards[key] = s
	}
	sum := health.Sum(asked)
	r.State, r.Sentence = sum.State, sum.Sentence
	names := map[string]string{}
	for _, w := range v.Workers {
		names[w.Session] = cmp.Or(w.Name, w.Session)
	}
	for _, l := range v.Leases {
		found, asked := lags[l.Key]
		if !asked {
			continue
		}
		s := shardLag{Stream: l.Stream, Shard: l.Shard, Worker: cmp.Or(names[l.Owner], l.Owner), State: shards[l.Key].State, Reason: shards[l.Key].Reason, Why: shards[l.Key].Why()}
		if found.Err != nil {
			r.Unknown++
			s.Error = explain.Error(found.Err)
		} else {
			ms := found.Age.Milliseconds()
			s.Lag = &ms
			if r.Worst == nil || *r.Worst < ms {
				r.Worst = &ms
			}
			if found.Waits {
				r.Behind++
			}
		}
		r.Shards = append(r.Shards, s)
	}
	slices.SortFunc(r.Shards, func(a, b shardLag) int {
		return cmp.Or(cmp.Compare(a.Stream, b.Stream), cmp.Compare(a.Shard, b.Shard))
	})
	return r
}

func (r lagReport) text(columns, findings int) string {
	if len(r.Shards) == 0 {
		return fmt.Sprintf("Application %s has no shard that is not finished.\n", cli.Visible(r.App))
	}
	var b strings.Builder
	w := cli.Table{
		Columns: []cli.Column{
			{Head: "STREAM", Least: 10, Keep: cli.KeepEnds}, {Head: "SHARD", Least: 6, Keep: cli.KeepEnd},
			{Head: "OWNER", Least: 12, Keep: cli.KeepEnds}, {Head: "LAG", Least: 12}, {Head: "STATE", Least: 12},
		},
		Cut: []int{4, 3, 2, 0, 1},
	}
	for _, s := range r.Shards {
		text := "? " + s.Error
		if s.Lag != nil {
			text = age(*s.Lag)
		}
		state := s.State.String()
		if s.Why != "" && s.State != health.Behind {
			state += ": " + s.Why
		}
		w.Add(s.Stream, records.ShortID(s.Shard), cmp.Or(s.Worker, "-"), text, state)
	}
	b.WriteString(w.Text(columns))
	_ = cli.Textf(&b, "\n%s, %s behind", cli.Count(len(r.Shards), "shard"), figures.Count(r.Behind))
	if r.Worst != nil {
		_ = cli.Textf(&b, "; the worst by %s", age(*r.Worst))
	}
	if r.Unknown > 0 {
		_ = cli.Textf(&b, "; not known of %s", figures.Count(r.Unknown))
	}
	b.WriteString(".\n" + cli.Wrapped("The application is "+r.Sentence+".", "", findings))
	return b.String()
}
