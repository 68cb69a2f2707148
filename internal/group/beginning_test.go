package group

import (
	"context"
	"io"
	"log/slog"
	"reflect"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weir-go/weir/lease"
	"github.com/weir-go/weir/shard"
	"github.com/weir-go/weir/store/memstore"
)

var (
	noon  = shard.At(time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC))
	later = shard.At(time.Date(2026, 1, 1, 12, 0, 9, 0, time.UTC))
)

func TestBeginnings(t *testing.T) {
	one := func(change func(*lease.Lease)) lease.Lease {
		l := lease.Lease{Key: lease.Key{Stream: "s", Shard: "1"}, Epoch: 1, Position: noon}
		change(&l)
		return l
	}
	other := lease.Lease{Key: lease.Key{Stream: "s", Shard: "2"}, Epoch: 1, Position: noon}
	ended := lease.Lease{Key: lease.Key{Stream: "s", Shard: "3"}, Epoch: 1, Position: shard.End}
	for _, tt := range []struct {
		name  string
		lease lease.Lease
		young bool
		start shard.Position
	}{
		{"no worker has begun", one(func(*lease.Lease) {}), true, noon},
		{"from a later time", one(func(l *lease.Lease) { l.Position = later }), true, noon},
		{"from the beginning", one(func(l *lease.Lease) { l.Position = shard.Oldest }), true, noon},
		{"a worker has begun", one(func(l *lease.Lease) { l.Epoch, l.Owner = 2, "a" }), false, shard.Latest},
		{"a worker had begun", one(func(l *lease.Lease) { l.Last = "a" }), false, shard.Latest},
		{"it was moved", one(func(l *lease.Lease) { l.Epoch = 2 }), false, shard.Latest},
	} {
		for _, leases := range [][]lease.Lease{{tt.lease, other, ended}, {ended, other, tt.lease}} {
			b := beginnings(leases)["s"]
			if (b != nil) != tt.young || b.start(shard.Latest) != tt.start {
				t.Errorf("%s: %+v, beginning at %s", tt.name, b, b.start(shard.Latest))
			}
		}
	}
	if b := beginnings([]lease.Lease{ended})["s"]; b == nil || b.start(shard.Latest) != shard.Latest {
		t.Errorf("only shards of before: %+v", b)
	}
}

// A leader that dies after it created some leases of a new stream has pinned the application's
// start. The other leases begin at the same start. Workers read no lease before all of them exist,
// because once a worker reads, the leases no longer show the start.
func TestAnApplicationBeginsWhereItsFirstLeaderPinnedIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := memstore.New()
		made := lease.Lease{Key: lease.Key{Stream: "s", Shard: "1"}, Epoch: 1, Position: noon}
		if did, err := store.Apply(t.Context(), "app", []lease.Action{{Kind: lease.Create, Lease: made}}); err != nil || !did[0] {
			t.Fatal(did, err)
		}
		ctx, stop := context.WithCancel(t.Context())
		began := time.Now()
		starts := map[string]shard.Position{}
		early, late := false, false
		var mu sync.Mutex
		done := make(chan error)
		go func() {
			done <- Run(ctx, Config{
				Store: store, App: "app", Worker: "w", Times: lease.Times{Heartbeat: time.Second, Failover: 5 * time.Second, Handoff: 30 * time.Second},
				Stop: time.Second, Streams: []string{"s"}, Start: shard.Latest, ListInterval: time.Minute,
				Log: slog.New(slog.NewTextHandler(io.Discard, nil)),
				Host: &HostFuncs{
					OnList: func(_ context.Context, _ string, start shard.Position) (Listing, error) {
						time.Sleep(3 * time.Second)
						if start.Kind() == shard.Tip {
							start = later
						}
						return Listing{Shards: []shard.Shard{{ID: "1"}, {ID: "2"}}, Begin: map[string]shard.Position{"1": start, "2": start}}, nil
					},
					OnRead: func(term *Term) error {
						mu.Lock()
						early = early || time.Since(began) < 3*time.Second
						late = late || time.Since(began) > 3*time.Second+100*time.Millisecond
						starts[term.Lease.Shard] = term.Lease.Position
						mu.Unlock()
						<-term.Reading().Done()
						return nil
					},
				},
			})
		}()
		time.Sleep(10 * time.Second)
		synctest.Wait()
		mu.Lock()
		if want := (map[string]shard.Position{"1": noon, "2": noon}); !reflect.DeepEqual(starts, want) || early || late {
			t.Errorf("it begins at %v, early: %t, late: %t", starts, early, late)
		}
		mu.Unlock()
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

