package group

import (
	"context"
	"maps"
	"slices"
	"sync/atomic"
	"time"

	"github.com/weir-go/weir/event"
	"github.com/weir-go/weir/lease"
	"github.com/weir-go/weir/shard"
)

// A deputy lists streams that its worker reads and that the leader does not list. Either the leader
// does not read these streams, or its listings fail. The deputy writes the leases that its listings
// require; the leader assigns them. All of its writes are conditional, so several deputies may list
// the same stream. A deputy runs in one goroutine, which executes run.
type deputy struct {
	cfg     Config
	names   []string
	results *listedStreams
	wakeUp  func() // triggers a heartbeat
	cancel  context.CancelFunc

	fatal atomic.Pointer[error]

	// Owned by run.
	streams  *listings
	leases   []lease.Lease
	revision string
	rounds   int
}

// listedStreams holds the streams that a worker has listed, as leader or as deputy, and whose
// leases all exist. Safe for concurrent use.
type listedStreams struct {
	changes atomic.Int64
	names   atomic.Pointer[map[string]bool] // the maps are never modified
}

func (s *listedStreams) set(names map[string]bool) {
	before := s.names.Swap(&names)
	if before == nil && len(names) == 0 || before != nil && maps.Equal(names, *before) {
		return
	}
	s.changes.Add(1)
}

func (s *listedStreams) has(name string) bool {
	names := s.names.Load()
	return names != nil && (*names)[name]
}

// deputize starts, ends or replaces the worker's deputy, depending on which streams the leader
// lists.
func (w *worker) deputize(leader lease.Leader, now time.Time) {
	if w.names == nil || leader.Session == "" {
		return // wait for the next leader
	}
	var missing []string
	switch {
	case !w.stopping.IsZero() || leader.Session == w.session || w.lead != nil || !leader.Streams.Known():
		clear(w.unlisted)
	case leader.Streams == w.leaderLists && len(w.unlisted) == 0 && w.deputy == nil:
		return // the usual case
	default:
		w.leaderLists = leader.Streams
		if w.unlisted == nil {
			w.unlisted = map[string]time.Time{}
		}
		missing = unlistedFor(w.names, leader.Streams, w.unlisted, now, w.cfg.ListInterval/2)
	}
	if w.deputy != nil && slices.Equal(w.deputy.names, missing) {
		return
	}
	w.endDeputy()
	if len(missing) > 0 {
		w.startDeputy(missing)
	}
}

// unlistedFor returns the streams of names that a worker must list itself. If the leader reads a
// stream but has not listed it, the worker lists the stream only after the duration patience. since
// stores when each stream was first missing from the leader's list. unlistedFor updates since.
func unlistedFor(names []string, leader lease.Streams, since map[string]time.Time, now time.Time, patience time.Duration) (missing []string) {
	for _, name := range names {
		if leader.Listed(name) {
			delete(since, name)
			continue
		}
		at, before := since[name]
		if !before {
			at = now
			since[name] = now
		}
		if !leader.Has(name) || now.Sub(at) >= patience {
			missing = append(missing, name)
		}
	}
	return missing
}

func (w *worker) startDeputy(names []string) {
	ctx, cancel := context.WithCancel(w.validity.context(nil))
	w.cfg.Log.Info("the leader does not list streams that this worker reads; this worker lists them", "streams", names)
	d := &deputy{cfg: w.cfg, names: names, results: w.listed, wakeUp: w.poke, cancel: cancel, streams: newListings(names)}
	d.streams.deputy = true
	w.deputy = d
	w.running.Go(func() { d.run(ctx) })
}

// endDeputy signals the deputy to end and does not wait for it.
func (w *worker) endDeputy() {
	if w.deputy == nil {
		return
	}
	w.deputy.cancel()
	if err := w.deputy.failed(); err != nil && w.fatal == nil {
		w.fatal = err
	}
	w.deputy = nil
	w.listed.set(nil)
}

// failed returns the error with which Run must end. Safe for concurrent use.
func (d *deputy) failed() error {
	if err := d.fatal.Load(); err != nil {
		return *err
	}
	return nil
}

func (d *deputy) run(ctx context.Context) {
	defer d.streams.wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		case r := <-d.streams.results:
			if err := d.streams.take(r, d.cfg); err != nil {
				d.fatal.Store(&err)
				d.wakeUp()
				return
			}
		}
		timer.Reset(d.step(ctx))
	}
}

