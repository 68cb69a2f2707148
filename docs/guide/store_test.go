package guide

import (
	"cmp"
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/weir-go/weir/lease"
	"github.com/weir-go/weir/shard"
	"github.com/weir-go/weir/store/storetest"
)

// documents is a database with a text for each key, and compare-and-swap: etcd, Consul, an object
// store with conditional writes, a table.
type documents interface {
	Get(ctx context.Context, key string) (text []byte, version int64, err error) // nil, 0 if there is none
	// Swap writes a text if the version has not changed, and reports whether it did.
	Swap(ctx context.Context, key string, version int64, text []byte) (bool, error)
}

// application is the stored state of one application.
type application struct {
	Leases   []lease.Lease
	Sessions []lease.Worker
	Leader   string
	Term     uint64
	Paused   map[string]string `json:",omitempty"` // the notes of paused streams
	Revision uint64            // increases when a lease is created, deleted or finished, or changes its owner
}

// docStore keeps each application in one document. Each call reads it, changes it, and swaps it.
// That is correct, but slow with many workers, because all of them write the same document.
type docStore struct{ docs documents }

// change carries out one call: f changes the application that was read. If the swap fails, change
// calls f again with the newer application, so f must reset its results.
func (s docStore) change(ctx context.Context, app string, f func(*application) error) error {
	if err := lease.CheckApp(app); err != nil {
		return err
	}
	for {
		text, version, err := s.docs.Get(ctx, app)
		if err != nil {
			return err
		}
		var a application
		if len(text) > 0 {
			if err := json.Unmarshal(text, &a); err != nil {
				return err
			}
		}
		if err := f(&a); err != nil {
			return err
		}
		if text, err = json.Marshal(a); err != nil {
			return err
		}
		if swapped, err := s.docs.Swap(ctx, app, version, text); swapped || err != nil {
			return err
		}
	}
}

func (s docStore) Abilities() lease.Abilities { return lease.AllAbilities }