// A stream that is being read may lack the lease of a shard without parents. Only a listing with a
// start creates that lease.
func TestWhatALeaderMissedIsNotReadFromItsOldestRecord(t *testing.T) {
	s := newListings([]string{"s"})
	s.streams["s"].latest = &Listing{Shards: []shard.Shard{{ID: "1"}, {ID: "2"}, {ID: "3", Parents: []string{"2"}}}}
	v := lease.View{Leases: []lease.Lease{{Key: lease.Key{Stream: "s", Shard: "1"}, Epoch: 4, Owner: "a"}}}
	cfg := Config{Host: new(HostFuncs), Log: slog.New(slog.NewTextHandler(io.Discard, nil))}
	if got := s.actions(v, lease.Facts{}, cfg); len(got) != 0 {
		t.Errorf("before such a listing: %v", got)
	}
	s.streams["s"].fresh = true
	s.streams["s"].latest.Begin = map[string]shard.Position{"1": noon, "3": noon}
	got := s.actions(v, lease.Facts{}, cfg)
	if len(got) != 1 || got[0].Lease.Shard != "3" || got[0].Lease.Position != noon {
		t.Errorf("after it: %v", got)
	}
	// The lease of a shard that ended before the start does not contain the start, so it is created
	// later.
	v.Leases = append(v.Leases, got[0].Lease)
	if got = s.actions(v, lease.Facts{}, cfg); len(got) != 1 || got[0].Lease.Shard != "2" || !got[0].Lease.Position.IsEnd() {
		t.Errorf("when that is made: %v", got)
	}
}

// In a recreated stream, an old lease can block the lease of a new shard with the same name. When
// the old lease is gone, the leader lists again at once.
func TestAnOldLeaseThatGoesMakesTheLeaderListAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newListings([]string{"s"})
		cfg := Config{
			ListInterval: time.Minute, Log: slog.New(slog.NewTextHandler(io.Discard, nil)),
			Host: &HostFuncs{OnList: func(context.Context, string, shard.Position) (Listing, error) { return Listing{Born: 9}, nil }},
		}
		one := lease.Lease{Key: lease.Key{Stream: "s", Shard: "1"}, Epoch: 2, Owner: "a", Born: 9}
		old := lease.Lease{Key: lease.Key{Stream: "s", Shard: "3"}, Epoch: 4, Born: 8}
		s.streams["s"].latest, s.streams["s"].began = &Listing{Born: 9, Shards: []shard.Shard{{ID: "1"}}}, time.Now()
		lists := func(leases ...lease.Lease) bool {
			time.Sleep(time.Second)
			v := lease.View{Leases: leases}
			s.begin(t.Context(), v, cfg)
			s.actions(v, lease.Facts{}, cfg)
			synctest.Wait()
			select {
			case r := <-s.results:
				if err := s.take(r, cfg); err != nil {
					t.Error(err)
				}
				return true
			default:
				return false
			}
		}
		for i, want := range []bool{false, true, false} {
			leases := []lease.Lease{one, old}
			if i > 0 {
				leases = leases[:1]
			}
			if got := lists(leases...); got != want {
				t.Errorf("look %d: it is listed: %t", i, got)
			}
		}
	})
}

// A leader that claims the start continues with its listing. Shards that ended before the start are
// not read, except the shard whose lease claimed the start.
func TestAStartThatWasClaimedNeedsNoOtherListing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := memstore.New()
		ctx, stop := context.WithCancel(t.Context())
		var listings atomic.Int32
		done := make(chan error)
		go func() {
			done <- Run(ctx, Config{
				Store: store, App: "app", Worker: "w", Times: lease.Times{Heartbeat: time.Second, Failover: 5 * time.Second, Handoff: 30 * time.Second},
				Stop: time.Second, Streams: []string{"s"}, Start: shard.Latest, ListInterval: time.Minute, Log: slog.New(slog.DiscardHandler),
				Host: &HostFuncs{
					OnList: func(context.Context, string, shard.Position) (Listing, error) {
						listings.Add(1)
						return Listing{Shards: []shard.Shard{{ID: "1"}, {ID: "2"}, {ID: "3"}}, Begin: map[string]shard.Position{"3": noon}}, nil
					},
					OnRead: func(term *Term) error {
						<-term.Reading().Done()
						return nil
					},
				},
			})
		}()
		time.Sleep(time.Second)
		synctest.Wait()
		v, err := store.View(t.Context(), "app", "")
		if err != nil {
			t.Fatal(err)
		}
		got := map[string]shard.Position{}
		for _, l := range v.Leases {
			got[l.Shard] = l.Position
			if (l.Owner == "") != l.Finished() {
				t.Errorf("%s is not as it should be", l)
			}
		}
		if want := (map[string]shard.Position{"1": noon, "2": shard.End, "3": noon}); !reflect.DeepEqual(got, want) {
			t.Errorf("%v, not %v", got, want)
		}
		if n := listings.Load(); n != 1 {
			t.Errorf("it was listed %d times", n)
		}
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

