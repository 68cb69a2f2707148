package behaviour

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/deadletter"
	"github.com/weir-go/weir/event"
	"github.com/weir-go/weir/kinesistest"
	"github.com/weir-go/weir/lease"
	"github.com/weir-go/weir/store/memstore"
	"github.com/weir-go/weir/weirtest"
)

// fleet is a group of workers whose handlers kill their process at some records. After the death of
// a worker, the store receives no more calls from it. A new worker replaces the dead one after a
// while.
type fleet struct {
	t      *testing.T
	srv    *kinesistest.Server
	store  lease.Store
	opts   weir.Options
	kills  func(r weir.Record) bool
	slow   func(r weir.Record) time.Duration
	anew   time.Duration // time after which a dead worker is started again; 0 means never
	mu     sync.Mutex
	deaths map[string][]time.Time // times of deaths, by the data of the record
	got    map[string]int
	told   []event.Suspected
	began  int
}

func (f *fleet) start(n int) {
	for range n {
		f.mu.Lock()
		f.began++
		name := fmt.Sprint("worker ", f.began)
		f.mu.Unlock()
		opts := f.opts
		opts.App, opts.Streams, opts.Worker, opts.Logger = "app", []string{"s"}, name, quiet
		opts.OnEvent = event.Join(opts.OnEvent, event.On(func(_ context.Context, e event.Suspected) {
			f.mu.Lock()
			defer f.mu.Unlock()
			f.told = append(f.told, e)
		}))
		var w *weirtest.Worker
		var dies sync.Once // handlers of several shards may kill the worker at the same time
		ready := make(chan struct{})
		w = weirtest.Start(f.t, f.srv.Client(), f.store, opts, weir.HandlerFunc(func(ctx context.Context, b *weir.Batch) error {
			<-ready
			for _, r := range b.Records {
				if f.kills(r) {
					f.mu.Lock()
					f.deaths[string(r.Data)] = append(f.deaths[string(r.Data)], time.Now())
					f.mu.Unlock()
					dies.Do(func() {
						if f.anew > 0 {
							time.AfterFunc(f.anew, func() { f.start(1) })
						}
						w.Kill()
					})
					<-ctx.Done()
					return context.Cause(ctx)
				}
				if f.slow != nil {
					time.Sleep(f.slow(r))
				}
				f.mu.Lock()
				f.got[string(r.Data)]++
				f.mu.Unlock()
			}
			return nil
		}))
		close(ready)
	}
}

func newFleet(t *testing.T, srv *kinesistest.Server, opts weir.Options, kills ...string) *fleet {
	return &fleet{
		t: t, srv: srv, store: memstore.New(), opts: opts, deaths: map[string][]time.Time{}, got: map[string]int{},
		kills: func(r weir.Record) bool { return slices.Contains(kills, string(r.Data)) },
	}
}

// putMany puts n records with many keys. among contains the records that kill, by index.
func putMany(srv *kinesistest.Server, n int, among map[int]string) (names []string) {
	for i := range n {
		name := cmp.Or(among[i], fmt.Sprint("r ", i))
		srv.Put("s", fmt.Sprint("key ", i%17), []byte(name))
		names = append(names, name)
	}
	return names
}

// A record that kills its process is found and dead-lettered. Before that, it kills as many workers
// as the option allows, and one more.
func TestARecordThatKillsIsGivenUp(t *testing.T) {
	for _, row := range []struct {
		after int
		kills []string
	}{{0, []string{"bad"}}, {1, []string{"bad"}}, {4, []string{"bad"}}, {2, []string{"bad", "worse"}}} {
		after, kills := row.after, row.kills
		bubble(t, 3, func(t *testing.T, srv *kinesistest.Server) {
			box := &letterbox{}
			f := newFleet(t, srv, weir.Options{OnFailure: weir.FailurePolicy{Destination: box, SuspectAfter: after}}, kills...)
			f.anew = time.Minute
			f.start(5)
			time.Sleep(10 * time.Second)
			names := putMany(srv, 300, map[int]string{150: "bad", 200: "worse"})
			for range 10 * 60 {
				time.Sleep(time.Second)
				names = append(names, putMany(srv, 1, map[int]string{0: fmt.Sprint("later ", len(names))})...)
			}
			time.Sleep(time.Minute)
			f.mu.Lock()
			defer f.mu.Unlock()
			letters := box.letters()
			if got := box.data(); !slices.Equal(slices.Sorted(slices.Values(got)), kills) {
				t.Fatalf("letters of %q", got)
			}
			want := cmp.Or(after, 2) + 1
			for _, l := range letters {
				name := string(l.Data)
				n := len(f.deaths[name])
				// Two records may kill the same process at the same time. The death then counts for
				// neither.
				if n != want && (len(kills) == 1 || n > want+1) || l.Reason != deadletter.Killed || l.Attempts < n || l.Together != 1 ||
					!strings.HasPrefix(l.Error, fmt.Sprintf("weir: %d workers died one after the other at this record", l.Attempts)) {
					t.Errorf("%d workers died of %q; the dead letter is %+v", n, name, l)
				}
				if took := l.GivenUp.Sub(f.deaths[name][0]); took > 4*time.Minute {
					t.Errorf("%q was dead-lettered after %v", name, took)
				}
			}
			if len(f.told) == 0 || f.told[0].Time.Sub(f.deaths["bad"][0]) > time.Minute {
				t.Errorf("told of %+v", f.told)
			}
			for _, name := range names {
				if bad := slices.Contains(kills, name); bad != (f.got[name] == 0) {
					t.Errorf("%q was handled %d times", name, f.got[name])
				}
			}
		})
	}
}

