package group

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weir-go/weir/event"
	"github.com/weir-go/weir/lease"
	"github.com/weir-go/weir/shard"
	"github.com/weir-go/weir/store/memstore"
)

// fleet is a set of workers of one application that share a store, inside a bubble. Each reader
// increments a number ten times per second.
type fleet struct {
	t     *testing.T
	store lease.Store

	mu     sync.Mutex
	shards []shard.Shard
	// ends contains the shards that end after 20 records, and their children.
	ends    map[string][]shard.Shard
	log     []step
	workers []*member
	reasons map[string]int // the reasons why terms ended
	linger  time.Duration  // how long a handler takes to notice that its context ended
	born    int64
	rates   map[string]float64 // throughputs that the readers report
	stalls  map[string]string  // by shard, the worker that makes no progress with the shard
	trouble []lease.Trouble
}

type step struct {
	at     time.Time
	worker string
	shard  string
	epoch  uint64
	n      int
}

type member struct {
	name string
	stop context.CancelFunc
	done chan error
	link *link
}

// link is a worker's connection to the store, which can be cut.
type link struct {
	lease.Store
	mu   sync.Mutex
	down bool
	lose bool // calls take effect, but their answers are lost
	dead bool // the process was killed: its readers stop too
	dim  bool // only views fail
}

var errDown = errors.New("the store is not reachable")

func (l *link) state() (down, lose bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.down, l.lose
}

func (l *link) killed() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.dead
}

func (l *link) kill() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.dead, l.down = true, true
}

func (l *link) set(down, lose bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.down, l.lose = down, lose
}

func through[T any](l *link, ctx context.Context, call func() (T, error)) (T, error) {
	var zero T
	down, lose := l.state()
	if down {
		<-ctx.Done()
		return zero, errDown
	}
	v, err := call()
	if lose {
		return zero, errDown
	}
	return v, err
}

func (l *link) Heartbeat(ctx context.Context, app string, r lease.Report) (lease.Orders, error) {
	return through(l, ctx, func() (lease.Orders, error) { return l.Store.Heartbeat(ctx, app, r) })
}

func (l *link) View(ctx context.Context, app, since string) (lease.View, error) {
	l.mu.Lock()
	dim := l.dim
	l.mu.Unlock()
	if dim {
		<-ctx.Done()
		return lease.View{}, ctx.Err()
	}
	return through(l, ctx, func() (lease.View, error) { return l.Store.View(ctx, app, since) })
}

func (l *link) Apply(ctx context.Context, app string, a []lease.Action) ([]bool, error) {
	return through(l, ctx, func() ([]bool, error) { return l.Store.Apply(ctx, app, a) })
}

func (l *link) Lead(ctx context.Context, app, session string, term uint64) (bool, error) {
	return through(l, ctx, func() (bool, error) { return l.Store.Lead(ctx, app, session, term) })
}

func (l *link) Leave(ctx context.Context, app string, r lease.Report) error {
	_, err := through(l, ctx, func() (struct{}, error) { return struct{}{}, l.Store.Leave(ctx, app, r) })
	return err
}

func newFleet(t *testing.T, shards int) *fleet {
	f := &fleet{t: t, store: memstore.New(), ends: map[string][]shard.Shard{}, reasons: map[string]int{}}
	for i := range shards {
		f.shards = append(f.shards, shard.Shard{ID: fmt.Sprintf("shard-%03d", i)})
	}
	return f
}

func (f *fleet) list(context.Context, string, shard.Position) (Listing, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return Listing{Shards: slices.Clone(f.shards), Born: f.born}, nil
}

func (f *fleet) read(name string, l *link) func(*Term) error {
	return func(t *Term) error {
		n := 0
		if s := t.Lease.Position.SequenceNumber(); s != "" {
			n, _ = strconv.Atoi(s)
		}
		for {
			if t.Check(time.Now()) != nil {
				return nil
			}
			if l.killed() {
				<-t.Context().Done()
				return nil
			}
			n++
			f.mu.Lock()
			f.log = append(f.log, step{time.Now(), name, t.Lease.Shard, t.Lease.Epoch, n})
			kids, ends := f.ends[t.Lease.Shard]
			linger := f.linger
			t.SetRate(f.rates[t.Lease.Shard])
			stalls := f.stalls[t.Lease.Shard] == name
			f.mu.Unlock()
			if stalls {
				t.GiveUp(nil)
				return nil
			}
			p, err := shard.After(strconv.Itoa(n))
			if err != nil {
				return err
			}
			if ends && n >= 20 {
				_ = t.Finish(t.Context(), kids)
				return nil
			}
			t.Advance(p)
			select {
			case <-time.After(100 * time.Millisecond):
			case <-t.Reading().Done():
				if t.Context().Err() != nil {
					time.Sleep(linger)
				}
				return nil
			}
		}
	}
}