// A view need not be sorted. For any order of its leases, no lease is created twice.
func TestLeasesOfSeveralStreamsInAnyOrder(t *testing.T) {
	of := func(stream, id string) lease.Lease {
		return lease.Lease{Key: lease.Key{Stream: stream, Shard: id}, Epoch: 2, Position: shard.Oldest}
	}
	s := newListings([]string{"a", "b"})
	for _, l := range s.streams {
		l.fresh, l.latest = true, &Listing{Shards: []shard.Shard{{ID: "1"}, {ID: "2"}}}
	}
	v := lease.View{Leases: []lease.Lease{of("a", "1"), of("b", "1"), of("a", "2"), of("b", "2")}}
	before := slices.Clone(v.Leases)
	if got := s.actions(v, lease.Facts{}, Config{Host: new(HostFuncs), Log: slog.New(slog.DiscardHandler)}); len(got) != 0 {
		t.Errorf("%v", got)
	}
	if !slices.EqualFunc(v.Leases, before, func(x, y lease.Lease) bool { return x.Key == y.Key }) {
		t.Errorf("the view has become %v", v.Leases)
	}
}

// A listing may begin later than the existing leases. These cases show which leases it may create
// at its own start.
func TestWhereNewLeasesBegin(t *testing.T) {
	split := []shard.Shard{{ID: "1"}, {ID: "2"}, {ID: "3", Parents: []string{"1"}}, {ID: "4", Parents: []string{"3", "2"}}, {ID: "5", Parents: []string{"4"}}}
	tip := map[string]shard.Position{"5": later}
	everywhere := func(at shard.Position) map[string]shard.Position {
		return map[string]shard.Position{"1": at, "2": at, "3": at, "4": at, "5": at}
	}
	stands := func(id string, at shard.Position) lease.Lease {
		return lease.Lease{Key: lease.Key{Stream: "s", Shard: id}, Epoch: 1, Position: at}
	}
	for _, tt := range []struct {
		name   string
		begin  map[string]shard.Position
		leases []lease.Lease
		want   map[string]shard.Position
	}{
		{"no leases exist", tip, nil, map[string]shard.Position{"1": shard.End, "2": shard.End, "3": shard.End, "4": shard.End, "5": later}},
		{"their ancestors began earlier", tip, []lease.Lease{stands("1", noon), stands("2", noon)},
			map[string]shard.Position{"3": shard.Oldest, "4": shard.Oldest, "5": shard.Oldest}},
		{"one of their ancestors began earlier", tip, []lease.Lease{stands("1", noon), stands("2", shard.End)},
			map[string]shard.Position{"3": shard.Oldest, "4": shard.Oldest, "5": shard.Oldest}},
		{"their ancestors ended before the start", tip, []lease.Lease{stands("1", shard.End), stands("2", shard.End)},
			map[string]shard.Position{"3": shard.End, "4": shard.End, "5": later}},
		{"the start was claimed with one that ended before it", tip, []lease.Lease{stands("1", later)},
			map[string]shard.Position{"2": shard.End, "3": shard.End, "4": shard.End, "5": later}},
		{"it was claimed with one that was split while the shards were listed", map[string]shard.Position{"1": later, "2": later}, []lease.Lease{stands("1", later)},
			map[string]shard.Position{"2": later, "3": shard.Oldest, "4": shard.Oldest, "5": shard.Oldest}},
		{"their ancestors begin at the same time", everywhere(noon), []lease.Lease{stands("1", noon), stands("2", noon)},
			map[string]shard.Position{"3": noon, "4": noon, "5": noon}},
		{"their ancestors began at another time", everywhere(later), []lease.Lease{stands("1", noon), stands("2", later)},
			map[string]shard.Position{"3": shard.Oldest, "4": shard.Oldest, "5": shard.Oldest}},
	} {
		got := map[string]shard.Position{}
		for _, made := range NewLeases("s", Listing{Shards: split, Begin: tt.begin}, tt.leases, true) {
			got[made.Shard] = made.Position
		}
		if !reflect.DeepEqual(got, tt.want) {
			t.Errorf("%s: %v, not %v", tt.name, got, tt.want)
		}
	}
}

