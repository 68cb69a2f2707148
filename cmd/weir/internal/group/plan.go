package group

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/weir-go/weir/cmd/weir/internal/cli"
	"github.com/weir-go/weir/cmd/weir/internal/stores"
	"github.com/weir-go/weir/cmd/weir/internal/target"
	"github.com/weir-go/weir/lease"
)

type planOptions struct {
	target.Flags
	out  cli.Format
	look target.LookFlag
}

func planCommand(t cli.Terminal) *cobra.Command {
	var o planOptions
	cmd := &cobra.Command{
		Use:   "plan --app NAME --store URL",
		Short: "Show what the leader would move now, and why",
		Long: `Shows which leases a leader would move now, and why. The leader makes such a
plan twice per heartbeat interval. The command makes it from the same data and
does not carry it out. While a leader runs, the plan is usually empty. It
changes nothing.

The command watches the store until each worker has sent a heartbeat or counts
as dead, which takes the leader's FailoverAfter, or without a leader the longest
FailoverAfter of any worker (see --look). Changes that need a listing of the
shards (creating and removing leases) are not part of the plan.`,
		Example: `  weir group plan --app billing --store sqlite:billing.db
  weir group plan --app billing --store dynamodb:weir -o json | jq .actions`,
		Args: cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			url, err := o.URL(cmd, "app")
			if err != nil {
				return err
			}
			if err := o.look.Check(true); err != nil {
				return err
			}
			return o.run(cmd.Context(), t, url)
		},
	}
	o.Register(cmd)
	o.look.Register(cmd, "how long to look for heartbeats at most, by default until all that do not send heartbeats count as dead; with 0 every worker counts as alive")
	o.out.Register(cmd, "output format")
	return cmd
}

// planReport is the output of group plan.
type planReport struct {
	App     string           `json:"app"`
	Actions []plannedAction  `json:"actions"`
	Waiting int              `json:"waiting"` // leases whose parent shards are not finished
	Times   target.TimesInfo `json:"times"`   // the times that decide whether a worker is dead
	Note    string           `json:"note,omitempty"`
}

type plannedAction struct {
	Action  string `json:"action"` // the kind of the action, as in logs
	Kind    string `json:"kind"`
	Explain string `json:"why"`
}

func (o *planOptions) run(ctx context.Context, t cli.Terminal, url stores.URL) error {
	store, view, err := o.Open(ctx, t, url)
	if err != nil {
		return err
	}
	defer func() { _ = store.Close() }() // the store was only read
	view, facts, err := o.observe(ctx, store, view)
	if err != nil {
		return err
	}
	report := planOf(o.App, view, facts)
	if o.out == cli.FormatJSON {
		return json.NewEncoder(t.Out).Encode(report)
	}
	_, err = fmt.Fprint(t.Out, report.text())
	return err
}

// observe reads the application like a leader, for at most the time of --look. It stops earlier
// when each session's heartbeat has changed or the session is known to be dead. It returns the last
// view, and the facts that a leader would know then.
func (o *planOptions) observe(ctx context.Context, store stores.Store, first lease.View) (lease.View, lease.Facts, error) {
	seen := lease.NewWatch(lease.TimesOf(first), lease.Leader{})
	last, facts := first, seen.See(first, time.Now(), time.Now())
	facts.OutOfDate = nil // nothing follows from a single read
	length := o.look.UntilDead(first)
	if length == 0 {
		return last, facts, nil
	}
	alive := 0
	for _, w := range first.Workers {
		if !w.Ended {
			alive++
		}
	}
	if alive == 0 {
		return last, facts, nil
	}
	err := target.Watch(ctx, store, o.App, first, length, func(now lease.View) bool {
		last, facts = now, seen.See(now, time.Now(), time.Now())
		return len(target.BeatBetween(first, now))+len(facts.Dead) < alive
	})
	facts.OutOfDate = nil // these notes between leader and workers do not move leases
	return last, facts, store.Explain(err)
}

func planOf(app string, v lease.View, f lease.Facts) planReport {
	r := planReport{App: app, Actions: []plannedAction{}, Times: target.TimesInfoOf(lease.TimesOf(v))}
	actions, sentences := lease.Plan(v, f, lease.Limits{}), lease.Explain(v, f, lease.Limits{})
	// Show each session by the name of its worker. If several sessions share a name, show the name
	// followed by the session.
	var names []string
	count := map[string]int{}
	for _, w := range v.Workers {
		count[w.Name]++
	}
	for _, w := range v.Workers {
		switch {
		case w.Name == "" || w.Session == "":
		case count[w.Name] > 1:
			names = append(names, w.Session, w.Name+" ("+w.Session+")")
		default:
			names = append(names, w.Session, w.Name)
		}
	}
	people := strings.NewReplacer(names...)
	for i, a := range actions {
		r.Actions = append(r.Actions, plannedAction{a.String(), a.Kind.String(), people.Replace(sentences[i])})
	}
	r.Waiting = len(lease.Waiting(v.Leases, nil))
	r.Note = planNote(v, f, len(actions))
	return r
}

// planNote returns the reason why nothing happens, or says who would carry out the plan.
func planNote(v lease.View, f lease.Facts, actions int) string {
	workers, unfinished := 0, 0
	for _, w := range v.Workers {
		if _, dead := f.Dead[w.Session]; !w.Ended && !dead {
			workers++
		}
	}
	for _, l := range v.Leases {
		if !l.Finished() {
			unfinished++
		}
	}
	_, leaderDead := f.Dead[v.Leader.Session]
	nobody := v.Leader.Session == "" || leaderDead
	switch {
	case workers == 0 && unfinished > 0:
		return fmt.Sprintf("no worker runs, so the %s that %s not finished are not read", cli.Count(unfinished, "shard"), cli.Plural(unfinished, "is", "are"))
	case len(v.Leases) == 0:
		return "there is no lease yet"
	case unfinished == 0:
		return "every lease is finished"
	case actions > 0 && nobody:
		return "there is no leader now: the next leader does this"
	case actions > 0:
		return "the leader does this with its next look"
	case isPaused(v.Paused, ""):
		return "the application is paused"
	}
	live := v
	live.Workers = slices.DeleteFunc(slices.Clone(v.Workers), func(w lease.Worker) bool { _, dead := f.Dead[w.Session]; return dead })
	if unread := lease.Unread(live); len(unread) > 0 {
		return "no live worker reads " + strings.Join(unread, ", ")
	}
	return "everybody has what is due"
}

func (r planReport) text() string {
	var b strings.Builder
	if len(r.Actions) == 0 {
		_ = cli.Textf(&b, "Nothing would move: %s.\n", cmp.Or(r.Note, "everybody has what is due"))
	} else {
		for i, a := range r.Actions {
			_ = cli.Textf(&b, "%3d. %s\n", i+1, a.Explain)
		}
		_ = cli.Textf(&b, "\n%s; %s.\n", cli.Count(len(r.Actions), "action"), r.Note)
	}
	if r.Waiting > 0 {
		_ = cli.Textf(&b, "%s for the end of %s parents.\n", cli.Count(r.Waiting, "shard")+cli.Plural(r.Waiting, " waits", " wait"), cli.Plural(r.Waiting, "its", "their"))
	}
	return b.String()
}
