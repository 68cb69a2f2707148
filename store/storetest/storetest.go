// Package storetest tests the contract of [lease.Store]. A test of a store runs it as follows:
//
//	func TestContract(t *testing.T) {
//		storetest.Run(t, storetest.Harness{Open: func(t testing.TB) lease.Store { ... }})
//	}
//
// The suite compares a store with the text of the contract and with memstore. It runs cases with
// one writer and with many, and with one client of the store and with two. One of two clients may
// be a worker of the previous version, as in a rolling deployment.
//
// The suite grows with the contract. If the [lease.Abilities] of a store lack the ability of a new
// field, the store may ignore the field. The store's calls must still work as before if the field
// is set.
//
// [Wrapper] tests wrappers of a store. [Faulty] makes the calls of a store fail, get lost or happen
// twice, for tests of code that uses a store.
package storetest

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/weir-go/weir/internal/previous"
	"github.com/weir-go/weir/lease"
	"github.com/weir-go/weir/shard"
)

// Harness gives the suite access to the store under test.
type Harness struct {
	// Open returns a client of a store that is set up, and closes it with t.Cleanup. It is called
	// once for each case, possibly concurrently. The stores may share their data, because each case
	// uses its own application name.
	Open func(t testing.TB) lease.Store
	// Again opens another client of the data of s, as another process would. s is a result of Open.
	// If Again is nil, the suite uses s itself. Leave Again nil for a store inside one process.
	Again func(t testing.TB, s lease.Store) lease.Store
	// Steps is the length of the random histories. The default is 1,000. A slow store may use
	// fewer.
	Steps int
}

// A testCase is one case of the suite.
type testCase struct {
	name string
	run  func(*env)
}

// Run runs the whole suite, each case as a parallel subtest.
func Run(t *testing.T, h Harness) {
	groups := []struct {
		name     string
		cases    []testCase
		previous bool // the other client is of the previous version
	}{
		{"abilities", abilityCases, false},
		{"session", sessionCases, false},
		{"progress", progressCases, false},
		{"end", endCases, false},
		{"action", actionCases, false},
		{"leave", leaveCases, false},
		{"leader", leaderCases, false},
		{"watch", watchCases, false},
		{"resign", resignCases, false},
		{"view", viewCases, false},
		{"wish", wishCases, false},
		{"deaths", append(deaths.cases(), assignedDeaths...), false},
		{"notes", noteCases, false},
		{"numbers", append(numbers.cases(), endedNumbers...), false},
		{"streams", streamCases, false},
		{"admin", adminCases, false},
		{"chunks", chunkCases, false},
		{"name", nameCases, false},
		{"size", sizeCases, false},
		{"history", historyCases, false},
		{"race", raceCases, false},
		{"versions", slices.Concat(versionCases, raceCases), true},
	}
	for _, g := range groups {
		t.Run(g.name, func(t *testing.T) {
			for _, c := range g.cases {
				t.Run(c.name, func(t *testing.T) {
					t.Parallel()
					e := newEnv(t, h)
					if g.previous {
						e.other = previous.Client(e.other)
					}
					c.run(e)
				})
			}
		})
	}
}

// env is one case's application in the store under test. Its methods fail the test if the store
// returns an unexpected error.
type env struct {
	testing.TB
	ctx   context.Context
	store lease.Store
	other lease.Store // another client of the same data
	app   string
	steps int
}

func newEnv(t testing.TB, h Harness) *env {
	e := &env{TB: t, ctx: t.Context(), store: h.Open(t), app: "storetest-" + rand.Text(), steps: h.Steps}
	e.other = e.store
	if h.Again != nil {
		e.other = h.Again(t, e.store)
	}
	if e.steps <= 0 {
		e.steps = 1000
	}
	return e
}

// in returns e for another application.
func (e *env) in(app string) *env {
	c := *e
	c.app = app
	return &c
}

// beat sends an ordinary heartbeat.
func (e *env) beat(session string, progress ...lease.Progress) lease.Orders {
	e.Helper()
	return e.report(lease.Report{Session: session, Name: session, Progress: progress})
}

func (e *env) report(r lease.Report) lease.Orders {
	e.Helper()
	o, err := e.store.Heartbeat(e.ctx, e.app, r)
	if err != nil {
		e.Fatalf("Heartbeat(%s): %v", r.Session, err)
	}
	if !slices.IsSortedFunc(o.Held, func(a, b lease.Lease) int { return a.Key.Compare(b.Key) }) {
		e.Errorf("Heartbeat(%s): orders are not sorted by key: %v", r.Session, o.Held)
	}
	return o
}

