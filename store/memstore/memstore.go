// Package memstore keeps leases in the memory of one process. It is the reference implementation of
// [lease.Store] and as simple as possible. Every store must behave in the same way. Package
// memstore is for tests, simulations, and programs whose progress need not outlive their process.
package memstore

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/weir-go/weir/lease"
	"github.com/weir-go/weir/shard"
)

// Store implements [lease.Store]. Workers with the same Store share leases. It is safe for
// concurrent use. Each call is one atomic step.
type Store struct {
	mu      sync.Mutex
	apps    map[string]*application
	removed int // total number of removed applications
}

var (
	_ lease.Store     = (*Store)(nil)
	_ lease.Admin     = (*Store)(nil)
	_ lease.Historian = (*Store)(nil)
)

// New returns an empty Store.
func New() *Store { return &Store{apps: map[string]*application{}} }

// application contains the stored data of one application.
type application struct {
	leases   map[lease.Key]*lease.Lease
	sorted   []*lease.Lease            // all leases by key; nil if unknown
	owned    map[string][]*lease.Lease // the same leases by owner; nil if unknown
	sessions map[string]*lease.Worker
	workers  []*lease.Worker // sorted by session; nil if unknown
	leader   string
	term     uint64
	paused   map[string]string // the notes of paused streams
	history  map[historyKey][]byte
	life     int    // distinguishes it from a removed application with the same name
	revision uint64 // incremented with every change that View must not hide
}

// app returns an application. The caller holds the lock.
func (s *Store) app(name string) *application {
	a := s.apps[name]
	if a == nil {
		a = &application{leases: map[lease.Key]*lease.Lease{}, sessions: map[string]*lease.Worker{},
			paused: map[string]string{}, history: map[historyKey][]byte{}, life: s.removed}
		s.apps[name] = a
	}
	return a
}

// Abilities implements [lease.Store].
func (s *Store) Abilities() lease.Abilities {
	return lease.WatchHeartbeats | lease.ResignByHeartbeat | lease.NoteFailures | lease.NoteDeaths | lease.KeepHistory | lease.NoteStreams |
		lease.NoteRates | lease.NotePauses | lease.NoteNumbers
}