// Without a policy for dead letters, a record that kills its process is tried less and less often.
// All other shards are read.
func TestARecordThatKillsIsTriedLessAndLessOften(t *testing.T) {
	bubble(t, 2, func(t *testing.T, srv *kinesistest.Server) {
		f := newFleet(t, srv, weir.Options{}, "bad")
		f.anew = 5 * time.Second
		f.start(5)
		time.Sleep(10 * time.Second)
		bad, _ := srv.Put("s", "bad", []byte("bad"))
		other := ""
		for i := 0; other == ""; i++ {
			if id, _ := srv.Put("s", fmt.Sprint(i), nil); id != bad {
				other = fmt.Sprint(i)
			}
		}
		for i := range 2 * 60 * 60 {
			time.Sleep(time.Second)
			srv.Put("s", other, []byte(fmt.Sprint("on ", i)))
		}
		time.Sleep(time.Minute)
		f.mu.Lock()
		defer f.mu.Unlock()
		at := f.deaths["bad"]
		if len(at) < 8 || len(at) > 18 {
			t.Fatalf("%d workers died: %v", len(at), at)
		}
		for i := 3; i < len(at); i++ {
			least := min(30*time.Second<<(i-3), 7*time.Minute)
			if gap := at[i].Sub(at[i-1]); gap < least || gap > 16*time.Minute {
				t.Errorf("death %d came %v after the one before, want %v at least", i, gap, least)
			}
		}
		if len(f.got) < 2*60*60 {
			t.Errorf("%d others were handled", len(f.got))
		}
		last := f.told[len(f.told)-1]
		if !strings.HasPrefix(last.Record, "s/"+bad+"/") || last.Next < 7*time.Minute || last.Died < 8 {
			t.Errorf("told of %+v", last)
		}
	})
}

// A slow record is handled at the same time as a killing record, so the slow record is in a worker
// that dies. weir does not dead-letter the slow record because of that death.
func TestWhoDiesWithAKillerIsNoKiller(t *testing.T) {
	bubble(t, 8, func(t *testing.T, srv *kinesistest.Server) {
		box := &letterbox{}
		f := newFleet(t, srv, weir.Options{OnFailure: weir.FailurePolicy{Destination: box, OutageGrace: -1}}, "bad")
		f.anew = time.Second
		f.slow = func(r weir.Record) time.Duration {
			if strings.HasPrefix(string(r.Data), "slow") {
				return 20 * time.Second
			}
			return 0
		}
		f.kills = func(r weir.Record) bool {
			if string(r.Data) != "bad" {
				return false
			}
			time.Sleep(3 * time.Second)
			return true
		}
		bad, _ := srv.Put("s", "bad", []byte("bad"))
		slow := map[string]bool{}
		for i := 0; len(slow) < 7; i++ {
			for _, k := range []int{i} {
				if s, _ := srv.Put("s", fmt.Sprint(k), []byte(fmt.Sprint("slow ", i))); s != bad {
					slow[s] = true
				}
			}
		}
		f.start(1)
		time.Sleep(20 * time.Minute)
		f.mu.Lock()
		defer f.mu.Unlock()
		if got := box.data(); !slices.Equal(got, []string{"bad"}) {
			t.Errorf("letters of %q", got)
		}
		if n := len(f.deaths["bad"]); n > 5 { // two deaths, one together with others, and one alone
			t.Errorf("%d deaths", n)
		}
		if len(f.got) < 7 {
			t.Errorf("handled %v", f.got)
		}
	})
}

// A broken build that dies at every record must not dead-letter the whole stream. Its shards are
// read as soon as the build is fixed.
func TestABrokenBuildIsNoReasonToGiveUp(t *testing.T) {
	bubble(t, 4, func(t *testing.T, srv *kinesistest.Server) {
		box := &letterbox{}
		f := newFleet(t, srv, weir.Options{OnFailure: weir.FailurePolicy{Destination: box}})
		f.anew = 2 * time.Second
		began := time.Now()
		f.kills = func(weir.Record) bool { return time.Since(began) < 10*time.Minute }
		f.start(3)
		names := putMany(srv, 200, nil)
		time.Sleep(14 * time.Minute) // a dead letter may wait until OnFailure.OutageGrace has passed
		f.mu.Lock()
		defer f.mu.Unlock()
		letters := box.data()
		if len(letters) > 4*6 { // one dead letter per shard in each OnFailure.OutageGrace, which is 2 minutes
			t.Errorf("%d letters", len(letters))
		}
		for _, name := range names {
			if f.got[name] == 0 && !slices.Contains(letters, name) {
				t.Errorf("%q is in no dead letter, and was not handled", name)
			}
		}
		t.Logf("%d dead letters, %d workers died", len(letters), f.began)
	})
}
