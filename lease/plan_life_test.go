package lease_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/weir-go/weir/lease"
	"github.com/weir-go/weir/shard"
)

// TestPlanDoesNotFlap checks that nothing is left to do after a plan was executed, as long as no
// further event occurs. Only two steps remain: the next plan assigns the leases of ended sessions,
// and the plan after it forgets the sessions that no lease contains any more. The end of a session
// is an event: leases that it was to release are free at once, and their children have work then. A
// session that is cut off gets back no lease that it hands on, which lowers its cap. After each of
// the two, the next plan has other shares, and may request one other handoff of a lease.
func TestPlanDoesNotFlap(t *testing.T) {
	t.Parallel()
	seeds(t, 1_500, func(t *testing.T, rng *rand.Rand) {
		m := randomModel(rng)
		var plans [][]lease.Action
		for len(plans) < 6 {
			planned := m.plan()
			if len(planned) == 0 {
				break
			}
			plans = append(plans, planned)
			for _, a := range planned {
				if !m.apply(a) {
					t.Errorf("refused: %v", a)
				}
			}
		}
		if len(plans) == 6 {
			t.Error("no rest after six plans")
		}
		most := 1 // requests for a lease
		if slices.ContainsFunc(slices.Collect(maps.Keys(m.workers)), m.cutOff) {
			most++
		}
		wishes := map[lease.Key]int{}
		for i, planned := range plans {
			if slices.ContainsFunc(planned, func(a lease.Action) bool { return a.Kind == lease.EndSession }) {
				most++
			}
			for _, a := range planned {
				switch {
				case a.Kind == lease.Handoff:
					wishes[a.Key]++
				case a.Kind == lease.EndSession && i > 0:
					t.Errorf("plan %d: %v", i, a)
				}
			}
		}
		for k, n := range wishes {
			if n > most {
				t.Errorf("%v got %d wishes, want at most %d", k, n, most)
			}
		}
		if t.Failed() {
			for _, planned := range plans {
				t.Log(planned)
			}
			t.Log(m)
		}
	}, 12996847052945384590, 15465961238088369342, 12791717556465967253, 13110508317432588037)
}

// TestPlanThroughALife runs a group for a long time. Workers join, stop, die and return. Shards
// split, merge and expire. Leaders die between two writes, or act on old views. Handoffs take time.
// No write violates the rules. When events stop, every session reaches its share.
func TestPlanThroughALife(t *testing.T) {
	t.Parallel()
	seeds(t, 80, func(t *testing.T, rng *rand.Rand) {
		w := &world{T: t, rng: rng, model: newModel(), silent: map[string]bool{}, read: map[string]bool{}}
		w.limits.MovesInFlight = oneOf(rng, 0, 0, 1, 3)
		for range 1 + rng.IntN(6) {
			w.newShard()
		}
		for range 150 {
			w.event()
			w.lead()
			if t.Failed() {
				return
			}
		}
		w.calmDown()
	})
}

// world is a model with random events.
type world struct {
	*testing.T
	*model
	rng    *rand.Rand
	silent map[string]bool // sessions whose heartbeats have stopped
	// read contains shards that were read to their end, even if their leases were deleted.
	read   map[string]bool
	starts int
	shards int
	old    func() []lease.Action // returns the plan of a leader that is stuck since then
}

func (w *world) newShard(parents ...string) lease.Lease {
	w.shards++
	k := lease.Key{Stream: "s", Shard: fmt.Sprintf("%03d", w.shards)}
	l := lease.Lease{Key: k, Parents: parents, Epoch: 1, Position: shard.Oldest}
	if len(parents) == 0 {
		w.leases[k] = &l
	}
	return l
}

// end executes the end of a shard.
func (w *world) end(k lease.Key, children ...lease.Lease) {
	w.finish(k, children...)
	w.read[k.Shard] = true
	w.facts.Recent[k] = w.leases[k].Epoch
}

// some returns a random lease for which f is true, or nil.
func (w *world) some(f func(l *lease.Lease) bool) *lease.Lease {
	var found []*lease.Lease
	for _, k := range w.keys() {
		if f(w.leases[k]) {
			found = append(found, w.leases[k])
		}
	}
	if len(found) == 0 {
		return nil
	}
	return oneOf(w.rng, found...)
}

func (w *world) someWorker() *lease.Worker {
	if len(w.workers) == 0 {
		return nil
	}
	return w.workers[oneOf(w.rng, slices.Sorted(maps.Keys(w.workers))...)]
}

// beats reports whether the session is alive, which the leader may not know.
func (w *world) beats(session string) bool {
	row := w.workers[session]
	return row != nil && !row.Ended && !w.silent[session]
}