// step reads the view, starts due listings, and applies the actions that the listings require. It
// returns the time until the next step.
func (d *deputy) step(ctx context.Context) time.Duration {
	beat := d.cfg.Times.Heartbeat
	call, cancel := context.WithTimeout(ctx, d.cfg.Times.Failover/2)
	defer cancel()
	view, err := d.cfg.Store.View(call, d.cfg.App, d.revision)
	if err != nil {
		d.failedCall(ctx, event.OpView, err)
		return beat
	}
	if view.Same {
		view.Leases = d.leases
	}
	d.leases, d.revision = view.Leases, view.Revision
	d.streams.begin(ctx, view, d.cfg)
	actions := append(d.streams.actions(view, lease.Facts{}, d.cfg), d.streams.departed(view.Leases)...)
	if ctx.Err() != nil {
		return beat
	}
	d.results.set(d.streams.complete(d.cfg.ListInterval))
	if len(actions) == 0 {
		d.rounds = 0
		return max(beat, d.cfg.ListInterval/3)
	}
	did, err := d.cfg.Store.Apply(call, d.cfg.App, actions)
	if err != nil {
		d.revision = ""
		d.failedCall(ctx, event.OpApply, err)
		return beat
	}
	for i, a := range actions {
		if did[i] && a.Kind == lease.Create {
			d.streams.made(a.Lease)
		}
		d.cfg.Log.Debug("this worker tried an action in place of the leader", "action", a.String(), "done", did[i])
	}
	if d.rounds++; d.rounds > 20 || !slices.Contains(did, true) {
		d.rounds = 0
		return beat
	}
	return 0
}

func (d *deputy) failedCall(ctx context.Context, op event.StoreOp, err error) {
	if ctx.Err() == nil {
		d.cfg.Host.CallFailed(op, err, time.Now())
	}
}

// complete returns the streams that were listed recently and whose leases all exist.
func (s *listings) complete(interval time.Duration) map[string]bool {
	all := map[string]bool{}
	for name, l := range s.streams {
		late := l.errors > 0 && time.Since(l.began) > interval
		if l.latest != nil && !l.making && !l.again.After(l.began) && !late {
			all[name] = true
		}
	}
	return all
}

// departed returns actions that create finished leases for parents that have left their stream.
// Their children wait for these leases. A leader finds such parents in its own listings
// ([lease.Facts].Gone), but these do not cover a deputy's streams.
func (s *listings) departed(leases []lease.Lease) (actions []lease.Action) {
	if len(s.gone) == 0 {
		return nil
	}
	for _, parent := range lease.Unknown(leases, nil) {
		if !s.gone[parent] || s.streams[parent.Stream] == nil {
			continue
		}
		i := slices.IndexFunc(leases, func(l lease.Lease) bool {
			return l.Stream == parent.Stream && slices.Contains(l.Parents, parent.Shard)
		})
		actions = append(actions, lease.Action{Kind: lease.Create, Lease: lease.Lease{
			Key: parent, Range: leases[i].Range, Epoch: 1, Position: shard.End, Born: leases[i].Born,
		}})
	}
	return actions
}

// atOnce completes the actions of [Renew] for a deputy, which does not know when a lease is no
// longer valid for its owner.
//
// A Revoke action is followed by a Replace action, so that one call revokes a lease and replaces
// it. With two calls, the leader could assign the lease to another worker between them. The new
// lease records its previous owner as revoked. No session gets the lease until the lease is no
// longer valid for its previous owner.
//
// If the new stream has no such shard, the new lease is a finished one of the deleted stream.
// Nobody gets it, and it does not count as a shard of the new stream, which may create a shard of
// that name later. It is then replaced again.
func atOnce(renewed []lease.Action, existing []lease.Lease, listing Listing) (actions []lease.Action) {
	here := make(map[string]shard.Shard, len(listing.Shards))
	for _, sh := range listing.Shards {
		here[sh.ID] = sh
	}
	handled := make(map[lease.Key]bool, len(renewed))
	for _, a := range renewed {
		handled[a.Key] = true
		actions = append(actions, a)
		if a.Kind != lease.Revoke {
			continue
		}
		l := existing[slices.IndexFunc(existing, func(l lease.Lease) bool { return l.Key == a.Key })]
		replaced := lease.Lease{
			Key: a.Key, Range: l.Range, Epoch: a.Epoch + 2, Position: shard.End, Born: l.Born, Revoked: l.Owner, Last: l.Owner,
		}
		if sh, ok := here[a.Key.Shard]; ok {
			replaced.Parents, replaced.Range, replaced.Position, replaced.Born = sh.Parents, sh.Range, shard.Oldest, listing.Born
		}
		actions = append(actions, lease.Action{Kind: lease.Replace, Key: a.Key, Epoch: a.Epoch + 1, Lease: replaced})
	}
	for _, l := range existing {
		sh, ok := here[l.Shard]
		if !ok || handled[l.Key] || l.Owner != "" || !listing.stale(l) {
			continue
		}
		actions = append(actions, lease.Action{Kind: lease.Replace, Key: l.Key, Epoch: l.Epoch, Lease: lease.Lease{
			Key: l.Key, Parents: sh.Parents, Range: sh.Range, Epoch: l.Epoch + 1, Position: shard.Oldest, Born: listing.Born, Revoked: l.Revoked, Last: l.Last,
		}})
	}
	return actions
}
