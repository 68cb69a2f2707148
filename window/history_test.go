package window

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/aggregate"
	"github.com/weir-go/weir/internal/proof/longform"
	"github.com/weir-go/weir/kinesistest"
	"github.com/weir-go/weir/shard"
	"github.com/weir-go/weir/store/memstore"
)

// written returns records of one shard as weir delivers them. Some come from aggregates. The data
// of a record is its name and its time in milliseconds. Some times are late, far ahead, or missing.
func written(t *testing.T, roll *rand.Rand, n int) (all []weir.Record) {
	synctest.Test(t, func(t *testing.T) {
		srv, err := kinesistest.Start(kinesistest.Config{InMemory: true})
		if err != nil {
			t.Fatal(err)
		}
		defer srv.Close()
		srv.CreateStream("s", 1)
		c, err := weir.New(srv.Client(), memstore.New(), weir.Options{App: "app", Streams: []string{"s"}, Logger: slog.New(slog.NewTextHandler(io.Discard, nil))})
		if err != nil {
			t.Fatal(err)
		}
		var mu sync.Mutex
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() {
			done <- c.Run(ctx, weir.HandlerFunc(func(_ context.Context, b *weir.Batch) error {
				mu.Lock()
				defer mu.Unlock()
				all = append(all, b.Records...)
				return nil
			}))
		}()
		for i := 0; i < n; i++ {
			data := func() []byte {
				at := time.Now().Add(-time.Duration(roll.IntN(1500)) * time.Millisecond)
				switch roll.IntN(25) {
				case 0:
					at = at.Add(-time.Duration(roll.IntN(20)) * time.Second)
				case 1:
					at = at.Add(time.Duration(roll.IntN(10_000)) * time.Millisecond)
				case 2:
					at = time.Time{}
				}
				return fmt.Appendf(nil, "%d %d", i, at.UnixMilli())
			}
			if roll.IntN(8) == 0 {
				var b aggregate.Builder
				for range 1 + roll.IntN(6) {
					if err := b.Add(fmt.Sprint("key-", roll.IntN(4)), "", data()); err != nil {
						t.Error(err)
					}
					i++
				}
				srv.Put("s", "container", b.AppendContainer(nil))
			} else {
				srv.Put("s", fmt.Sprint("key-", roll.IntN(4)), data())
			}
			pause := 1000
			if roll.IntN(30) == 0 {
				pause = 40_000
			}
			time.Sleep(time.Duration(roll.IntN(pause)) * time.Millisecond)
		}
		time.Sleep(time.Minute)
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return all
}

// timeIn returns the time in the data of a record.
func timeIn(r weir.Record) (time.Time, error) {
	_, text, _ := strings.Cut(string(r.Data), " ")
	ms, err := strconv.ParseInt(text, 10, 64)
	return time.UnixMilli(ms), err
}

func names(state []string, r weir.Record) ([]string, error) {
	name, _, _ := strings.Cut(string(r.Data), " ")
	return append(state, name), nil
}

// owner computes the windows of a shard until its simulated death.
type owner struct {
	*open[[]string]
	records []weir.Record
	next    int // index of the next record
}

// begin starts an owner of the shard at a position.
func begin(c *Config[[]string], records []weir.Record, from weir.Position) *owner {
	next := slices.IndexFunc(records, func(r weir.Record) bool { return r.Position().Compare(from) > 0 })
	if next < 0 {
		next = len(records)
	}
	return &owner{&open[[]string]{Config: c, term: weir.Term{Stream: "s", Shard: "0", From: from}, upTo: from, panes: panes[[]string]{}}, records, next}
}

// take handles the next record and returns the results that ended.
func (o *owner) take(t *testing.T) []Results[[]string] {
	r := o.records[o.next]
	p, err := o.place(r)
	if err != nil {
		t.Fatal(err)
	}
	ended := o.before(r, &p)
	if err := o.add(t.Context(), r, p); err != nil {
		t.Fatal(err)
	}
	if o.next++; o.next%3 == 0 {
		o.leave()
	}
	return ended
}

// lull simulates that the shard is seen to be empty before the next record arrives. It returns the
// windows that end because of this. The clock of the owner is ahead by less than Allowance.
func (o *owner) lull(roll *rand.Rand) []Results[[]string] {
	at := o.records[o.next-1].ArrivalTime()
	pause := time.Hour
	if o.next < len(o.records) {
		pause = o.records[o.next].ArrivalTime().Sub(at)
	}
	return o.tip(at.Add(time.Duration(roll.Int64N(int64(pause)+1)) + o.Allowance - time.Millisecond))
}

// randomConfig returns a random configuration. Together, these configurations end windows for every
// reason.
func randomConfig(t *testing.T, roll *rand.Rand) *Config[[]string] {
	c := Config[[]string]{
		Size: time.Duration(1000+roll.IntN(9000)) * time.Millisecond, Time: timeIn, Lateness: time.Duration(roll.IntN(8000)) * time.Millisecond,
		Ahead: time.Duration(1+roll.IntN(8000)) * time.Millisecond, ByKey: roll.IntN(2) == 0, Add: names, Allowance: time.Duration(1+roll.IntN(3000)) * time.Millisecond,
		MaxRecords: 5 + roll.IntN(200), MaxAge: time.Duration(1000+roll.IntN(60_000)) * time.Millisecond,
		Emit: func(context.Context, Results[[]string]) error { return nil },
	}
	if roll.IntN(4) == 0 {
		c.Time, c.Lateness, c.Ahead = nil, 0, 0
	} else if roll.IntN(4) == 0 {
		c.Stray = Drop
	}
	if roll.IntN(3) == 0 {
		c.MaxRecords = 0
	}
	if roll.IntN(3) == 0 {
		c.MaxAge = 24 * time.Hour
	}
	if _, err := PullHandler(c); err != nil {
		t.Fatal(err)
	}
	c.setDefaults()
	return &c
}

// undisturbed returns the results of a single owner that never sees an empty shard.
func undisturbed(t *testing.T, c *Config[[]string], records []weir.Record) (all []Results[[]string]) {
	o := begin(c, records, weir.Oldest)
	for o.next < len(records) {
		all = append(all, o.take(t)...)
	}
	return append(all, o.end())
}

// same checks that a repeated result equals the first one.
func same(t *testing.T, first map[string]Result[[]string], w Result[[]string]) {
	t.Helper()
	was, some := first[w.ID]
	if w.Why == ShardEnded || was.Why == ShardEnded { // whether the reason is ShardEnded depends on when the end was seen
		was.Why = w.Why
	}
	if !some || fmt.Sprint(was) != fmt.Sprint(w) {
		t.Errorf("undisturbed, %s is %v; disturbed, it is %v", w.ID, was, w)
	}
}

// seeds returns how many histories to test. The long form tests all of them, and -short fewer. The
// race detector runs with -short.
func seeds(n uint64) uint64 {
	switch {
	case longform.On():
		return n
	case testing.Short():
		return n / 4
	}
	return n / 2
}

// The results do not depend on when the owner of the shard changes. If a sink moves its position
// together with the results, each result takes effect exactly once.
func TestAnyHistoryOfOwnersComesToTheSameResults(t *testing.T) {
	why, restarts, again, skipped := map[Why]int{}, 0, 0, 0
	for seed := range seeds(10) {
		roll := rand.New(rand.NewPCG(seed, 7))
		records := written(t, roll, 120+roll.IntN(250))
		for range 40 {
			c := randomConfig(t, roll)
			first, counts := map[string]Result[[]string]{}, [2]int{}
			in := map[string]int{}
			for _, r := range undisturbed(t, c, records) {
				counts[0] += r.Late
				counts[1] += r.NoTime
				for _, w := range r.Windows {
					if _, twice := first[w.ID]; twice {
						t.Errorf("seed %d: %s is there twice", seed, w.ID)
					}
					first[w.ID] = w
					why[w.Why]++
					for _, name := range w.State {
						in[name]++
					}
				}
			}
			strays := 0
			if c.Stray != nil {
				strays = counts[0] + counts[1]
			}
			total := 0
			for _, n := range in {
				total += n
			}
			if total+strays != len(records) {
				t.Errorf("seed %d: %d of %d records are in results, %d are strays", seed, total, len(records), strays)
			}
			for _, exactly := range []bool{false, true} {
				at, moved := weir.Oldest, [2]int{} // position of the sink
				saved := []weir.Position{weir.Oldest}
				effects := map[string]Result[[]string]{}
				apply := func(all []Results[[]string]) {
					for _, r := range all {
						for _, w := range r.Windows {
							same(t, first, w)
						}
						if exactly {
							if at.Compare(r.UpTo) >= 0 && !r.End {
								t.Errorf("seed %d: moved from %v to %v, and the sink is at %v", seed, r.From, r.UpTo, at)
							}
							if at != r.From {
								t.Errorf("seed %d: moved from %v, and the sink is at %v", seed, r.From, at)
							}
							at = r.UpTo
							moved[0] += r.Late
							moved[1] += r.NoTime
						}
						for _, w := range r.Windows {
							if _, twice := effects[w.ID]; twice && exactly {
								t.Errorf("seed %d: %s took effect twice", seed, w.ID)
							} else if twice {
								again++
							}
							effects[w.ID] = w
						}
						// The next heartbeat saves the position.
						if saved = append(saved, r.UpTo); roll.IntN(3) > 0 {
							saved = saved[len(saved)-1:]
						}
					}
				}
				o := begin(c, records, weir.Oldest)
				for o.next < len(records) {
					apply(o.take(t))
					if roll.IntN(10) == 0 {
						apply(o.lull(roll))
					}
					if roll.IntN(30) > 0 {
						continue
					}
					from := saved[roll.IntN(len(saved))]
					if exactly {
						from = at
					}
					saved = []weir.Position{from}
					if o = begin(c, records, from); o.next > 0 && from.Done() != shard.Whole {
						skipped++
					}
					restarts++
				}
				apply(o.lull(roll))
				apply([]Results[[]string]{o.end()})
				if len(effects) != len(first) {
					t.Errorf("seed %d: %d results, undisturbed there are %d", seed, len(effects), len(first))
				}
				if exactly && moved != counts {
					t.Errorf("seed %d: %v late and without a time, undisturbed %v", seed, moved, counts)
				}
			}
			if t.Failed() {
				t.Fatalf("seed %d: %+v", seed, *c)
			}
		}
	}
	if len(why) < 6 || again == 0 || skipped == 0 {
		t.Errorf("the test shows little")
	}
	t.Logf("results by why: %v; %d restarts, %d of them at marks; %d results made again", why, restarts, skipped, again)
}

// If no window ends early, a record is late exactly if an earlier record was far enough ahead. All
// other records with the same window and key are in one result.
func TestWindowsAreThoseOfTheWatermark(t *testing.T) {
	for seed := range seeds(8) {
		roll := rand.New(rand.NewPCG(seed, 8))
		records := written(t, roll, 200)
		for range 20 {
			c := randomConfig(t, roll)
			if c.Time == nil {
				continue
			}
			c.MaxAge, c.MaxRecords, c.Stray = 24*time.Hour, 1_000_000, nil
			want, got := map[string][]string{}, map[string][]string{}
			var latest time.Time
			for _, r := range records {
				at, _ := timeIn(r)
				of, as := at, Passed
				switch {
				case at.Year() < 1970 || at.Sub(r.ArrivalTime()) > c.Ahead:
					of, as = r.ArrivalTime(), NoTime
				case at.After(latest):
					latest = at
				}
				start := of.UnixMilli() / c.Size.Milliseconds() * c.Size.Milliseconds()
				if as != NoTime && latest.Add(-c.Lateness).UnixMilli() >= start+c.Size.Milliseconds() {
					as = Late
				}
				id := fmt.Sprint(start, as)
				if c.ByKey {
					id += r.PartitionKey
				}
				want[id], _ = names(want[id], r)
			}
			for _, r := range undisturbed(t, c, records) {
				for _, w := range r.Windows {
					as := w.Why
					if as == ShardEnded {
						as = Passed
					}
					id := fmt.Sprint(w.Start.UnixMilli(), as) + w.Key
					if _, twice := got[id]; twice && as == Passed {
						t.Errorf("seed %d: the window %s has two results", seed, id)
					}
					got[id] = append(got[id], w.State...)
				}
			}
			if !maps.EqualFunc(want, got, slices.Equal) {
				t.Fatalf("seed %d: %+v\nwant %v\ngot  %v", seed, *c, want, got)
			}
		}
	}
}