func (w *world) event() {
	for _, row := range w.workers {
		if w.beats(row.Session) {
			row.Heartbeats++
		}
	}
	if w.rng.IntN(2) == 0 {
		clear(w.facts.Recent)
	}
	held := func(l *lease.Lease) bool { return w.beats(l.Owner) && !l.Finished() }
	switch w.rng.IntN(16) {
	case 0, 1:
		if len(w.workers) < 8 {
			w.starts++
			s := fmt.Sprintf("w%03d", w.starts)
			w.workers[s] = &lease.Worker{
				Session: s, Heartbeats: 1, Weight: oneOf(w.rng, 0, 1, 1, 2.5), MaxLeases: oneOf(w.rng, 0, 0, 0, 2, 4),
			}
		}
	case 2:
		if row := w.someWorker(); row != nil && w.beats(row.Session) {
			row.Leaving = true
		}
	case 3:
		if row := w.someWorker(); row != nil && w.beats(row.Session) {
			w.leave(row.Session)
		}
	case 4:
		if row := w.someWorker(); row != nil {
			w.silent[row.Session] = true // a crash, or a pause
		}
	case 5:
		if row := w.someWorker(); row != nil {
			w.silent[row.Session] = false
		}
	case 6:
		for s, row := range w.workers {
			if w.silent[s] {
				w.facts.Dead[s] = row.Heartbeats
			}
		}
	case 7: // a split
		if l := w.some(held); l != nil {
			w.end(l.Key, w.newShard(l.Shard), w.newShard(l.Shard))
		}
	case 8: // a merge; one parent may end much later
		l := w.some(held)
		if l == nil {
			break
		}
		other := w.some(func(o *lease.Lease) bool { return o != l && !o.Finished() })
		if other == nil {
			break
		}
		w.end(l.Key, w.newShard(l.Shard, other.Shard))
	case 9: // a shard ends, or a new stream begins
		if l := w.some(held); l != nil && len(w.leases) > 20 {
			w.end(l.Key)
		} else if len(w.leases) < 20 {
			w.newShard()
		}
	case 10: // a finished shard expires, and the leader may notice or not
		if l := w.some((*lease.Lease).Finished); l != nil {
			delete(w.leases, l.Key)
			if w.rng.IntN(2) == 0 {
				w.facts.Gone[l.Key] = true
			}
		}
	case 11, 12:
		if l := w.some(func(l *lease.Lease) bool { return held(l) && l.Heir != "" }); l != nil {
			w.release(l.Key)
		}
	case 13:
		if l := w.some(func(l *lease.Lease) bool { return l.Revoked != "" }); l != nil {
			if w.rng.IntN(2) == 0 {
				w.facts.Ripe[l.Key] = l.Epoch
			} else if w.beats(l.Revoked) {
				l.Revoked = ""
			}
		}
	case 14:
		if l := w.some(func(l *lease.Lease) bool { return l.Heir != "" }); l != nil {
			w.facts.Overdue[l.Key] = l.Epoch
		}
	case 15:
		if l := w.some(held); l != nil {
			w.release(l.Key)
		}
	}
}

// lead makes a leader plan and execute a part of the plan. Sometimes it executes an old plan.
func (w *world) lead() {
	view, facts := w.view(w.rng), w.clone().facts
	planned := lease.Plan(view, facts, w.limits)
	checkRules(w.T, w.model, planned)
	checkBalance(w.T, w.model, planned)
	if w.rng.IntN(3) == 0 {
		planned = planned[:w.rng.IntN(len(planned)+1)]
	}
	if w.old != nil && w.rng.IntN(4) == 0 {
		planned, w.old = append(w.old(), planned...), nil
	}
	if w.old == nil {
		w.old = func() []lease.Action { return lease.Plan(view, facts, w.limits) }
	}
	for _, a := range planned {
		w.write(a)
	}
}

// write executes an action. The action must obey the rules in the current state, no matter when it
// was planned.
func (w *world) write(a lease.Action) {
	if l := w.leases[a.Key]; a.Kind == lease.Assign && l != nil && l.Epoch == a.Epoch {
		if !w.free(l) {
			w.Errorf("%v: though somebody may read it: %v", a, l)
		}
		for _, p := range l.Parents {
			if parent := w.leases[lease.Key{Stream: l.Stream, Shard: p}]; parent != nil && !parent.Finished() || !w.read[p] {
				w.Errorf("%v: before its parent %s is read to its end", a, p)
			}
		}
	}
	if w.apply(a) && a.Kind == lease.Assign {
		w.facts.Recent[a.Key], w.facts.Cooling[a.Key] = w.leases[a.Key].Epoch, w.leases[a.Key].Epoch
	}
}

// calmDown completes everything that is in progress. It checks that the plan then becomes empty.
func (w *world) calmDown() {
	for _, l := range w.leases {
		for _, p := range l.Parents {
			if k := (lease.Key{Stream: l.Stream, Shard: p}); w.leases[k] == nil {
				w.facts.Gone[k] = true
			}
		}
	}
	bound := 12
	if w.limits.MovesInFlight > 0 {
		bound += len(w.leases) / w.limits.MovesInFlight
	}
	for range bound {
		for s, row := range w.workers {
			if w.silent[s] && !row.Ended {
				w.facts.Dead[s] = row.Heartbeats
			}
		}
		for _, l := range w.leases {
			if w.beats(l.Revoked) {
				l.Revoked = ""
			}
		}
		w.handOver()
		clear(w.facts.Recent) // a heartbeat interval has passed
		clear(w.facts.Cooling)
		planned := w.plan()
		if len(planned) == 0 {
			checkBalance(w.T, w.model, nil)
			w.checkPeace()
			return
		}
		for _, a := range planned {
			w.write(a)
		}
	}
	w.Errorf("no rest after %d plans; the next would be %v\n%s", bound, w.plan(), w.model)
}

func (w *world) checkPeace() {
	room, held := 0, w.held()
	for s, row := range w.workers {
		if w.takes(s) && (row.MaxLeases == 0 || held[s] < row.MaxLeases) {
			room++
		}
	}
	if w.Failed() || room == 0 {
		return // leases that no session can take stay in place
	}
	for s, row := range w.workers {
		if row.Ended {
			w.Errorf("the row of the ended session %s is still there", s)
		}
	}
	for _, l := range w.leases {
		switch {
		case l.Heir != "" || l.Revoked != "":
			w.Errorf("still in a handoff: %v", l)
		case l.Owner == "" && !l.Finished() && !w.waits(l):
			w.Errorf("nobody reads %v though %d workers have room", l, room)
		case l.Owner != "" && !w.lives(l.Owner):
			w.Errorf("a dead worker has %v", l)
		case l.Owner != "" && w.workers[l.Owner].Leaving:
			w.Errorf("a leaving worker still has %v", l)
		}
	}
}