// over sends a heartbeat that the store must reject.
func (e *env) over(r lease.Report) {
	e.Helper()
	o, err := e.store.Heartbeat(e.ctx, e.app, r)
	if !errors.Is(err, lease.ErrSessionOver) {
		e.Fatalf("Heartbeat(%s) = %v, %v, want ErrSessionOver", r.Session, o, err)
	}
}

// start sends the first heartbeats of sessions.
func (e *env) start(sessions ...string) {
	e.Helper()
	for _, s := range sessions {
		e.report(lease.Report{Session: s, Name: s, First: true})
	}
}

func (e *env) apply(actions ...lease.Action) []bool {
	e.Helper()
	done, err := e.store.Apply(e.ctx, e.app, actions)
	if err != nil {
		e.Fatalf("Apply(%v): %v", actions, err)
	}
	if len(done) != len(actions) {
		e.Fatalf("Apply of %d actions returned %d results", len(actions), len(done))
	}
	return done
}

// must applies actions in one call. All of them must take effect.
func (e *env) must(actions ...lease.Action) {
	e.Helper()
	if i := slices.Index(e.apply(actions...), false); i >= 0 {
		e.Fatalf("%s took no effect", actions[i])
	}
}

// refused applies actions that must not take effect. It checks that nothing has changed.
func (e *env) refused(actions ...lease.Action) {
	e.Helper()
	e.unchanged(func() {
		e.Helper()
		for i, done := range e.apply(actions...) {
			if done {
				e.Errorf("%s reports that it took effect", actions[i])
			}
		}
	})
}

// unchanged checks that do changes nothing in a view except heartbeat counts.
func (e *env) unchanged(do func()) {
	e.Helper()
	before := canon(e.view())
	do()
	if after := canon(e.view()); after != before {
		e.Errorf("something changed\nbefore:\n%s\nafter:\n%s", before, after)
	}
}

func (e *env) lead(session string, term uint64) bool {
	e.Helper()
	won, err := e.store.Lead(e.ctx, e.app, session, term)
	if err != nil {
		e.Fatalf("Lead(%s, %d): %v", session, term, err)
	}
	return won
}

func (e *env) leave(session string, progress ...lease.Progress) {
	e.Helper()
	if err := e.store.Leave(e.ctx, e.app, lease.Report{Session: session, Name: session, Progress: progress}); err != nil {
		e.Fatalf("Leave(%s): %v", session, err)
	}
}

// view returns a full view.
func (e *env) view() lease.View {
	e.Helper()
	return e.since("")
}

func (e *env) since(revision string) lease.View {
	e.Helper()
	v, err := e.store.View(e.ctx, e.app, revision)
	if err != nil {
		e.Fatalf("View(%q): %v", revision, err)
	}
	if revision == "" && v.Same {
		e.Fatal("View without an earlier revision says Same")
	}
	return v
}

// find returns the lease k from a new view, or false if it does not exist.
func (e *env) find(k lease.Key) (lease.Lease, bool) {
	e.Helper()
	v := e.view()
	i := slices.IndexFunc(v.Leases, func(l lease.Lease) bool { return l.Key == k })
	if i < 0 {
		return lease.Lease{}, false
	}
	return v.Leases[i], true
}

// want checks that the store contains exactly the lease l.
func (e *env) want(l lease.Lease) {
	e.Helper()
	got, ok := e.find(l.Key)
	if !ok {
		e.Errorf("lease %s is not there", l.Key)
	} else if describe(got) != describe(l) {
		e.Errorf("lease\n got %s\nwant %s", describe(got), describe(l))
	}
}

// worker returns the row of session from a new view, or false if it does not exist.
func (e *env) worker(session string) (lease.Worker, bool) {
	e.Helper()
	v := e.view()
	i := slices.IndexFunc(v.Workers, func(w lease.Worker) bool { return w.Session == session })
	if i < 0 {
		return lease.Worker{}, false
	}
	return v.Workers[i], true
}

// held checks that orders contain exactly these keys.
func (e *env) held(o lease.Orders, keys ...lease.Key) {
	e.Helper()
	var got []lease.Key
	for _, l := range o.Held {
		got = append(got, l.Key)
	}
	keys = slices.SortedFunc(slices.Values(keys), lease.Key.Compare)
	if !slices.Equal(got, keys) {
		e.Errorf("held %v, want %v", got, keys)
	}
}

