package lease_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/weir-go/weir/lease"
	"github.com/weir-go/weir/shard"
)

// model contains an application's rows and simulates its workers in a few lines. It executes plans
// according to the contract of [lease.Store], one write after the other.
type model struct {
	leases  map[lease.Key]*lease.Lease
	workers map[string]*lease.Worker
	paused  []string // sorted
	facts   lease.Facts
	limits  lease.Limits
}

func newModel() *model {
	return &model{
		leases:  map[lease.Key]*lease.Lease{},
		workers: map[string]*lease.Worker{},
		facts: lease.Facts{
			Dead: map[string]uint64{}, Ripe: map[lease.Key]uint64{}, Overdue: map[lease.Key]uint64{},
			Gone: map[lease.Key]bool{}, OutOfDate: map[string]bool{}, Forgettable: map[string]bool{}, Cooling: map[lease.Key]uint64{}, Recent: map[lease.Key]uint64{},
		},
	}
}

// view returns the view of a leader. Its rows are sorted by key, or in random order if rng is not
// nil.
func (m *model) view(rng *rand.Rand) lease.View {
	v := lease.View{Paused: slices.Clone(m.paused)}
	for _, k := range m.keys() {
		v.Leases = append(v.Leases, *m.leases[k])
	}
	for _, s := range slices.Sorted(maps.Keys(m.workers)) {
		v.Workers = append(v.Workers, *m.workers[s])
	}
	if rng != nil {
		rng.Shuffle(len(v.Leases), func(i, j int) { v.Leases[i], v.Leases[j] = v.Leases[j], v.Leases[i] })
		rng.Shuffle(len(v.Workers), func(i, j int) { v.Workers[i], v.Workers[j] = v.Workers[j], v.Workers[i] })
	}
	return v
}

func (m *model) keys() []lease.Key { return slices.SortedFunc(maps.Keys(m.leases), lease.Key.Compare) }

func (m *model) plan() []lease.Action { return lease.Plan(m.view(nil), m.facts, m.limits) }

// apply executes one action if its condition is true.
func (m *model) apply(a lease.Action) bool {
	l, w := m.leases[a.Key], m.workers[a.Session]
	switch a.Kind {
	case lease.Assign:
		if l == nil || l.Epoch != a.Epoch || l.Finished() {
			return false
		}
		l.Owner, l.Last, l.Heir, l.Revoked, l.Shunned = a.Session, a.Session, "", "", ""
		l.Epoch++
	case lease.Handoff:
		if l == nil || l.Epoch != a.Epoch || l.Owner == "" || l.Owner == a.Session {
			return false
		}
		l.Heir = a.Session
		delete(m.facts.Overdue, a.Key) // a new request starts a new wait
	case lease.Revoke:
		if l == nil || l.Epoch != a.Epoch || l.Owner == "" {
			return false
		}
		l.Owner, l.Heir, l.Revoked = "", "", l.Owner
		l.Epoch++
	case lease.EndSession:
		if w == nil || w.Ended || w.Heartbeats != a.Heartbeats {
			return false
		}
		w.Ended = true
		// No time passes in a model. The rows of randomModel contain the effects of delays.
		m.facts.Forgettable[a.Session] = true
	case lease.Forget:
		if w == nil || !w.Ended {
			return false
		}
		delete(m.workers, a.Session)
	case lease.Tell:
		delete(m.facts.OutOfDate, a.Session)
	default:
		panic(fmt.Sprintf("Plan has no business with %q", a))
	}
	return true
}

// release executes the last report of the owner of k about k.
func (m *model) release(k lease.Key) {
	l := m.leases[k]
	l.Owner, l.Heir = l.NextOwner(), ""
	if l.Owner != "" {
		l.Last, l.Shunned = l.Owner, ""
	}
	l.Epoch++
}

// stall lets the owner of k give up k, because it makes no progress.
func (m *model) stall(k lease.Key) {
	owner := m.leases[k].Owner
	m.release(k)
	if l := m.leases[k]; l.Owner == "" {
		l.Shunned = owner
	}
}

// rests reports whether no session may hold the lease.
func (m *model) rests(l *lease.Lease) bool {
	return slices.Contains(m.paused, "") || slices.Contains(m.paused, l.Stream)
}

// finish reports the end of a shard on behalf of its owner, with the given children.
func (m *model) finish(k lease.Key, children ...lease.Lease) {
	for _, c := range children {
		if m.leases[c.Key] == nil {
			c.Epoch, c.Position = 1, shard.Oldest
			m.leases[c.Key] = &c
		}
	}
	l := m.leases[k]
	l.Owner, l.Heir, l.Position = "", "", shard.End
	l.Epoch++
}

// leave stops a worker in an orderly way. Its leases go to their heirs or become free.
func (m *model) leave(session string) {
	for _, l := range m.leases {
		if l.Owner == session {
			m.release(l.Key)
		}
		if l.Revoked == session {
			l.Revoked = ""
		}
	}
	delete(m.workers, session)
}

// handOver lets every live owner execute the requested handoffs.
func (m *model) handOver() {
	for _, k := range m.keys() {
		if l := m.leases[k]; l.Heir != "" && m.lives(l.Owner) {
			m.release(k)
		}
	}
}

