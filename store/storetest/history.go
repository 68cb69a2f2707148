package storetest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/weir-go/weir/lease"
	"github.com/weir-go/weir/shard"
	"github.com/weir-go/weir/store/memstore"
)

var historyCases = []testCase{
	{"a random history ends as in memory, step by step", func(e *env) {
		h := newHistory(e)
		for range e.steps {
			if !h.step(h.once) {
				return
			}
		}
	}},
	{"a random history of lost, doubled and repeated calls ends like one without faults", func(e *env) {
		h := newHistory(e)
		for range e.steps {
			if !h.step(h.insisting) {
				return
			}
		}
	}},
	{"calls that arrive after their callers gave up do no harm", func(e *env) {
		late := Faulty(e.store, func(string) Fault { return Fault{Before: ErrLost, Later: true} })
		e.start("a", "b")
		e.owned("a", "1", "2", "3", "4", "5")
		e.must(handoff("2", 2, "b"), revoke("5", 2))
		e.beat("a", release("5", 2))
		seen, _ := e.worker("a")
		e.lead("a", 0)
		for _, call := range []func() error{
			func() error {
				_, err := late.Heartbeat(e.ctx, e.app, lease.Report{Session: "a", Name: "a", Progress: []lease.Progress{
					at("1", 2, seq(5)), {Key: k("2"), Epoch: 2, Position: seq(5), Release: true}, at("3", 2, seq(50)), at("4", 2, shard.End)}})
				return err
			},
			func() error {
				_, err := late.Apply(e.ctx, e.app, []lease.Action{assign("1", 2, "c"), revoke("2", 2), move("3", 2, seq(1)), remove("5", 3),
					{Kind: lease.EndSession, Session: "a", Heartbeats: seen.Heartbeats}, forget("a")})
				return err
			},
			func() error { _, err := late.Lead(e.ctx, e.app, "c", 1); return err },
		} {
			if err := call(); !errors.Is(err, ErrLost) {
				e.Fatal(err)
			}
		}
		// The callers repeat the lost calls, and work continues before the lost calls arrive.
		e.beat("a", at("1", 2, seq(9)), lease.Progress{Key: k("2"), Epoch: 2, Position: seq(5), Release: true}, at("3", 2, seq(50)), at("4", 2, shard.End))
		e.must(assign("1", 2, "b"), assign("5", 3, "b"), move("3", 2, seq(1)))
		e.must(assign("3", 3, "b"))
		e.lead("b", 1)
		e.beat("b", at("2", 3, seq(60)))
		e.unchanged(func() { equal(e, "late calls", late.Deliver(e.ctx), 3) })
		e.beat("a")
	}},
	{"a late Leave frees no leases of other sessions", func(e *env) {
		late := Faulty(e.store, func(string) Fault { return Fault{Before: ErrLost, Later: true} })
		e.start("a", "b")
		e.owned("a", "1", "2")
		e.lead("a", 0)
		if err := late.Leave(e.ctx, e.app, lease.Report{Session: "a", Progress: []lease.Progress{at("1", 2, seq(5)), release("2", 2)}}); !errors.Is(err, ErrLost) {
			e.Fatal(err)
		}
		e.end("a")
		e.must(assign("1", 2, "b"), assign("2", 2, "b"), forget("a"))
		e.lead("b", 1)
		e.unchanged(func() { late.Deliver(e.ctx) })
	}},
}

// history makes the same random calls to the store under test and to memstore.
type history struct {
	*env
	rng    *rand.Rand
	ref    *memstore.Store
	log    []string
	view   lease.View // the view of ref
	got    map[lease.Key]lease.Lease
	cached lease.View // the view of the store, updated by Revision
}

func newHistory(e *env) *history {
	seed := rand.Uint64()
	e.Logf("seed %d", seed)
	return &history{env: e, rng: rand.New(rand.NewPCG(seed, 0)), ref: memstore.New(), got: map[lease.Key]lease.Lease{}}
}

// A historyCall is one call to a store, derived from the state of memstore. do returns the part of
// the answer on which stores must agree.
type historyCall struct {
	name string
	do   func(ctx context.Context, s lease.Store) (string, error)
}