// Heartbeat implements [lease.Store].
func (s *Store) Heartbeat(ctx context.Context, app string, r lease.Report) (lease.Orders, error) {
	r, err := check(ctx, app, r)
	if err != nil {
		return lease.Orders{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	a := s.app(app)
	w := a.sessions[r.Session]
	if w == nil && r.First {
		w = &lease.Worker{Session: r.Session}
		a.sessions[r.Session], a.workers = w, nil
	}
	if w == nil || w.Ended {
		return lease.Orders{}, lease.ErrSessionOver
	}
	if r.First {
		w.Times = r.Times
	}
	w.Heartbeats++
	w.Name, w.Leaving, w.Weight, w.MaxLeases, w.Holds, w.Troubles = r.Name, r.Leaving, r.Weight, r.MaxLeases, r.Holds, r.Troubles
	w.Streams = r.Streams
	for _, p := range r.Progress {
		a.progress(r.Session, p)
	}
	if r.Resigns != 0 && a.leader == r.Session && a.term == r.Resigns {
		a.leader = ""
	}
	o := lease.Orders{Held: a.list(r.Session), Leader: a.leads()}
	if r.Others {
		o.Others = a.others(r.Session)
		if o.Leader.Session != "" {
			o.Leader.Streams = a.sessions[o.Leader.Session].Streams
		}
	}
	return o, nil
}

// View implements [lease.Store].
func (s *Store) View(ctx context.Context, app, since string) (lease.View, error) {
	if err := cmp.Or(ctx.Err(), lease.CheckApp(app)); err != nil {
		return lease.View{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	a := s.app(app)
	v := lease.View{
		Revision: strconv.Itoa(a.life) + "." + strconv.FormatUint(a.revision, 10), Leader: a.leads(),
	}
	if len(a.paused) > 0 {
		v.Paused = slices.Sorted(maps.Keys(a.paused))
		v.PauseNotes = maps.Clone(a.paused)
	}
	if v.Same = v.Revision == since; !v.Same {
		v.Leases = a.list("")
	}
	all := a.everybody()
	v.Workers = make([]lease.Worker, len(all))
	for i, w := range all {
		v.Workers[i] = *w
		v.Workers[i].Troubles = slices.Clone(w.Troubles)
	}
	return v, nil
}

// Apply implements [lease.Store]. All actions take effect in one step. If an action is invalid,
// Apply executes no action.
func (s *Store) Apply(ctx context.Context, app string, actions []lease.Action) ([]bool, error) {
	if err := cmp.Or(ctx.Err(), lease.CheckApp(app)); err != nil {
		return nil, err
	}
	for _, act := range actions {
		if err := act.Check(); err != nil {
			return nil, err
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	a := s.app(app)
	done := make([]bool, len(actions))
	for i, act := range actions {
		done[i] = a.apply(act)
	}
	return done, nil
}

// Lead implements [lease.Store].
func (s *Store) Lead(ctx context.Context, app, session string, term uint64) (bool, error) {
	if err := cmp.Or(ctx.Err(), lease.CheckApp(app)); err != nil {
		return false, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	a := s.app(app)
	if a.term != term {
		return false, nil
	}
	a.leader, a.term = session, term+1
	return true, nil
}

// Leave implements [lease.Store].
func (s *Store) Leave(ctx context.Context, app string, r lease.Report) error {
	r, err := check(ctx, app, r)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	a := s.app(app)
	if w := a.sessions[r.Session]; w != nil && !w.Ended {
		for _, p := range r.Progress {
			a.progress(r.Session, p)
		}
	}
	for _, l := range a.leases {
		if l.Owner == r.Session {
			a.own(l, l.NextOwner())
		}
		if l.Revoked == r.Session {
			l.Revoked = ""
			a.revision++
		}
	}
	if a.leader == r.Session {
		a.leader, a.term = "", a.term+1
	}
	delete(a.sessions, r.Session)
	a.workers = nil
	return nil
}

// Apps implements [lease.Admin].
func (s *Store) Apps(ctx context.Context) ([]string, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	var names []string
	for name, a := range s.apps {
		if len(a.leases)+len(a.sessions)+len(a.paused) > 0 || a.term > 0 {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names, nil
}

// Remove implements [lease.Admin].
func (s *Store) Remove(ctx context.Context, app string) error {
	if err := cmp.Or(ctx.Err(), lease.CheckApp(app)); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.apps, app)
	s.removed++
	return nil
}

func check(ctx context.Context, app string, r lease.Report) (lease.Report, error) {
	if err := cmp.Or(ctx.Err(), lease.CheckApp(app)); err != nil {
		return r, err
	}
	return r.Check()
}

// progress executes a session's report about one lease.
func (a *application) progress(session string, p lease.Progress) {
	l := a.leases[p.Key]
	switch {
	case l == nil:
	case l.Owner == session && l.Epoch == p.Epoch:
		if p.Position.Compare(l.Position) > 0 {
			l.Position = p.Position
		}
		if p.Load != 0 {
			l.Load, l.Rate = p.Load, p.Rate
		}
		if p.Deaths != "" {
			l.Deaths = p.Deaths
		}
		l.Numbers = cmp.Or(p.Numbers, l.Numbers)
		if p.Position.IsEnd() {
			for _, c := range p.Children {
				a.create(lease.Lease{Key: lease.Key{Stream: p.Stream, Shard: c.ID}, Parents: c.Parents, Range: c.Range,
					Epoch: 1, Position: shard.Oldest, Born: l.Born})
			}
			a.own(l, "")
		} else if p.Release {
			a.own(l, l.NextOwner())
			if p.Stalled && l.Owner == "" {
				l.Shunned = session
			}
		}
	case l.Revoked == session && p.Release && p.Epoch+1 == l.Epoch:
		l.Revoked = ""
		a.revision++
	}
}

// apply executes one action and reports whether its condition was true.
func (a *application) apply(act lease.Action) bool {
	switch act.Kind {
	case lease.Create:
		return a.create(act.Lease)
	case lease.EndSession:
		w := a.sessions[act.Session]
		if w == nil || w.Heartbeats != act.Heartbeats {
			return false
		}
		w.Ended = true
		return true
	case lease.Forget:
		w := a.sessions[act.Session]
		if w == nil || !w.Ended {
			return false
		}
		delete(a.sessions, act.Session)
		a.workers = nil
		return true
	case lease.Tell:
		return true // each Heartbeat reads the leases anyway
	case lease.Drain:
		w := a.sessions[act.Session]
		if w == nil || w.Ended {
			return false
		}
		w.Drain = act.On
		return true
	case lease.Pause:
		return a.pause(act)
	default:
		return a.changeLease(act)
	}
}

// changeLease executes an action on an existing lease, which must have the action's epoch.
func (a *application) changeLease(act lease.Action) bool {
	l := a.leases[act.Key]
	if l == nil || l.Epoch != act.Epoch {
		return false
	}
	switch act.Kind {
	case lease.Assign:
		if l.Finished() {
			return false
		}
		l.Revoked, l.Deaths = "", cmp.Or(act.Deaths, l.Deaths)
		a.own(l, act.Session)
	case lease.Handoff:
		if l.Owner == "" || l.Owner == act.Session {
			return false
		}
		l.Heir = act.Session
	case lease.Revoke:
		if l.Owner == "" {
			return false
		}
		l.Revoked = l.Owner
		a.own(l, "")
	case lease.Delete:
		if l.Owner != "" {
			return false
		}
		delete(a.leases, act.Key)
		a.sorted, a.owned = nil, nil
	case lease.Move:
		l.Position, l.Deaths, l.Numbers = act.Position, "", ""
		if act.Born != 0 {
			l.Born = act.Born
		}
		if l.Owner != "" {
			l.Revoked = l.Owner
		}
		a.own(l, "")
	case lease.Replace:
		if l.Owner != "" {
			return false
		}
		*l, a.owned = act.Lease, nil
		l.Parents = slices.Clone(act.Lease.Parents)
	case lease.Birth:
		if l.Born != 0 {
			return false
		}
		l.Born = act.Born
	}
	a.revision++
	return true
}

func (a *application) pause(act lease.Action) bool {
	_, paused := a.paused[act.Stream]
	switch {
	case !act.On:
		delete(a.paused, act.Stream)
	case len(a.paused) >= lease.MaxPaused && !paused:
		return false
	default:
		a.paused[act.Stream] = act.Note
	}
	return true
}

// create creates a lease unless a lease with the same key exists.
func (a *application) create(l lease.Lease) bool {
	if a.leases[l.Key] != nil {
		return false
	}
	l.Parents = slices.Clone(l.Parents)
	a.leases[l.Key], a.sorted, a.owned = &l, nil, nil
	a.revision++
	return true
}

// own makes session the owner of l and fences the previous owner. If session is "", the lease has
// no owner afterwards.
func (a *application) own(l *lease.Lease, session string) {
	l.Owner, l.Heir, a.owned = session, "", nil
	if session != "" {
		l.Last, l.Shunned = session, ""
	}
	l.Epoch++
	a.revision++
}

// list returns copies of the owner's leases, sorted by key. If owner is "", it returns all leases.
func (a *application) list(owner string) []lease.Lease {
	if a.sorted == nil {
		a.sorted = slices.SortedFunc(maps.Values(a.leases), func(x, y *lease.Lease) int { return x.Key.Compare(y.Key) })
	}
	of := a.sorted
	if owner != "" {
		if a.owned == nil {
			a.owned = map[string][]*lease.Lease{}
			for _, l := range a.sorted {
				a.owned[l.Owner] = append(a.owned[l.Owner], l)
			}
		}
		of = a.owned[owner]
	}
	if len(of) == 0 {
		return nil
	}
	parents := 0
	for _, l := range of {
		parents += len(l.Parents)
	}
	// Use one allocation for all parents, because there may be many leases.
	some, all := make([]lease.Lease, 0, len(of)), make([]string, 0, parents)
	for _, l := range of {
		some = append(some, *l)
		if l.Parents != nil {
			from := len(all)
			all = append(all, l.Parents...)
			some[len(some)-1].Parents = all[from:len(all):len(all)]
		}
	}
	return some
}

// everybody returns all sessions in sorted order.
func (a *application) everybody() []*lease.Worker {
	if a.workers == nil {
		a.workers = slices.SortedFunc(maps.Values(a.sessions), func(x, y *lease.Worker) int { return strings.Compare(x.Session, y.Session) })
	}
	return a.workers
}

// others returns the heartbeat counts of all live sessions except the given one.
func (a *application) others(session string) []lease.SessionHeartbeat {
	all := a.everybody()
	others := make([]lease.SessionHeartbeat, 0, len(all))
	for _, w := range all {
		if w.Session != session && !w.Ended {
			others = append(others, lease.SessionHeartbeat{Session: w.Session, Heartbeats: w.Heartbeats})
		}
	}
	return others
}

// leads returns the leader, or the zero value if the leader's session has ended or left.
func (a *application) leads() lease.Leader {
	w := a.sessions[a.leader]
	if w == nil || w.Ended {
		return lease.Leader{Epoch: a.term}
	}
	return lease.Leader{Session: a.leader, Epoch: a.term, Heartbeats: w.Heartbeats}
}
