// Package memstore keeps leases in the memory of one process. It is the reference implementation of [lease.Store]: what
// it does is what every store has to do, said as plainly as possible. It serves tests, simulations, and programs whose
// progress need not outlive them.
package memstore

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"sync"

	"github.com/weir-go/weir/lease"
	"github.com/weir-go/weir/shard"
)

// Store implements [lease.Store]. Workers share leases when they share the Store. It is safe for concurrent use; each
// call is one atomic step.
type Store struct {
	mu   sync.Mutex
	apps map[string]*application
}

var _ lease.Store = (*Store)(nil)

// New returns an empty Store.
func New() *Store { return &Store{apps: map[string]*application{}} }

// application is everything that is kept for one application.
type application struct {
	leases   map[lease.Key]*lease.Lease
	sessions map[string]*lease.Worker
	leader   string
	term     uint64
	revision uint64 // moves with every change that View must not hide
}

// app is called with the lock held.
func (s *Store) app(name string) *application {
	a := s.apps[name]
	if a == nil {
		a = &application{leases: map[lease.Key]*lease.Lease{}, sessions: map[string]*lease.Worker{}}
		s.apps[name] = a
	}
	return a
}

// Beat implements [lease.Store].
func (s *Store) Beat(ctx context.Context, app string, r lease.Report) (lease.Orders, error) {
	if err := check(ctx, r); err != nil {
		return lease.Orders{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	a := s.app(app)
	w := a.sessions[r.Session]
	if w == nil && r.First {
		w = &lease.Worker{Session: r.Session}
		a.sessions[r.Session] = w
	}
	if w == nil || w.Ended {
		return lease.Orders{}, lease.ErrSessionOver
	}
	w.Beat++
	w.Name, w.Leaving, w.MaxLeases, w.Holds = r.Name, r.Leaving, r.MaxLeases, r.Holds
	if w.Weight = r.Weight; !(w.Weight > 0) || math.IsInf(w.Weight, 1) {
		w.Weight = 1
	}
	for _, p := range r.Progress {
		a.progress(r.Session, p)
	}
	return lease.Orders{
		Held:   a.list(func(l *lease.Lease) bool { return l.Owner == r.Session }),
		Leader: a.leads(),
	}, nil
}

// View implements [lease.Store].
func (s *Store) View(ctx context.Context, app, since string) (lease.View, error) {
	if err := ctx.Err(); err != nil {
		return lease.View{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	a := s.app(app)
	v := lease.View{Revision: strconv.FormatUint(a.revision, 10), Leader: a.leads()}
	if v.Same = v.Revision == since; !v.Same {
		v.Leases = a.list(func(*lease.Lease) bool { return true })
	}
	for _, session := range slices.Sorted(maps.Keys(a.sessions)) {
		v.Workers = append(v.Workers, *a.sessions[session])
	}
	return v, nil
}

// Apply implements [lease.Store]. All actions take effect in one step, or none when one of them makes no sense.
func (s *Store) Apply(ctx context.Context, app string, actions []lease.Action) ([]bool, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	for _, act := range actions {
		if act.Kind < lease.Create || act.Kind > lease.Move {
			return nil, fmt.Errorf("memstore: %s: unknown kind of action", act)
		}
		if act.Kind == lease.Assign && act.Session == "" {
			return nil, fmt.Errorf("memstore: %s: Session is empty, name the session that shall own the lease", act)
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
	if err := ctx.Err(); err != nil {
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
	if err := check(ctx, r); err != nil {
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
			a.own(l, l.Heir)
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
	return nil
}

// check refuses a report without a session: "" stands for nobody, who owns every free lease.
func check(ctx context.Context, r lease.Report) error {
	if r.Session == "" {
		return errors.New("memstore: the report names no session")
	}
	return ctx.Err()
}

// progress carries out what session says of one lease.
func (a *application) progress(session string, p lease.Progress) {
	l := a.leases[p.Key]
	switch {
	case l == nil:
	case l.Owner == session && l.Epoch == p.Epoch:
		if p.Position.Compare(l.Position) > 0 {
			l.Position = p.Position
		}
		if p.Position.IsEnd() {
			for _, c := range p.Children {
				a.create(lease.Lease{Key: lease.Key{Stream: p.Stream, Shard: c.ID}, Parents: c.Parents, Range: c.Range,
					Epoch: 1, Position: shard.Oldest})
			}
			a.own(l, "")
		} else if p.Release {
			a.own(l, l.Heir)
		}
	case l.Revoked == session && p.Release && p.Epoch+1 == l.Epoch:
		l.Revoked = ""
		a.revision++
	}
}

// apply carries out one action and reports whether its condition held.
func (a *application) apply(act lease.Action) bool {
	switch act.Kind {
	case lease.Create:
		return a.create(act.Lease)
	case lease.EndSession:
		w := a.sessions[act.Session]
		if w == nil || w.Beat != act.Beat {
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
		return true
	case lease.Tell:
		return true // each Beat reads the leases anyway
	}

	l := a.leases[act.Key]
	if l == nil || l.Epoch != act.Epoch {
		return false
	}
	switch act.Kind {
	case lease.Assign:
		l.Revoked = ""
		a.own(l, act.Session)
	case lease.Handoff:
		if l.Owner == "" {
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
	case lease.Move:
		l.Position = act.Position
		if l.Owner != "" {
			l.Revoked = l.Owner
		}
		a.own(l, "")
	}
	a.revision++
	return true
}

// create makes a lease unless there is one of that key.
func (a *application) create(l lease.Lease) bool {
	if a.leases[l.Key] != nil {
		return false
	}
	l.Parents = slices.Clone(l.Parents)
	a.leases[l.Key] = &l
	a.revision++
	return true
}

// own makes session, or nobody for "", the owner of l and fences the one before.
func (a *application) own(l *lease.Lease, session string) {
	l.Owner, l.Heir = session, ""
	if session != "" {
		l.Last = session
	}
	l.Epoch++
	a.revision++
}

// list returns copies of the leases that want holds for, sorted by key.
func (a *application) list(want func(*lease.Lease) bool) []lease.Lease {
	var some []lease.Lease
	for _, l := range a.leases {
		if want(l) {
			c := *l
			c.Parents = slices.Clone(l.Parents)
			some = append(some, c)
		}
	}
	slices.SortFunc(some, func(x, y lease.Lease) int { return x.Key.Compare(y.Key) })
	return some
}

// leads says who leads: nobody when the session that did has ended or left.
func (a *application) leads() lease.Leader {
	w := a.sessions[a.leader]
	if w == nil || w.Ended {
		return lease.Leader{Term: a.term}
	}
	return lease.Leader{Session: a.leader, Term: a.term, Beat: w.Beat}
}