// step makes one call and reports whether both stores agree afterwards.
func (h *history) step(run func(historyCall) bool) bool {
	h.Helper()
	var err error
	if h.view, err = h.ref.View(h.ctx, h.app, ""); err != nil {
		h.Fatal(err)
	}
	for _, l := range h.view.Leases {
		if old, ok := h.got[l.Key]; !ok || old.Epoch != l.Epoch {
			h.got[l.Key] = l
		}
	}
	c := h.call()
	h.log = append(h.log, c.name)
	ok := run(c)
	want, err := h.ref.View(h.ctx, h.app, "")
	if err != nil {
		h.Fatal(err)
	}
	if got, want := canon(h.env.view()), canon(want); got != want {
		h.Errorf("after %s\n got\n%s\nwant\n%s", c.name, got, want)
		ok = false
	}
	v := h.since(h.cached.Revision)
	if v.Same {
		v.Leases = h.cached.Leases
	}
	h.cached = v
	if got, want := ownership(v.Leases), ownership(want.Leases); got != want {
		h.Errorf("after %s a view that builds on earlier ones shows\n%s\nwant\n%s", c.name, got, want)
		ok = false
	}
	if !ok {
		h.Errorf("history:\n%s", strings.Join(h.log[max(0, len(h.log)-15):], "\n"))
	}
	return ok
}

// once makes the call once, through a random client, and compares the answer with that of memstore.
func (h *history) once(c historyCall) bool {
	h.Helper()
	store := h.store
	if h.rng.IntN(2) == 0 {
		store = h.other
	}
	want, wantErr := c.do(h.ctx, h.ref)
	got, err := c.do(h.ctx, store)
	if got != want || errors.Is(err, lease.ErrSessionOver) != errors.Is(wantErr, lease.ErrSessionOver) || (err == nil) != (wantErr == nil) {
		h.Errorf("%s\n got %s, %v\nwant %s, %v", c.name, got, err, want, wantErr)
		return false
	}
	return true
}

// insisting repeats the call until it succeeds.
func (h *history) insisting(c historyCall) bool {
	h.Helper()
	if _, err := c.do(h.ctx, h.ref); err != nil && !errors.Is(err, lease.ErrSessionOver) {
		h.Fatal(err)
	}
	faulty := Faulty(h.store, func(string) Fault {
		switch h.rng.IntN(5) {
		case 0:
			return Fault{Before: ErrLost}
		case 1:
			return Fault{After: ErrLost}
		case 2:
			return Fault{Twice: true}
		case 3:
			return Fault{Twice: true, After: ErrLost}
		default:
			return Fault{}
		}
	})
	for {
		_, err := c.do(h.ctx, faulty)
		switch {
		case err == nil, errors.Is(err, lease.ErrSessionOver):
			return true
		case !errors.Is(err, ErrLost):
			h.Errorf("%s: %v", c.name, err)
			return false
		}
	}
}

var (
	historySessions = []string{"a", "b", "c", "d"}
	historyKeys     = func() (keys []lease.Key) {
		for _, stream := range []string{"orders", "clicks"} {
			for _, id := range []string{"0", "1", "2", "3", "4"} {
				keys = append(keys, lease.Key{Stream: stream, Shard: id})
			}
		}
		return keys
	}()
)

func pick[T any](h *history, from []T) T { return from[h.rng.IntN(len(from))] }

func (h *history) chance(percent int) bool { return h.rng.IntN(100) < percent }

func (h *history) worker(session string) (lease.Worker, bool) {
	i := slices.IndexFunc(h.view.Workers, func(w lease.Worker) bool { return w.Session == session })
	if i < 0 {
		return lease.Worker{}, false
	}
	return h.view.Workers[i], true
}

func (h *history) call() historyCall {
	session := pick(h, historySessions)
	switch n := h.rng.IntN(100); {
	case n < 45:
		_, there := h.worker(session)
		r := h.report(session)
		r.First = !there && h.chance(70) || h.chance(5)
		return historyCall{fmt.Sprintf("Heartbeat(%+v)", r), func(ctx context.Context, s lease.Store) (string, error) {
			o, err := s.Heartbeat(ctx, h.app, r)
			return h.orders(o), err
		}}
	case n < 85:
		actions := h.actions()
		return historyCall{fmt.Sprintf("Apply(%v)", actions), func(ctx context.Context, s lease.Store) (string, error) {
			actions, err := h.withBeats(ctx, s, actions)
			if err != nil {
				return "", err
			}
			done, err := s.Apply(ctx, h.app, actions)
			for i, a := range actions {
				if i < len(done) && a.Kind == lease.Tell {
					done[i] = true // it does not matter whether the session exists
				}
			}
			return fmt.Sprint(done), err
		}}
	case n < 93:
		r := h.report(session)
		return historyCall{fmt.Sprintf("Leave(%+v)", r), func(ctx context.Context, s lease.Store) (string, error) {
			return "", s.Leave(ctx, h.app, r)
		}}
	default:
		term := h.view.Leader.Epoch
		if h.chance(30) {
			term += uint64(h.rng.IntN(3)) - 1
		}
		if h.chance(15) {
			session = ""
		}
		return historyCall{fmt.Sprintf("Lead(%q, %d)", session, term), func(ctx context.Context, s lease.Store) (string, error) {
			won, err := s.Lead(ctx, h.app, session, term)
			return fmt.Sprint(won), err
		}}
	}
}