// A leader whose leases could not be created keeps its first start time, so records that arrived
// since then are read.
func TestAStartStaysPinnedUntilItsLeasesAreMade(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newListings([]string{"s"})
		var starts []shard.Position
		cfg := Config{
			Start: shard.Latest, ListInterval: time.Minute, Log: slog.New(slog.DiscardHandler),
			Host: &HostFuncs{
				OnList: func(_ context.Context, _ string, start shard.Position) (Listing, error) {
					starts = append(starts, start)
					if start.Kind() == shard.Tip {
						start = shard.At(time.Now())
					}
					return Listing{Shards: []shard.Shard{{ID: "1"}}, Begin: map[string]shard.Position{"1": start}}, nil
				},
			},
		}
		first := shard.At(time.Now())
		look := func(v lease.View, want ...shard.Position) {
			t.Helper()
			s.begin(t.Context(), v, cfg)
			synctest.Wait()
			select {
			case r := <-s.results:
				if err := s.take(r, cfg); err != nil {
					t.Error(err)
				}
			default:
			}
			if !slices.Equal(starts, want) {
				t.Errorf("it was listed from %v, not %v", starts, want)
			}
		}
		look(lease.View{}, shard.Latest)
		time.Sleep(2 * time.Minute)
		look(lease.View{}, shard.Latest, first)
		made := lease.View{Leases: []lease.Lease{{Key: lease.Key{Stream: "s", Shard: "1"}, Epoch: 2, Owner: "a", Position: first}}}
		look(made, shard.Latest, first)
		time.Sleep(2 * time.Minute)
		look(made, shard.Latest, first, shard.Position{})
		// An operator deleted the application's leases, so the application starts over.
		time.Sleep(2 * time.Minute)
		look(lease.View{}, shard.Latest, first, shard.Position{}, shard.Latest)
	})
}

// If leases of an earlier leader appear while the next leader lists, these leases determine the
// start.
func TestALaterListingDoesNotMakeWhatAnEarlierLeaderBegan(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newListings([]string{"s"})
		cfg := Config{
			Start: shard.Latest, ListInterval: time.Minute, Log: slog.New(slog.DiscardHandler),
			Host: &HostFuncs{
				OnList: func(_ context.Context, _ string, start shard.Position) (Listing, error) {
					if start.Kind() == shard.Tip {
						start = later
					}
					return Listing{Shards: []shard.Shard{{ID: "1"}, {ID: "2"}}, Begin: map[string]shard.Position{"1": start, "2": start}}, nil
				},
			},
		}
		s.begin(t.Context(), lease.View{}, cfg)
		view := lease.View{Leases: []lease.Lease{{Key: lease.Key{Stream: "s", Shard: "1"}, Epoch: 1, Position: noon}}}
		for i, want := range []int{0, 1} {
			if err := s.take(<-s.results, cfg); err != nil {
				t.Fatal(err)
			}
			s.begin(t.Context(), view, cfg)
			got := s.actions(view, lease.Facts{}, cfg)
			if len(got) != want || want > 0 && got[0].Lease.Position != noon {
				t.Errorf("after %d listings: %v", i+1, got)
			}
			time.Sleep(time.Second)
			s.begin(t.Context(), view, cfg)
		}
	})
}

// No lease of a stream is assigned before all leases exist. These are the lease that claims the
// start, the leases of shards that are open at the start, and the tombstones of earlier shards. The
// reason is that, once reading has begun, a listing would treat a shard without a lease as a new
// shard.
func TestNobodyBeginsBeforeAllLeasesAreMade(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newListings([]string{"s"})
		cfg := Config{
			Start: shard.Latest, ListInterval: time.Minute, Log: slog.New(slog.DiscardHandler),
			Host: &HostFuncs{
				OnList: func(context.Context, string, shard.Position) (Listing, error) {
					return Listing{
						Shards: []shard.Shard{{ID: "1"}, {ID: "2", Parents: []string{"1"}}, {ID: "3"}}, Begin: map[string]shard.Position{"2": noon},
					}, nil
				},
			},
		}
		var view lease.View
		look := func() []lease.Action {
			s.begin(t.Context(), view, cfg)
			return s.actions(view, lease.Facts{}, cfg)
		}
		look()
		if err := s.take(<-s.results, cfg); err != nil {
			t.Fatal(err)
		}
		for i, want := range []string{"1", "2", "3", ""} {
			got := look()
			if want == "" && len(got) == 0 {
				break
			}
			if len(got) != 1 || got[0].Lease.Shard != want {
				t.Fatalf("look %d: %v", i, got)
			}
			if off := s.unlisted(nil, nil); i > 0 && !slices.Equal(off, []string{"s"}) {
				t.Errorf("look %d: %q are nobody's to hold", i, off)
			}
			view.Leases = append(view.Leases, got[0].Lease)
			s.made(got[0].Lease)
		}
		if off := s.unlisted(nil, nil); len(off) > 0 {
			t.Errorf("when all are there %q are nobody's to hold", off)
		}
	})
}
