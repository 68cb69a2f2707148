// Package previous wraps a store so that only the fields and abilities of weir's previous version
// are used. During a rolling deployment both versions share one store.
//
// The known fields are listed one by one, so new fields are omitted by default. The previous
// version changes together with the commit in internal/proof/integration/older. The tests there
// compare this package with that version's source.
package previous

import (
	"context"

	"github.com/weir-go/weir/lease"
)

// Abilities are the abilities that the previous version knows: none.
const Abilities lease.Abilities = 0

// lastKind is the last kind of action that the previous version knows.
const lastKind = lease.Birth

// Client returns s as the previous version of a worker uses it. It is safe for concurrent use.
func Client(s lease.Store) lease.Store { return client{s} }

type client struct{ store lease.Store }

// Abilities implements [lease.Store].
func (c client) Abilities() lease.Abilities { return c.store.Abilities() & Abilities }

// Heartbeat implements [lease.Store].
func (c client) Heartbeat(ctx context.Context, app string, r lease.Report) (lease.Orders, error) {
	o, err := c.store.Heartbeat(ctx, app, report(r))
	return lease.Orders{Held: each(o.Held, known), Leader: leader(o.Leader)}, err
}

// View implements [lease.Store].
func (c client) View(ctx context.Context, app, since string) (lease.View, error) {
	v, err := c.store.View(ctx, app, since)
	return View(v), err
}

// View returns the part of v that the previous version reads.
func View(v lease.View) lease.View {
	return lease.View{
		Revision: v.Revision, Same: v.Same, Leases: each(v.Leases, known), Workers: each(v.Workers, worker), Leader: leader(v.Leader), Paused: v.Paused,
	}
}

// Apply implements [lease.Store]. New kinds of actions have no effect, because the previous version
// does not plan them.
func (c client) Apply(ctx context.Context, app string, actions []lease.Action) ([]bool, error) {
	var kept []lease.Action
	var places []int
	for i, a := range actions {
		if a.Kind <= lastKind || a.Check() != nil { // the store rejects invalid actions
			kept, places = append(kept, action(a)), append(places, i)
		}
	}
	did, err := c.store.Apply(ctx, app, kept)
	if err != nil {
		return nil, err
	}
	all := make([]bool, len(actions))
	for i, done := range did {
		all[places[i]] = done
	}
	return all, nil
}

// Lead implements [lease.Store].
func (c client) Lead(ctx context.Context, app, session string, term uint64) (bool, error) {
	return c.store.Lead(ctx, app, session, term)
}

// Leave implements [lease.Store].
func (c client) Leave(ctx context.Context, app string, r lease.Report) error {
	return c.store.Leave(ctx, app, report(r))
}

// each applies known to all elements. It returns nil if all is nil.
func each[T any](all []T, known func(T) T) []T {
	if all == nil {
		return nil
	}
	them := make([]T, len(all))
	for i := range all {
		them[i] = known(all[i])
	}
	return them
}

func report(r lease.Report) lease.Report {
	return lease.Report{
		Session: r.Session, Name: r.Name, First: r.First, Leaving: r.Leaving, Weight: r.Weight, MaxLeases: r.MaxLeases, Holds: r.Holds, Times: times(r.Times),
		Progress: each(r.Progress, progress), Troubles: each(r.Troubles, trouble),
	}
}

func progress(p lease.Progress) lease.Progress {
	return lease.Progress{
		Key: p.Key, Epoch: p.Epoch, Position: p.Position, Release: p.Release, Stalled: p.Stalled, Load: p.Load, Children: p.Children,
	}
}

func trouble(t lease.Trouble) lease.Trouble {
	return lease.Trouble{Key: t.Key, State: t.State, For: t.For, Why: t.Why}
}

func times(t lease.Times) lease.Times {
	return lease.Times{Heartbeat: t.Heartbeat, Failover: t.Failover, Handoff: t.Handoff}
}

func known(l lease.Lease) lease.Lease {
	return lease.Lease{
		Key: l.Key, Parents: l.Parents, Range: l.Range, Epoch: l.Epoch, Owner: l.Owner, Heir: l.Heir, Revoked: l.Revoked, Last: l.Last, Shunned: l.Shunned,
		Position: l.Position, Load: l.Load, Born: l.Born,
	}
}

func worker(w lease.Worker) lease.Worker {
	return lease.Worker{
		Session: w.Session, Name: w.Name, Heartbeats: w.Heartbeats, Ended: w.Ended, Leaving: w.Leaving, Drain: w.Drain, Weight: w.Weight, MaxLeases: w.MaxLeases,
		Holds: w.Holds, Times: times(w.Times), Troubles: each(w.Troubles, trouble),
	}
}

func leader(l lease.Leader) lease.Leader {
	return lease.Leader{Session: l.Session, Epoch: l.Epoch, Heartbeats: l.Heartbeats}
}

func action(a lease.Action) lease.Action {
	return lease.Action{
		Kind: a.Kind, Key: a.Key, Epoch: a.Epoch, Session: a.Session, Heartbeats: a.Heartbeats, Lease: known(a.Lease), Position: a.Position, Born: a.Born,
		Stream: a.Stream, On: a.On,
	}
}
