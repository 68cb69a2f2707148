package group

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/weir-go/weir/cmd/weir/internal/cli"
	"github.com/weir-go/weir/cmd/weir/internal/figures"
	"github.com/weir-go/weir/cmd/weir/internal/stores"
	"github.com/weir-go/weir/cmd/weir/internal/target"
	"github.com/weir-go/weir/internal/operate"
	"github.com/weir-go/weir/lease"
)

type drainOptions struct {
	target.Flags
	out  cli.Format
	off  bool
	wait time.Duration
}

func drainCommand(t cli.Terminal) *cobra.Command {
	var o drainOptions
	cmd := &cobra.Command{
		Use:   "drain --app NAME --store URL WORKER",
		Short: "Move all leases of a running worker to other workers",
		Long: `Takes all leases from a running worker: it hands them to the other workers, a
few at a time, so that no record is handled twice, and gets no new ones. It can
still be the leader. WORKER is its name or its session. If several workers have
the name, all of them are drained. The drain ends with --off or when the worker
stops, because a restarted worker has a new session.

If no other worker accepts leases, a drained worker keeps its own, so that its
shards are still read. With --wait the command ends when the worker holds no
lease, and fails if that takes longer.`,
		Example: `  weir group drain --app billing --store sqlite:billing.db host-7:4711
  weir group drain --app billing --store dynamodb:weir --wait 5m host-7:4711
  weir group drain --app billing --store dynamodb:weir --off host-7:4711`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 || args[0] == "" {
				return cli.Usagef("%s needs one WORKER: \"weir group describe\" shows them", cmd.CommandPath())
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			url, err := o.URL(cmd, "app")
			if err != nil {
				return err
			}
			if err := checkWait(o.wait); err != nil {
				return err
			}
			return o.run(cmd.Context(), t, url, args[0])
		},
		ValidArgsFunction: func(cmd *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
			if len(args) > 0 {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			return o.completeWorkers(cmd.Context()), cobra.ShellCompDirectiveNoFileComp
		},
	}
	o.Register(cmd)
	cmd.Flags().BoolVar(&o.off, "off", false, "end the drain: the worker takes leases again")
	registerWait(cmd, &o.wait)
	o.out.Register(cmd, "output format")
	return cmd
}

// drainReport is the output of group drain.
type drainReport struct {
	App      string   `json:"app"`
	Worker   string   `json:"worker"`
	Drain    bool     `json:"drain"`
	Sessions []string `json:"sessions"`
	Held     int      `json:"held"` // number of leases that the workers hold
}

func (o *drainOptions) run(ctx context.Context, t cli.Terminal, url stores.URL, worker string) error {
	store, view, err := o.Open(ctx, t, url)
	if err != nil {
		return err
	}
	defer func() { _ = store.Close() }() // the writes are complete, so an error does not matter
	sessions, err := sessionsOf(o.App, view, worker)
	if err != nil {
		return err
	}
	if len(sessions) > 1 {
		t.Note("%s is the name of %s sessions, and all of them are meant: %s", worker, figures.Count(len(sessions)), cli.List(sessions))
	}
	err = operate.SetDrain(ctx, store, o.App, sessions, !o.off)
	if errors.Is(err, operate.ErrWorkerEnded) {
		return fmt.Errorf("worker %s has ended, so there is nothing to drain", worker)
	}
	if err != nil {
		return store.Explain(err)
	}
	if view, err = store.ReadApp(ctx, o.App); err != nil {
		return err
	}
	if !o.off && !takesLeases(view) {
		t.Note("no other worker takes leases, so %s keeps its own until one comes", worker)
	}
	held := func(v lease.View) (n int) {
		for _, l := range v.Leases {
			if slices.Contains(sessions, l.Owner) {
				n++
			}
		}
		return n
	}
	if o.wait > 0 && !o.off {
		if view, err = await(ctx, t, store, o.App, o.wait, "still held by "+worker, held); err != nil {
			return err
		}
	}
	report := drainReport{o.App, worker, !o.off, sessions, held(view)}
	if o.out == cli.FormatJSON {
		return json.NewEncoder(t.Out).Encode(report)
	}
	if o.off {
		err = cli.Textf(t.Out, "%s takes leases again\n", worker)
		return err
	}
	err = cli.Textf(t.Out, "%s is being drained; it holds %s\n", worker, cli.Count(report.Held, "lease"))
	return err
}

// sessionsOf returns the sessions that the argument worker selects. If it is a session, that
// session is the result. Otherwise it is a name, and the result contains all sessions with this
// name.
func sessionsOf(app string, v lease.View, worker string) ([]string, error) {
	var byName, known []string
	for _, w := range v.Workers {
		switch {
		case w.Ended:
		case w.Session == worker:
			return []string{worker}, nil
		default:
			if w.Name == worker {
				byName = append(byName, w.Session)
			}
			known = append(known, w.Name)
		}
	}
	if len(byName) == 0 {
		slices.Sort(known)
		return nil, fmt.Errorf("application %s has no worker %s: there is %s", app, worker, cli.List(slices.Compact(known)))
	}
	slices.Sort(byName)
	return byName, nil
}

func takesLeases(v lease.View) bool {
	return slices.ContainsFunc(v.Workers, func(w lease.Worker) bool { return !w.Ended && !w.Leaving && !w.Drain })
}

func (o *drainOptions) completeWorkers(ctx context.Context) []cobra.Completion {
	ctx, cancel := context.WithTimeout(ctx, 3*time.Second)
	defer cancel()
	url, err := stores.Parse(o.Store)
	if err != nil || url.Kind == stores.Memory || o.App == "" {
		return nil
	}
	store, view, err := o.Open(ctx, cli.Silent, url)
	if err != nil {
		return nil
	}
	defer func() { _ = store.Close() }() // the store was only read
	var names []cobra.Completion
	for _, w := range view.Workers {
		if !w.Ended {
			names = append(names, w.Name)
		}
	}
	return names
}