// lives reports whether the leader believes that the session sends heartbeats.
func (m *model) lives(session string) bool {
	w := m.workers[session]
	if w == nil || w.Ended {
		return false
	}
	beat, dead := m.facts.Dead[session]
	return !dead || w.Heartbeats > beat
}

// takes reports whether the session may get leases.
func (m *model) takes(session string) bool {
	if !m.lives(session) || m.workers[session].Leaving {
		return false
	}
	return !m.drains(session)
}

// drains reports whether the session must be emptied while other sessions can take its leases.
func (m *model) drains(session string) bool {
	if !m.lives(session) || m.workers[session].Leaving || !m.workers[session].Drain {
		return false
	}
	for s, w := range m.workers {
		if m.lives(s) && !w.Leaving && !w.Drain {
			return true
		}
	}
	return false
}

// cutOff reports whether the session is cut off while another session can take leases and is not
// cut off.
func (m *model) cutOff(session string) bool {
	for s, w := range m.workers {
		if m.takes(s) && !w.CutOff() {
			return m.workers[session].CutOff()
		}
	}
	return false
}

// recent reports whether the lease has just changed owner or was just finished.
func (m *model) recent(l *lease.Lease) bool {
	at, ok := m.facts.Recent[l.Key]
	return ok && at == l.Epoch
}

// finished reports whether the session has just finished a parent of a lease. If so, it may get the
// lease, within its cap.
func (m *model) finished(session string, child *lease.Lease) bool {
	if !m.takes(session) || m.cutOff(session) {
		return false
	}
	return slices.ContainsFunc(child.Parents, func(p string) bool {
		parent := m.leases[lease.Key{Stream: child.Stream, Shard: p}]
		return parent != nil && parent.Finished() && m.recent(parent) && parent.Last == session
	})
}

// waits is a second implementation of the rule about parents.
func (m *model) waits(l *lease.Lease) bool {
	hadOwner := l.Last != "" || l.Owner != "" || l.Revoked != ""
	for _, p := range l.Parents {
		k := lease.Key{Stream: l.Stream, Shard: p}
		parent, here := m.leases[k]
		if here && (!parent.Finished() || m.stillValid(parent)) || !here && !hadOwner && !m.facts.Gone[k] {
			return true
		}
	}
	return false
}

// stillValid reports whether a revoked lease may still be valid for its old owner.
func (m *model) stillValid(l *lease.Lease) bool {
	w := m.workers[l.Revoked]
	at, ripe := m.facts.Ripe[l.Key]
	return w != nil && !w.Ended && !(ripe && at == l.Epoch)
}

// held returns the number of leases for each owner.
func (m *model) held() map[string]int {
	held := map[string]int{}
	for _, l := range m.leases {
		if l.Owner != "" {
			held[l.Owner]++
		}
	}
	return held
}

// String returns a line for each session with its leases, a line for free leases, and a line for
// finished leases.
func (m *model) String() string {
	var b strings.Builder
	name := func(k lease.Key) string { return strings.TrimPrefix(k.String(), defaultStream+"/") }
	line := func(who string, what []string) {
		fmt.Fprintf(&b, "%s:", who)
		for _, w := range what {
			b.WriteString(" " + w)
		}
		b.WriteString("\n")
	}
	sessions := map[string]bool{}
	for s := range m.workers {
		sessions[s] = true
	}
	for _, l := range m.leases {
		if l.Owner != "" {
			sessions[l.Owner] = true
		}
	}
	for _, s := range slices.Sorted(maps.Keys(sessions)) {
		var owned []string
		for _, k := range m.keys() {
			if l := m.leases[k]; l.Owner == s && l.Heir != "" {
				owned = append(owned, name(k)+"→"+strings.Replace(l.Heir, lease.Nobody, "nobody", 1))
			} else if l.Owner == s {
				owned = append(owned, name(k))
			}
		}
		if len(owned) == 0 {
			owned = []string{"-"}
		}
		w := m.workers[s]
		switch {
		case w == nil:
			s += " (no row)"
		case w.Ended:
			s += " (ended)"
		case w.Leaving:
			s += " (leaving)"
		case w.Drain:
			s += " (to be drained)"
		case w.CutOff():
			s += " (cut off)"
		}
		line(s, owned)
	}
	var nobody, finished []string
	for _, k := range m.keys() {
		switch l := m.leases[k]; {
		case l.Finished():
			finished = append(finished, name(k))
		case l.Owner != "":
		case l.Revoked != "":
			nobody = append(nobody, fmt.Sprintf("%s (revoked from %s)", name(k), l.Revoked))
		case m.rests(l):
			nobody = append(nobody, name(k)+" (paused)")
		case m.waits(l):
			nobody = append(nobody, fmt.Sprintf("%s (waits for %s)", name(k), strings.Join(l.Parents, " and ")))
		default:
			nobody = append(nobody, name(k))
		}
	}
	if len(nobody) > 0 {
		line("nobody", nobody)
	}
	if len(finished) > 0 {
		line("finished", finished)
	}
	return b.String()
}