// withBeats adds the session's current heartbeat count to each EndSession, because each store has
// its own counts.
func (h *history) withBeats(ctx context.Context, s lease.Store, actions []lease.Action) ([]lease.Action, error) {
	if !slices.ContainsFunc(actions, func(a lease.Action) bool { return a.Kind == lease.EndSession }) {
		return actions, nil
	}
	v, err := s.View(ctx, h.app, "")
	if err != nil {
		return nil, err
	}
	actions = slices.Clone(actions)
	for i, a := range actions {
		if a.Kind != lease.EndSession {
			continue
		}
		n := slices.IndexFunc(v.Workers, func(w lease.Worker) bool { return w.Session == a.Session })
		if n < 0 {
			actions[i].Heartbeats = 0 // the action has no effect anyway
			continue
		}
		actions[i].Heartbeats += v.Workers[n].Heartbeats
	}
	return actions, nil
}

// orders returns an answer as text. It omits positions, throughputs, births and deaths, which may
// be out of date, and the heartbeat count of the leader.
func (h *history) orders(o lease.Orders) string {
	var b strings.Builder
	for _, l := range o.Held {
		if got, ok := h.got[l.Key]; ok && got.Epoch == l.Epoch && l.Position.Compare(got.Position) < 0 {
			fmt.Fprintf(&b, "position before that of the epoch's start, %s: ", got.Position)
		} else {
			l.Position = shard.Position{}
		}
		l.Load, l.Rate, l.Born, l.Deaths = 0, 0, 0, ""
		b.WriteString(describe(l) + "; ")
	}
	fmt.Fprintf(&b, "leader %q term %d", o.Leader.Session, o.Leader.Epoch)
	return b.String()
}

// deaths returns random deaths, usually none.
func (h *history) deaths() string {
	if !h.store.Abilities().Has(lease.NoteDeaths) || !h.chance(20) {
		return ""
	}
	return lease.Deaths{At: seq(uint64(h.rng.IntN(1000))), Count: h.rng.IntN(3)}.String()
}

// report returns a random report. It is usually valid, and sometimes concerns leases of other
// sessions.
func (h *history) report(session string) lease.Report {
	r := lease.Report{Session: session, Name: pick(h, oddNames), Leaving: h.chance(10), Weight: float64(h.rng.IntN(4)) / 2,
		MaxLeases: h.rng.IntN(3), Holds: h.rng.Uint64(),
		Times: lease.Times{Heartbeat: time.Duration(h.rng.IntN(3)) * time.Second, Failover: 5 * time.Second, Handoff: time.Duration(1+h.rng.IntN(1e6)) * time.Millisecond}}
	if h.store.Abilities().Has(lease.NoteStreams) {
		r.Streams = lease.Streams(pick(h, []string{"", "1:", "1:orders", "1:logs +orders"}))
	}
	if h.chance(10) && h.store.Abilities().Has(lease.ResignByHeartbeat) {
		r.Resigns = h.view.Leader.Epoch
	}
	for range max(0, h.rng.IntN(6)-3) {
		r.Troubles = append(r.Troubles, lease.Trouble{Key: pick(h, historyKeys), State: "stalled", Why: pick(h, oddNames),
			For: time.Duration(h.rng.IntN(1e6)) * time.Millisecond})
		if h.chance(50) && h.store.Abilities().Has(lease.NoteFailures) {
			r.Troubles[len(r.Troubles)-1].Failing = lease.Failing{At: pick(h, oddNames), Attempts: h.rng.IntN(9), Letters: h.chance(50)}
		}
	}
	for _, l := range h.view.Leases {
		p := lease.Progress{Key: l.Key, Epoch: l.Epoch, Load: lease.Load(max(0, h.rng.IntN(40)-20)), Stalled: h.chance(30)}
		if p.Load != 0 && h.store.Abilities().Has(lease.NoteRates) && h.chance(80) {
			p.Rate = uint64(p.Load.Bytes())
			p.Load = lease.LoadOf(float64(p.Rate))
		}
		switch {
		case l.Revoked == session:
			p.Epoch--
			p.Release = h.chance(50)
		case l.Owner == session && h.chance(80):
			p.Release = h.chance(15)
		case h.chance(80):
			continue
		default:
			p.Epoch += uint64(h.rng.IntN(3)) - 1
			p.Release = h.chance(50)
		}
		p.Deaths = h.deaths()
		switch h.rng.IntN(6) {
		case 0:
			p.Position = seq(uint64(h.rng.IntN(1000)))
		case 1:
			if l.Owner == session && p.Epoch == l.Epoch {
				p.Position = shard.End
				for range h.rng.IntN(3) {
					p.Children = append(p.Children, shard.Shard{ID: pick(h, historyKeys).Shard, Parents: []string{l.Shard}, Range: upper})
				}
			}
		case 2:
			p.Position, _ = shard.Part(fmt.Sprint(h.rng.IntN(1000)), uint32(h.rng.IntN(3)))
		}
		r.Progress = append(r.Progress, p)
	}
	return r
}

