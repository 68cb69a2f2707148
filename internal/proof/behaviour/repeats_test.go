package behaviour

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/aggregate"
	"github.com/weir-go/weir/event"
	"github.com/weir-go/weir/internal/previous"
	"github.com/weir-go/weir/kinesistest"
	"github.com/weir-go/weir/lease"
	"github.com/weir-go/weir/producer"
	"github.com/weir-go/weir/shard"
	"github.com/weir-go/weir/store/memstore"
)

// times returns how often each payload was handled.
func (c *collector) times() map[string]int {
	n := map[string]int{}
	for _, data := range c.data() {
		n[data]++
	}
	return n
}

// numberedProducer returns a producer whose records have numbers. Some answers to its calls are
// lost after the records were stored.
func numberedProducer(t *testing.T, srv *kinesistest.Server) *producer.Producer {
	t.Helper()
	srv.Control("PutRecords", func(c *kinesistest.Call) kinesistest.Fault {
		return kinesistest.Fault{LoseAnswer: c.N%5 == 2}
	})
	p, err := producer.New(srv.Client(), producer.Options{Stream: "s", Numbered: true, Logger: quiet})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// Records whose answers are lost are in the stream twice, also on both sides of splits and merges.
// Workers that come and go handle each record once.
func TestRepeatsAreDropped(t *testing.T) {
	for name, way := range filteredWays {
		t.Run(name, func(t *testing.T) {
			bubble(t, 1, func(t *testing.T, srv *kinesistest.Server) {
				p, store, c := numberedProducer(t, srv), memstore.New(), &collector{}
				opts := weir.Options{DropRepeats: true, Aggregates: weir.UnpackOwn}
				var dropped int
				opts.OnEvent = event.On(func(_ context.Context, e event.Unpacked) { dropped += e.Repeats })
				var stops []func() error
				begin := func() { stops = append(stops, way(t, srv, store, opts, c)) }
				stop := func() {
					if err := stops[0](); err != nil {
						t.Error(err)
					}
					stops = stops[1:]
				}
				var low, high string
				begin()
				const records = 1200
				for i := range records {
					key := fmt.Sprint("key ", i%23)
					if _, err := p.Put(t.Context(), producer.Record{PartitionKey: key, Data: fmt.Append(nil, i)}); err != nil {
						t.Fatal(err)
					}
					time.Sleep(50 * time.Millisecond)
					switch i {
					case 200:
						low, high = srv.Split("s", srv.OpenShards("s")[0])
					case 300, 700:
						begin()
					case 450:
						stop()
					case 600:
						srv.Merge("s", low, high)
					case 650, 900:
						low, high = srv.Split("s", srv.OpenShards("s")[0])
					case 850:
						stop()
					}
				}
				if err := p.Close(t.Context()); err != nil {
					t.Fatal(err)
				}
				time.Sleep(time.Minute)
				stop()
				stored := 0
				for _, r := range srv.Records("s") {
					var a aggregate.Aggregate
					_, _ = a.Parse(r.Data)
					stored += a.Len()
				}
				got := c.times()
				for i := range records {
					if n := got[fmt.Sprint(i)]; n != 1 {
						t.Errorf("record %d was handled %d times", i, n)
					}
				}
				if dropped == 0 || stored < records*11/10 {
					t.Errorf("the stream has %d records, %d were dropped", stored, dropped)
				}
			})
		})
	}
}

// numberedBox returns a container with records of one series, with the given numbers as data.
func numberedBox(t *testing.T, series uint64, numbers ...uint64) []byte {
	t.Helper()
	var b aggregate.Builder
	for _, n := range numbers {
		if err := b.AddNumbered("key", "", fmt.Append(nil, n), aggregate.Tags{}, aggregate.Number{Series: series, N: n}); err != nil {
			t.Fatal(err)
		}
	}
	return b.AppendContainer(nil)
}

// What a worker before has handled decides which records are repeats.
func TestWhatIsARepeat(t *testing.T) {
	drops := weir.Options{DropRepeats: true}
	for _, tt := range []struct {
		name string
		// between changes the store after a worker has handled 1, 2 and 3.
		between func(t *testing.T, store *memstore.Store, srv *kinesistest.Server)
		before  weir.Options
		second  weir.Options
		want    map[string]int
	}{
		{"a worker continues", nil, drops, drops, map[string]int{"1": 1, "2": 1, "3": 1, "4": 1}},
		{"a worker without the option", nil, drops, weir.Options{}, map[string]int{"1": 1, "2": 2, "3": 2, "4": 1}},
		{"a worker after one without the option", nil, weir.Options{}, drops, map[string]int{"1": 1, "2": 2, "3": 2, "4": 1}},
		{"a worker after a reset", func(t *testing.T, store *memstore.Store, _ *kinesistest.Server) {
			move(t, store, func(l *lease.Lease) { l.Numbers = "" })
		}, drops, drops, map[string]int{"1": 2, "2": 2, "3": 2, "4": 1}},
		{"a worker after a reset by a version that keeps the numbers", func(t *testing.T, store *memstore.Store, _ *kinesistest.Server) {
			move(t, store, func(*lease.Lease) {})
		}, drops, drops, map[string]int{"1": 2, "2": 2, "3": 2, "4": 1}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			bubble(t, 1, func(t *testing.T, srv *kinesistest.Server) {
				store, c := memstore.New(), &collector{}
				srv.Put("s", "key", numberedBox(t, 7, 1, 2, 3))
				stop := start(t, srv.Client(), store, tt.before, c.handle)
				time.Sleep(10 * time.Second)
				if err := stop(); err != nil {
					t.Error(err)
				}
				if tt.between != nil {
					tt.between(t, store, srv)
				}
				srv.Put("s", "key", numberedBox(t, 7, 2, 3, 4))
				stop = start(t, srv.Client(), store, tt.second, c.handle)
				time.Sleep(20 * time.Second)
				if err := stop(); err != nil {
					t.Error(err)
				}
				if got := c.times(); fmt.Sprint(got) != fmt.Sprint(tt.want) {
					t.Errorf("handled %v, want %v", got, tt.want)
				}
			})
		})
	}
}

// move sets the only lease back to the oldest record, with the numbers that change leaves.
func move(t *testing.T, store *memstore.Store, change func(*lease.Lease)) {
	t.Helper()
	v, err := store.View(t.Context(), "app", "")
	if err != nil || len(v.Leases) != 1 || v.Leases[0].Numbers == "" {
		t.Fatalf("%v, %+v", err, v.Leases)
	}
	l := v.Leases[0]
	l.Position, l.Owner = shard.Oldest, ""
	l.Epoch++
	change(&l)
	did, err := store.Apply(t.Context(), "app", []lease.Action{{Kind: lease.Replace, Key: l.Key, Epoch: v.Leases[0].Epoch, Lease: l}})
	if err != nil || !did[0] {
		t.Fatal(did, err)
	}
}

// A store that cannot keep the numbers is refused.
func TestDropRepeatsNeedsAStoreThatKeepsNumbers(t *testing.T) {
	bubble(t, 1, func(t *testing.T, srv *kinesistest.Server) {
		opts := weir.Options{App: "app", Streams: []string{"s"}, DropRepeats: true}
		if _, err := weir.New(srv.Client(), previous.Client(memstore.New()), opts); err == nil {
			t.Error("New takes a store without the ability")
		} else if want := "weir: the store lacks an ability: note numbers, which is needed for Options.DropRepeats"; err.Error() != want {
			t.Errorf("New returns %q, want %q", err, want)
		}
	})
}
