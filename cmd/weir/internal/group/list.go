package group

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/weir-go/weir/cmd/weir/internal/cli"
	"github.com/weir-go/weir/cmd/weir/internal/figures"
	"github.com/weir-go/weir/cmd/weir/internal/stores"
	"github.com/weir-go/weir/cmd/weir/internal/target"
	"github.com/weir-go/weir/lease"
)

func listCommand(t cli.Terminal) *cobra.Command {
	var (
		g   target.Flags
		out cli.Format
	)
	cmd := &cobra.Command{
		Use:   "list --store URL",
		Short: "List the applications in a store",
		Long: `Lists the applications in a store, with their streams, the number of leases and
of finished leases, their workers and their last leader. It changes nothing.

Workers and leader are listed as they are stored, whether they live or not:
"weir group describe" looks at their heartbeats. With DynamoDB the whole table
is read.`,
		Example: `  weir group list --store sqlite:billing.db
  weir group list --store dynamodb:weir -o json | jq -r '.[].app'`,
		Args: cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			url, err := g.URL(cmd)
			if err != nil {
				return err
			}
			store, err := url.Open(cmd.Context(), t, &g.AWS, false, false)
			if err != nil {
				return err
			}
			defer func() { _ = store.Close() }() // the store was only read
			all, err := listApps(cmd.Context(), t, store)
			if err != nil {
				return err
			}
			if out == cli.FormatJSON {
				return json.NewEncoder(t.Out).Encode(all)
			}
			_, err = fmt.Fprint(t.Out, appsText(all))
			return err
		},
	}
	g.RegisterStore(cmd)
	out.Register(cmd, "output format")
	return cmd
}

// appInfo describes an application in the output of group list.
type appInfo struct {
	App      string   `json:"app"`
	Streams  []string `json:"streams"`
	Leases   int      `json:"leases"`
	Finished int      `json:"finished"`
	Held     int      `json:"held"`
	Workers  int      `json:"workers"`
	// Leader is the last worker that became the leader. It may be dead.
	Leader string   `json:"leader,omitempty"`
	Paused []string `json:"paused,omitempty"`
}

func listApps(ctx context.Context, t cli.Terminal, store stores.Store) ([]appInfo, error) {
	admin, err := store.Admin()
	if err != nil {
		return nil, err
	}
	apps, err := admin.Apps(ctx)
	if err != nil {
		return nil, store.Explain(err)
	}
	if len(apps) == 0 { // the table may belong to others, or this user may not see its content: reading reports that
		if _, err := store.ReadApp(ctx, "weir"); err != nil {
			return nil, err
		}
	}
	var (
		all    = make([]appInfo, len(apps))
		failed = make([]error, len(apps))
		asked  sync.WaitGroup
		turns  = make(chan struct{}, 8)
		shown  = cli.NewBar(t, "reading applications", len(apps))
	)
	for i, app := range apps {
		turns <- struct{}{}
		asked.Go(func() {
			defer func() { <-turns }()
			var v lease.View
			v, failed[i] = store.ReadApp(ctx, app)
			all[i] = summary(app, v)
			shown.Advance(1)
		})
	}
	asked.Wait()
	shown.Done()
	return all, cmp.Or(failed...)
}

func summary(app string, v lease.View) appInfo {
	a := appInfo{App: app, Streams: target.StreamsOf(v.Leases), Leases: len(v.Leases), Paused: v.Paused}
	if a.Streams == nil {
		a.Streams = []string{}
	}
	a.Held = heldOf(v, "")
	for _, l := range v.Leases {
		if l.Finished() {
			a.Finished++
		}
	}
	for _, w := range v.Workers {
		if w.Ended {
			continue
		}
		a.Workers++
		if w.Session == v.Leader.Session {
			a.Leader = cmp.Or(w.Name, w.Session)
		}
	}
	return a
}

func appsText(all []appInfo) string {
	if len(all) == 0 {
		return "This store has no applications.\n"
	}
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "APPLICATION\tLEASES\tHELD\tFINISHED\tWORKERS\tLAST LEADER\tSTREAMS")
	for _, a := range all {
		streams := cli.List(a.Streams)
		switch {
		case slices.Contains(a.Paused, ""):
			streams += " (paused)"
		case len(a.Paused) > 0:
			streams += " (paused: " + cli.List(a.Paused) + ")"
		}
		_ = cli.Textf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n", a.App, figures.Count(a.Leases), figures.Count(a.Held), figures.Count(a.Finished), figures.Count(a.Workers), cmp.Or(a.Leader, "-"), streams)
	}
	_ = w.Flush() // cannot fail: it writes to memory
	return b.String()
}