// actions returns random actions, at most one for each lease, usually with the right epoch.
func (h *history) actions() []lease.Action {
	var actions []lease.Action
	ends := map[string]bool{}
	for _, n := range h.rng.Perm(len(historyKeys))[:1+h.rng.IntN(4)] {
		key := historyKeys[n]
		i := slices.IndexFunc(h.view.Leases, func(l lease.Lease) bool { return l.Key == key })
		session := pick(h, historySessions)
		if i < 0 || h.chance(5) {
			actions = append(actions, lease.Action{Kind: lease.Create, Lease: lease.Lease{Key: key, Range: upper, Epoch: 1, Position: shard.Oldest,
				Load: lease.Load(h.rng.IntN(3)), Born: int64(h.rng.IntN(3))}})
			continue
		}
		l := h.view.Leases[i]
		a := lease.Action{Kind: pick(h, []lease.Kind{lease.Assign, lease.Assign, lease.Handoff, lease.Handoff, lease.Revoke, lease.Move, lease.Delete,
			lease.EndSession, lease.Forget, lease.Tell, lease.Drain, lease.Pause, lease.Replace, lease.Birth}), Key: key, Epoch: l.Epoch, Session: session}
		if h.chance(15) {
			a.Epoch += uint64(h.rng.IntN(3)) - 1
		}
		switch a.Kind {
		case lease.Assign:
			a.Deaths = h.deaths()
		case lease.Handoff:
			switch h.rng.IntN(5) {
			case 0:
				a.Session = ""
			case 1:
				a.Session = lease.Nobody
			}
		case lease.Move:
			a.Born = int64(h.rng.IntN(3))
			a.Position = pick(h, []shard.Position{shard.Oldest, shard.Latest, seq(uint64(h.rng.IntN(1000))), shard.End, instant(int64(h.rng.IntN(1000)))})
		case lease.Replace:
			a.Session = ""
			a.Lease = lease.Lease{Key: key, Epoch: a.Epoch + 1 + uint64(h.rng.IntN(2)), Position: shard.Oldest, Born: int64(h.rng.IntN(3))}
		case lease.Birth:
			a.Session, a.Born = "", 1+int64(h.rng.IntN(3))
		case lease.EndSession:
			a = lease.Action{Kind: lease.EndSession, Session: session}
			if h.chance(50) {
				a.Heartbeats-- // one less than the current count
			}
		case lease.Forget, lease.Tell:
			a = lease.Action{Kind: a.Kind, Session: session}
		case lease.Drain:
			a = drain(session, h.chance(70))
		case lease.Pause:
			a = suspend(pick(h, []string{"", "orders", "clicks"}), h.chance(60))
			if a.On && h.store.Abilities().Has(lease.NotePauses) {
				a.Note = pick(h, []string{"", "1 ada", "2 bea"})
			}
		}
		if a.Kind == lease.EndSession || a.Kind == lease.Forget || a.Kind == lease.Drain {
			// Use at most one of these actions for each session, because their results depend on
			// the order. If a Forget followed by an EndSession is repeated, both can take effect. A
			// Drain can come before or after an end.
			if ends[session] {
				continue
			}
			ends[session] = true
		}
		actions = append(actions, a)
	}
	return actions
}