func (s docStore) Heartbeat(ctx context.Context, app string, r lease.Report) (o lease.Orders, err error) {
	if r, err = r.Check(); err != nil {
		return o, err
	}
	err = s.change(ctx, app, func(a *application) error {
		w := a.session(r.Session)
		if w == nil && r.First {
			a.Sessions = append(a.Sessions, lease.Worker{Session: r.Session})
			w = a.session(r.Session)
		}
		if w == nil || w.Ended {
			return lease.ErrSessionOver
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
		if r.Resigns != 0 && r.Resigns == a.Term && a.Leader == r.Session {
			a.Leader = ""
		}
		o = lease.Orders{Leader: a.leads()}
		for _, l := range a.Leases {
			if l.Owner == r.Session {
				o.Held = append(o.Held, l)
			}
		}
		if leader := a.session(o.Leader.Session); r.Others && leader != nil {
			o.Leader.Streams = leader.Streams
		}
		for _, other := range a.Sessions {
			if r.Others && other.Session != r.Session && !other.Ended {
				o.Others = append(o.Others, lease.SessionHeartbeat{Session: other.Session, Heartbeats: other.Heartbeats})
			}
		}
		return nil
	})
	return o, err
}

func (s docStore) View(ctx context.Context, app, since string) (v lease.View, err error) {
	err = s.change(ctx, app, func(a *application) error { // the swap proves that it is the newest
		v = lease.View{
			Revision: strconv.FormatUint(a.Revision, 10), Leases: a.Leases, Workers: a.Sessions,
			Leader: a.leads(), Paused: slices.Sorted(maps.Keys(a.Paused)), PauseNotes: a.Paused,
		}
		return nil
	})
	return v, err
}

func (s docStore) Apply(ctx context.Context, app string, actions []lease.Action) (done []bool, err error) {
	for _, act := range actions {
		if err := act.Check(); err != nil {
			return nil, err
		}
	}
	err = s.change(ctx, app, func(a *application) error {
		done = make([]bool, len(actions))
		for i, act := range actions {
			done[i] = a.apply(act)
		}
		return nil
	})
	return done, err
}

func (s docStore) Lead(ctx context.Context, app, session string, term uint64) (leads bool, err error) {
	err = s.change(ctx, app, func(a *application) error {
		if leads = a.Term == term; leads {
			a.Leader, a.Term = session, term+1
		}
		return nil
	})
	return leads, err
}

func (s docStore) Leave(ctx context.Context, app string, r lease.Report) error {
	r, err := r.Check()
	if err != nil {
		return err
	}
	return s.change(ctx, app, func(a *application) error {
		if w := a.session(r.Session); w != nil && !w.Ended {
			for _, p := range r.Progress {
				a.progress(r.Session, p)
			}
		}
		for i := range a.Leases {
			l := &a.Leases[i]
			if l.Owner == r.Session {
				a.own(l, l.NextOwner())
			}
			if l.Revoked == r.Session {
				l.Revoked = ""
				a.Revision++
			}
		}
		if a.Leader == r.Session {
			a.Leader, a.Term = "", a.Term+1
		}
		a.Sessions = slices.DeleteFunc(a.Sessions, func(w lease.Worker) bool { return w.Session == r.Session })
		return nil
	})
}

// progress applies a session's progress on a lease. It ignores any session except the owner at the
// lease's epoch: that fences late workers.
func (a *application) progress(session string, p lease.Progress) {
	l := a.lease(p.Key)
	switch {
	case l == nil:
	case l.Owner == session && l.Epoch == p.Epoch:
		if p.Position.Compare(l.Position) > 0 { // a checkpoint never goes back
			l.Position = p.Position
		}
		l.Deaths, l.Numbers = cmp.Or(p.Deaths, l.Deaths), cmp.Or(p.Numbers, l.Numbers)
		if p.Load != 0 {
			l.Load, l.Rate = p.Load, p.Rate
		}
		switch {
		case p.Position.IsEnd():
			a.own(l, "")
			born := l.Born // an insert before l moves another lease to its place
			for _, c := range p.Children {
				a.create(lease.Lease{
					Key: lease.Key{Stream: p.Stream, Shard: c.ID}, Parents: c.Parents, Range: c.Range,
					Epoch: 1, Position: shard.Oldest, Born: born,
				})
			}
		case p.Release:
			if a.own(l, l.NextOwner()); p.Stalled && l.Owner == "" {
				l.Shunned = session
			}
		}
	case l.Revoked == session && p.Release && p.Epoch+1 == l.Epoch: // an acknowledgement
		l.Revoked = ""
		a.Revision++
	}
}

// own assigns a lease to a session, or frees it for "". The epoch increases with each owner.
func (a *application) own(l *lease.Lease, session string) {
	l.Owner, l.Heir = session, ""
	if session != "" {
		l.Last, l.Shunned = session, ""
	}
	l.Epoch++
	a.Revision++
}

func (a *application) create(l lease.Lease) bool {
	at, found := slices.BinarySearchFunc(a.Leases, l.Key, func(l lease.Lease, k lease.Key) int { return l.Key.Compare(k) })
	if !found {
		a.Leases = slices.Insert(a.Leases, at, l)
		a.Revision++
	}
	return !found
}

// apply carries out an action if its condition holds.
func (a *application) apply(act lease.Action) bool {
	w := a.session(act.Session)
	switch act.Kind {
	case lease.Tell: // heartbeats read the leases anyway
		return true
	case lease.Create:
		return a.create(act.Lease)
	case lease.EndSession:
		if w == nil || w.Heartbeats != act.Heartbeats {
			return false
		}
		w.Ended = true
		return true
	case lease.Forget:
		if w == nil || !w.Ended {
			return false
		}
		a.Sessions = slices.DeleteFunc(a.Sessions, func(w lease.Worker) bool { return w.Session == act.Session })
		return true
	case lease.Drain:
		if w == nil || w.Ended {
			return false
		}
		w.Drain = act.On
		return true
	case lease.Pause:
		_, paused := a.Paused[act.Stream]
		switch {
		case !act.On:
			delete(a.Paused, act.Stream)
		case !paused && len(a.Paused) >= lease.MaxPaused:
			return false
		default:
			if a.Paused == nil {
				a.Paused = map[string]string{}
			}
			a.Paused[act.Stream] = act.Note
		}
		return true
	}

	l := a.lease(act.Key)
	if l == nil || l.Epoch != act.Epoch {
		return false
	}
	owned := l.Owner != ""
	switch act.Kind {
	case lease.Assign:
		if l.Finished() {
			return false
		}
		l.Revoked, l.Deaths = "", cmp.Or(act.Deaths, l.Deaths)
		a.own(l, act.Session)
	case lease.Handoff:
		if !owned || l.Owner == act.Session {
			return false
		}
		l.Heir = act.Session
	case lease.Revoke:
		if !owned {
			return false
		}
		l.Revoked = l.Owner
		a.own(l, "")
	case lease.Delete:
		if owned {
			return false
		}
		a.Leases = slices.DeleteFunc(a.Leases, func(l lease.Lease) bool { return l.Key == act.Key })
	case lease.Move:
		l.Position, l.Born, l.Deaths, l.Numbers = act.Position, cmp.Or(act.Born, l.Born), "", ""
		l.Revoked = cmp.Or(l.Owner, l.Revoked)
		a.own(l, "")
	case lease.Replace:
		if owned {
			return false
		}
		*l = act.Lease
	case lease.Birth:
		if l.Born != 0 {
			return false
		}
		l.Born = act.Born
	}
	a.Revision++
	return true
}

func (a *application) lease(k lease.Key) *lease.Lease {
	at, found := slices.BinarySearchFunc(a.Leases, k, func(l lease.Lease, k lease.Key) int { return l.Key.Compare(k) })
	if !found {
		return nil
	}
	return &a.Leases[at]
}

func (a *application) session(id string) *lease.Worker {
	slices.SortFunc(a.Sessions, func(x, y lease.Worker) int { return strings.Compare(x.Session, y.Session) })
	for i := range a.Sessions {
		if a.Sessions[i].Session == id {
			return &a.Sessions[i]
		}
	}
	return nil
}

// leads returns the leader, or none if its session has ended.
func (a *application) leads() lease.Leader {
	if w := a.session(a.Leader); w != nil && !w.Ended {
		return lease.Leader{Session: a.Leader, Epoch: a.Term, Heartbeats: w.Heartbeats}
	}
	return lease.Leader{Epoch: a.Term}
}

func TestContract(t *testing.T) {
	storetest.Run(t, storetest.Harness{
		Open: func(testing.TB) lease.Store { return docStore{docs: &inMemory{texts: map[string]text{}}} },
	})
}

// inMemory replaces the database in tests.
type inMemory struct {
	mu    sync.Mutex
	texts map[string]text
}

type text struct {
	of      []byte
	version int64
}

func (m *inMemory) Get(ctx context.Context, key string) ([]byte, int64, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.texts[key].of, m.texts[key].version, ctx.Err()
}

func (m *inMemory) Swap(ctx context.Context, key string, version int64, of []byte) (bool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if ctx.Err() != nil || m.texts[key].version != version {
		return false, ctx.Err()
	}
	m.texts[key] = text{of: of, version: version + 1}
	return true, nil
}

// observed calls a function for each heartbeat, and passes all other calls on unchanged.
type observed struct {
	lease.Store
	seen func(lease.Report, error)
}

func (s observed) Heartbeat(ctx context.Context, app string, r lease.Report) (lease.Orders, error) {
	o, err := s.Store.Heartbeat(ctx, app, r)
	s.seen(r, err)
	return o, err
}

func TestWrapper(t *testing.T) {
	beats := 0
	storetest.Wrapper(t, func(s lease.Store) lease.Store {
		return observed{Store: s, seen: func(lease.Report, error) { beats++ }}
	})
	if beats == 0 {
		t.Error("no heartbeat was observed")
	}
}