// end marks a session as ended, whatever its heartbeat count is.
func (e *env) end(session string) {
	e.Helper()
	w, ok := e.worker(session)
	if !ok {
		e.Fatalf("session %s has no row", session)
	}
	e.must(lease.Action{Kind: lease.EndSession, Session: session, Heartbeats: w.Heartbeats})
}

// k returns the key of a plain lease.
func k(id string) lease.Key { return lease.Key{Stream: "orders", Shard: id} }

// seq returns the position after record n.
func seq(n uint64) shard.Position {
	p, err := shard.After(strconv.FormatUint(n, 10))
	if err != nil {
		panic(err)
	}
	return p
}

var upper = shard.HashRange{Start: shard.HashKey{Hi: 1 << 63}, End: shard.MaxHashKey}

// create returns an action that creates a plain lease without an owner at epoch 1.
func create(id string) lease.Action {
	return lease.Action{Kind: lease.Create, Lease: fresh(id)}
}

func fresh(id string) lease.Lease {
	return lease.Lease{Key: k(id), Range: upper, Epoch: 1, Position: shard.Oldest}
}

func assign(id string, epoch uint64, to string) lease.Action {
	return lease.Action{Kind: lease.Assign, Key: k(id), Epoch: epoch, Session: to}
}

func handoff(id string, epoch uint64, to string) lease.Action {
	return lease.Action{Kind: lease.Handoff, Key: k(id), Epoch: epoch, Session: to}
}

func revoke(id string, epoch uint64) lease.Action {
	return lease.Action{Kind: lease.Revoke, Key: k(id), Epoch: epoch}
}

func remove(id string, epoch uint64) lease.Action {
	return lease.Action{Kind: lease.Delete, Key: k(id), Epoch: epoch}
}

func move(id string, epoch uint64, to shard.Position) lease.Action {
	return lease.Action{Kind: lease.Move, Key: k(id), Epoch: epoch, Position: to}
}

func drain(session string, on bool) lease.Action {
	return lease.Action{Kind: lease.Drain, Session: session, On: on}
}

func suspend(stream string, on bool) lease.Action {
	return lease.Action{Kind: lease.Pause, Stream: stream, On: on}
}

func forget(session string) lease.Action { return lease.Action{Kind: lease.Forget, Session: session} }

func at(id string, epoch uint64, p shard.Position) lease.Progress {
	return lease.Progress{Key: k(id), Epoch: epoch, Position: p}
}

func release(id string, epoch uint64) lease.Progress {
	return lease.Progress{Key: k(id), Epoch: epoch, Release: true}
}

// describe returns a complete lease as one line.
func describe(l lease.Lease) string {
	return fmt.Sprintf("%q/%q parents=%q range=%s epoch=%d owner=%q heir=%q revoked=%q last=%q shunned=%q at=%s load=%d rate=%d born=%d deaths=%q numbers=%q",
		l.Stream, l.Shard, l.Parents, l.Range, l.Epoch, l.Owner, l.Heir, l.Revoked, l.Last, l.Shunned, l.Position, l.Load, l.Rate, l.Born, l.Deaths, l.Numbers)
}

// canon returns a view as text in a fixed order, without heartbeat counts and the revision.
func canon(v lease.View) string {
	var lines []string
	for _, l := range v.Leases {
		lines = append(lines, "lease "+describe(l))
	}
	for _, w := range v.Workers {
		w.Heartbeats = 0
		lines = append(lines, fmt.Sprintf("worker %+v", w))
	}
	slices.Sort(lines)
	if len(v.Paused) > 0 {
		lines = append(lines, fmt.Sprintf("paused %q", v.Paused))
		for _, stream := range v.Paused {
			if note := v.PauseNotes[stream]; note != "" {
				lines = append(lines, fmt.Sprintf("note of %q: %q", stream, note))
			}
		}
	}
	return strings.Join(append(lines, fmt.Sprintf("leader %q term %d", v.Leader.Session, v.Leader.Epoch)), "\n")
}

// ownership returns the part of leases that View must not hide: everything except checkpoints of
// unfinished leases, loads, deaths and numbers.
func ownership(leases []lease.Lease) string {
	var lines []string
	for _, l := range leases {
		if !l.Finished() {
			l.Position = shard.Position{}
		}
		l.Load, l.Rate, l.Deaths, l.Numbers = 0, 0, "", ""
		lines = append(lines, describe(l))
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

// equal reports a difference between two values.
func equal[T any](e *env, what string, got, want T) {
	e.Helper()
	if !reflect.DeepEqual(got, want) {
		e.Errorf("%s\n got %+v\nwant %+v", what, got, want)
	}
}