func (f *fleet) join(name string) *member {
	ctx, cancel := context.WithCancel(f.t.Context())
	m := &member{name: name, stop: cancel, done: make(chan error, 1), link: &link{Store: f.store}}
	f.workers = append(f.workers, m)
	cfg := Config{
		Store: m.link, App: "app", Worker: name, Weight: 1,
		Times: lease.Times{Heartbeat: time.Second, Failover: 5 * time.Second, Handoff: 30 * time.Second}, Stop: 10 * time.Second,
		Streams: []string{"s"}, Start: shard.Oldest, ListInterval: time.Minute, Host: &HostFuncs{
			OnList: f.list,
			OnRead: f.read(name, m.link),
			OnEnded: func(_ *Term, reason event.EndReason) {
				f.mu.Lock()
				defer f.mu.Unlock()
				f.reasons[reason.String()]++
			},
			OnTroubles: func() []lease.Trouble {
				f.mu.Lock()
				defer f.mu.Unlock()
				return slices.Clone(f.trouble)
			},
		},

		Log: slog.New(slog.NewTextHandler(io.Discard, nil)),
	}
	go func() { m.done <- Run(ctx, cfg) }()
	return m
}

func (f *fleet) end() {
	for _, m := range f.workers {
		if !m.link.killed() {
			m.link.set(false, false)
		}
		m.stop()
	}
	for _, m := range f.workers {
		if err := <-m.done; err != nil && !(m.link.killed() && errors.As(err, new(*StopError))) {
			f.t.Errorf("Run of %s: %v", m.name, err)
		}
		m.done <- nil
	}
	view, err := f.store.View(f.t.Context(), "app", "")
	if err != nil {
		f.t.Fatal(err)
	}
	// Only sessions are checked. A lease may still have an owner: an heir that left at the moment
	// when it got the lease. The row of an ended session stays for a while.
	if living := slices.DeleteFunc(view.Workers, func(w lease.Worker) bool { return w.Ended }); len(living) > 0 {
		f.t.Errorf("after the end there are still the sessions %+v", living)
	}
	f.judge()
}

// judge checks the log: the numbers of each shard have no gaps, and its epochs never decrease.
func (f *fleet) judge() {
	f.mu.Lock()
	defer f.mu.Unlock()
	last := map[string]step{}
	high := map[string]int{}
	for _, s := range f.log {
		before, seen := last[s.shard]
		if s.n > high[s.shard]+1 {
			f.t.Errorf("%s: %d follows %d: something was lost", s.shard, s.n, high[s.shard])
		}
		if seen && s.epoch < before.epoch {
			f.t.Errorf("%s: epoch %d of %s handles after epoch %d of %s", s.shard, s.epoch, s.worker, before.epoch, before.worker)
		}
		high[s.shard] = max(high[s.shard], s.n)
		last[s.shard] = s
	}
}

func (f *fleet) owners() map[string]int {
	view, err := f.store.View(f.t.Context(), "app", "")
	if err != nil {
		f.t.Fatal(err)
	}
	names := map[string]string{}
	for _, w := range view.Workers {
		names[w.Session] = w.Name
	}
	count := map[string]int{}
	for _, l := range view.Leases {
		if l.Finished() {
			continue
		}
		count[names[l.Owner]]++
	}
	return count
}

// silence returns the longest time without a record in any shard, starting at from.
func (f *fleet) silence(from time.Time) time.Duration {
	f.mu.Lock()
	defer f.mu.Unlock()
	last, longest := map[string]time.Time{}, time.Duration(0)
	for _, s := range f.log {
		if before, ok := last[s.shard]; ok && s.at.After(from) {
			longest = max(longest, s.at.Sub(before))
		}
		last[s.shard] = s.at
	}
	return longest
}

func (f *fleet) duplicates() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	seen, n := map[string]bool{}, 0
	for _, s := range f.log {
		key := fmt.Sprintf("%s %d", s.shard, s.n)
		if seen[key] {
			n++
		}
		seen[key] = true
	}
	return n
}

func TestWorkersShareTheShards(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, 12)
		began := time.Now()
		f.join("a")
		for f.owners()["a"] < 12 {
			time.Sleep(10 * time.Millisecond)
		}
		t.Logf("first worker holds all after %v", time.Since(began))
		began = time.Now()
		f.join("b")
		f.join("c")
		for o := f.owners(); o["a"] != 4 || o["b"] != 4 || o["c"] != 4; o = f.owners() {
			time.Sleep(10 * time.Millisecond)
		}
		t.Logf("three workers share after %v", time.Since(began))
		time.Sleep(5 * time.Second)
		f.end()
		if d := f.duplicates(); d != 0 {
			t.Errorf("%d records were handled twice by handoffs and an orderly stop", d)
		}
		if f.reasons["handed off"] < 8 || f.reasons["lost"] != 0 {
			t.Errorf("the terms ended because %v", f.reasons)
		}
	})
}

