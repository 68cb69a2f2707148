package group

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"

	"github.com/spf13/cobra"

	"github.com/weir-go/weir/cmd/weir/internal/cli"
	"github.com/weir-go/weir/cmd/weir/internal/figures"
	"github.com/weir-go/weir/cmd/weir/internal/stores"
	"github.com/weir-go/weir/cmd/weir/internal/target"
	"github.com/weir-go/weir/health"
)

type listOptions struct {
	target.Flags
	out   cli.Format
	noLag bool
	again bool
}

func listCommand(t cli.Terminal) *cobra.Command {
	var o listOptions
	cmd := &cobra.Command{
		Use:   "list --store URL",
		Short: "List the applications in a store, with state and lag",
		Long: `Lists the applications in a store: the state of each application, which is that
of its worst shard, the largest lag of a shard, how many shards are not
finished and how many of them a live worker holds, the live workers, the records
that these workers have dead-lettered lately, and the streams. It changes
nothing.

Kinesis reports the lag in one read of each shard at its checkpoint, which counts
against the five reads per second that a shard allows. --no-lag omits these
reads. To know which workers live, the command watches the heartbeats for two
intervals of the slowest worker, at most 10 s. Whether a lag grows or falls
comes from the history that workers report once a minute. With DynamoDB the
whole table is read.`,
		Example: `  weir group list --store sqlite:billing.db
  weir group list --store sqlite:billing.db --watch
  weir group list --store dynamodb:weir -o json | jq -r '.applications[].app'`,
		Args: cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			url, err := o.URL(cmd)
			if err != nil {
				return err
			}
			store, err := url.Open(cmd.Context(), t, &o.AWS, false, false)
			if err != nil {
				return err
			}
			defer func() { _ = store.Close() }() // the store was only read
			look := func(ctx context.Context, t cli.Terminal) (string, error) { return o.look(ctx, t, store) }
			return showOrWatch(cmd.Context(), t, o.again, look)
		},
	}
	o.RegisterStore(cmd)
	cmd.Flags().BoolVar(&o.noLag, "no-lag", false, "do not read the lag from Kinesis")
	cli.RegisterWatch(cmd, &o.again)
	o.out.Register(cmd, "output format")
	return cmd
}

// showOrWatch shows the text of a look once, or again and again.
func showOrWatch(ctx context.Context, t cli.Terminal, again bool, look func(context.Context, cli.Terminal) (string, error)) error {
	if again {
		return cli.Again(ctx, t, look)
	}
	text, err := look(ctx, t)
	if err != nil {
		return err
	}
	_, err = io.WriteString(t.Out, text)
	return err
}

// look returns the output of one look at the store.
func (o *listOptions) look(ctx context.Context, t cli.Terminal, store stores.Store) (string, error) {
	views, err := readApps(ctx, t, store)
	if err != nil {
		return "", err
	}
	watched, err := watchApps(ctx, t, store, views)
	if err != nil {
		return "", err
	}
	o.lags(ctx, t, store, watched)
	all := make([]appInfo, len(watched))
	for i := range watched {
		all[i] = watched[i].summary()
	}
	if err := ctx.Err(); err != nil {
		return "", err
	}
	if o.out == cli.FormatJSON {
		text, err := json.Marshal(appList{all})
		return string(text) + "\n", err
	}
	return appsText(all, t.Columns()), nil
}

// appList is the output of group list for programs.
type appList struct {
	Applications []appInfo `json:"applications"`
}

// appInfo describes an application in the output of group list.
type appInfo struct {
	App      string       `json:"app"`
	State    health.State `json:"state"` // state of the worst shard
	Sentence string       `json:"sentence"`
	Worst    *int64       `json:"worst_ms"` // the largest known lag, or null
	Behind   int          `json:"behind"`   // shards with records that are not handled
	Streams  []string     `json:"streams"`
	Leases   int          `json:"leases"`
	Finished int          `json:"finished"`
	Held     int          `json:"held"`
	Workers  int          `json:"workers"` // workers that send heartbeats
	Silent   int          `json:"silent"`  // workers that have not ended and send no heartbeats
	// DeadLettered is the number of records that live workers dead-lettered or skipped lately.
	DeadLettered int `json:"dead_lettered"`
	// Leader is the last worker that became the leader. It may be dead.
	Leader string   `json:"leader,omitempty"`
	Paused []string `json:"paused,omitempty"`
}

func appsText(all []appInfo, columns int) string {
	if len(all) == 0 {
		return "This store has no applications.\n"
	}
	w := cli.Table{
		Columns: []cli.Column{
			{Head: "APPLICATION", Least: 16, Keep: cli.KeepEnds}, {Head: "STATE"}, {Head: "LAG"}, {Head: "SHARDS"}, {Head: "HELD"},
			{Head: "WORKERS"}, {Head: "DEAD LETTERS"}, {Head: "STREAMS", Least: 8},
		},
		Cut: []int{7, 0},
	}
	for _, a := range all {
		// The pause is part of the state, because --watch cuts long lines at the end.
		streams, state := cli.List(a.Streams), a.State.String()
		switch {
		case slices.Contains(a.Paused, ""):
			state += " (paused)"
		case len(a.Paused) > 0 && !slices.ContainsFunc(a.Streams, func(of string) bool { return !slices.Contains(a.Paused, of) }):
			state += " (paused)"
		case len(a.Paused) > 0:
			state += fmt.Sprintf(" (%s paused)", cli.Count(len(a.Paused), "stream"))
			streams += "; paused: " + cli.List(a.Paused)
		}
		lag, dead := "-", "-"
		if a.Worst != nil {
			lag = age(*a.Worst)
		}
		if a.DeadLettered > 0 {
			dead = figures.Count(a.DeadLettered)
		}
		workers := figures.Count(a.Workers)
		if a.Silent > 0 {
			workers += fmt.Sprintf(", %s silent", figures.Count(a.Silent))
		}
		w.Add(a.App, state, lag, figures.Count(a.Leases-a.Finished), figures.Count(a.Held), workers, dead, streams)
	}
	return w.Text(columns)
}