// This test measures the gap after a kill. It varies the phases of the heartbeats of the victim,
// the leader and the heir.
func TestShardsOfAKilledWorkerAreSilentForSevenSecondsAtMost(t *testing.T) {
	for _, victim := range []int{0, 1} {
		var worst, sum time.Duration
		const runs = 25
		for run := range runs {
			synctest.Test(t, func(t *testing.T) {
				f := newFleet(t, 9)
				for _, name := range []string{"a", "b", "c"} {
					f.join(name)
					time.Sleep(time.Duration(1000+37*run) * time.Millisecond)
				}
				time.Sleep(20*time.Second + time.Duration(run)*41*time.Millisecond)
				killed := time.Now()
				f.workers[victim].link.kill()
				time.Sleep(15 * time.Second)
				s := f.silence(killed)
				worst, sum = max(worst, s), sum+s
				f.end()
			})
		}
		t.Logf("worker %d of 3 (0 leads): silent for %v on average, %v at worst", victim, sum/runs, worst)
		if worst > 7*time.Second {
			t.Errorf("silent for %v", worst)
		}
	}
}

func TestShardsOfAWorkerWithoutStoreAreTakenOver(t *testing.T) {
	for _, victim := range []int{0, 1, 2} {
		synctest.Test(t, func(t *testing.T) {
			f := newFleet(t, 9)
			for _, name := range []string{"a", "b", "c"} {
				f.join(name)
				time.Sleep(3*time.Second + 77*time.Millisecond)
			}
			time.Sleep(4321 * time.Millisecond)
			died := time.Now()
			m := f.workers[victim]
			// The victim loses its connection. To other workers it looks dead. It must stop.
			m.link.set(true, false)
			time.Sleep(20 * time.Second)
			t.Logf("worker %d: silent for %v, %d handled twice", victim, f.silence(died), f.duplicates())
			if s := f.silence(died); s > 7*time.Second {
				t.Errorf("shards were silent for %v", s)
			}
			m.link.set(false, false)
			time.Sleep(20 * time.Second)
			if o := f.owners(); o[m.name] != 3 {
				t.Errorf("after its return the worker holds %d of 9", o[m.name])
			}
			f.end()
		})
	}
}

func TestOrderlyStopIsQuickAndRepeatsNothing(t *testing.T) {
	for _, leaver := range []int{0, 1} {
		synctest.Test(t, func(t *testing.T) {
			f := newFleet(t, 8)
			for _, name := range []string{"a", "b"} {
				f.join(name)
				time.Sleep(3 * time.Second)
			}
			time.Sleep(10 * time.Second)
			stopped := time.Now()
			m := f.workers[leaver]
			m.stop()
			m.done <- <-m.done
			t.Logf("worker %d: Run returned after %v", leaver, time.Since(stopped))
			time.Sleep(10 * time.Second)
			if s := f.silence(stopped); s > 2*time.Second {
				t.Errorf("shards were silent for %v", s)
			} else {
				t.Logf("silent for %v", s)
			}
			f.end()
			if d := f.duplicates(); d != 0 {
				t.Errorf("%d records were handled twice", d)
			}
		})
	}
}

func TestAStoreOutageStopsEverybodyAndMovesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, 6)
		for _, name := range []string{"a", "b", "c"} {
			f.join(name)
		}
		time.Sleep(15 * time.Second)
		before, _ := f.store.View(t.Context(), "app", "")
		for _, m := range f.workers {
			m.link.set(true, false)
		}
		down := time.Now()
		time.Sleep(60 * time.Second)
		f.mu.Lock()
		last := f.log[len(f.log)-1].at
		f.mu.Unlock()
		if over := last.Sub(down); over > 4500*time.Millisecond || over < 3*time.Second {
			t.Errorf("the last record was handled %v into the outage; leases are valid for 4.5 s after the last heartbeat", over)
		}
		for _, m := range f.workers {
			m.link.set(false, false)
		}
		time.Sleep(20 * time.Second)
		after, _ := f.store.View(t.Context(), "app", "")
		for i, l := range after.Leases {
			if l.Owner != before.Leases[i].Owner || l.Epoch != before.Leases[i].Epoch {
				t.Errorf("the outage moved %s (was %s)", l, before.Leases[i])
			}
		}
		f.end()
		if d := f.duplicates(); d != 0 {
			t.Errorf("%d records were handled twice, though nothing moved", d)
		}
	})
}

func TestChildrenFollowTheirParentsAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, 2)
		child := shard.Shard{ID: "shard-100", Parents: []string{"shard-000", "shard-001"}}
		f.ends["shard-000"] = []shard.Shard{child}
		f.ends["shard-001"] = []shard.Shard{child}
		f.join("a")
		f.join("b")
		time.Sleep(15 * time.Second)
		f.mu.Lock()
		var ended, began time.Time
		for _, s := range f.log {
			if s.shard != child.ID {
				ended = s.at
			} else if began.IsZero() {
				began = s.at
			}
		}
		f.mu.Unlock()
		if began.IsZero() || began.Before(ended) {
			t.Fatalf("the child began at %v, its last parent ended at %v", began, ended)
		}
		if gap := began.Sub(ended); gap > time.Second {
			t.Errorf("the child began %v after its parents ended", gap)
		} else {
			t.Logf("the child began %v after its parents ended", gap)
		}
		f.mu.Lock()
		f.shards = append(f.shards, child)
		f.mu.Unlock()
		f.end()
		if f.reasons["finished"] != 2 || f.reasons["lost"] != 0 || f.reasons["stopped"] != 1 {
			t.Errorf("the terms ended because %v, want two finished and one stopped", f.reasons)
		}
	})
}
