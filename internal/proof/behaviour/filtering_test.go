package behaviour

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/event"
	"github.com/weir-go/weir/filter"
	"github.com/weir-go/weir/kinesistest"
	"github.com/weir-go/weir/store/memstore"
)

// wanted is a filter for records whose payload has "keep": true.
var wanted = filter.MustCompile(`{"data":{"keep":[true]}}`)

func kept(i int) []byte    { return fmt.Appendf(nil, `{"n":%d,"keep":true}`, i) }
func dropped(i int) []byte { return fmt.Appendf(nil, `{"n":%d,"keep":false}`, i) }

// collector is a handler that keeps the data of the records that it receives.
type collector struct {
	mu   sync.Mutex
	got  []string
	ends int
}

func (c *collector) handle(_ context.Context, b *weir.Batch) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, r := range b.Records {
		c.got = append(c.got, string(r.Data))
	}
	if b.End {
		c.ends++
	}
	return nil
}

func (c *collector) data() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	slices.Sort(c.got)
	return slices.Clone(c.got)
}

// pull pulls batches and handles them.
func (c *collector) pull(ctx context.Context, s *weir.Puller) error {
	for b, err := range s.Batches() {
		if err != nil {
			return err
		}
		if err := c.handle(ctx, b); err != nil {
			return err
		}
		if n := len(b.Records); n > 0 {
			if err := b.Done(b.Records[n-1]); err != nil {
				return err
			}
		}
	}
	return nil
}

// filteredWays contains the ways of handling records.
var filteredWays = map[string]func(t *testing.T, srv *kinesistest.Server, store *memstore.Store, opts weir.Options, c *collector) (stop func() error){
	"batches": func(t *testing.T, srv *kinesistest.Server, store *memstore.Store, opts weir.Options, c *collector) func() error {
		return start(t, srv.Client(), store, opts, c.handle)
	},
	"batches in memory that is used again": func(t *testing.T, srv *kinesistest.Server, store *memstore.Store, opts weir.Options, c *collector) func() error {
		opts.ReuseBuffers = true
		return start(t, srv.Client(), store, opts, c.handle)
	},
	"keys side by side": func(t *testing.T, srv *kinesistest.Server, store *memstore.Store, opts weir.Options, c *collector) func() error {
		opts.Concurrency.Keys = 4
		return start(t, srv.Client(), store, opts, c.handle)
	},
	"pulled": func(t *testing.T, srv *kinesistest.Server, store *memstore.Store, opts weir.Options, c *collector) func() error {
		return startPull(t, srv, store, opts, weir.PullHandler{Pull: c.pull})
	},
	"by fan-out": func(t *testing.T, srv *kinesistest.Server, store *memstore.Store, opts weir.Options, c *collector) func() error {
		opts.FanOut.Mode = weir.FanOutRegister
		return start(t, srv.Client(), store, opts, c.handle)
	},
}

// everyWay runs f for each way of handling records.
func everyWay(t *testing.T, f func(t *testing.T, srv *kinesistest.Server, begin func(*memstore.Store, weir.Options, *collector) (stop func() error))) {
	for name, way := range filteredWays {
		t.Run(name, func(t *testing.T) {
			bubble(t, 1, func(t *testing.T, srv *kinesistest.Server) {
				f(t, srv, func(store *memstore.Store, opts weir.Options, c *collector) func() error {
					opts.Filter.By = wanted
					return way(t, srv, store, opts, c)
				})
			})
		})
	}
}

func TestTheCheckpointPassesWhatIsDropped(t *testing.T) {
	everyWay(t, func(t *testing.T, srv *kinesistest.Server, begin func(*memstore.Store, weir.Options, *collector) func() error) {
		var want []string
		last := ""
		put := func(from, to int, keeps func(i int) bool) {
			for i := from; i < to; i++ {
				data := dropped(i)
				if keeps(i) {
					data = kept(i)
					want = append(want, string(data))
				}
				_, last = srv.Put("s", fmt.Sprint("key ", i%7), data)
			}
		}
		store, c := memstore.New(), &collector{}
		check := func(when string) {
			t.Helper()
			time.Sleep(20 * time.Second)
			slices.Sort(want)
			if got := c.data(); !slices.Equal(got, want) {
				t.Errorf("%s: handled %q, want %q", when, got, want)
			}
			if at := checkpointOf(t, store); at.SequenceNumber() != last || at.Done() != 1<<32-1 {
				t.Errorf("%s: the checkpoint is %v, the last record %s", when, at, last)
			}
		}
		put(0, 50, func(int) bool { return false })
		stop := begin(store, weir.Options{Batching: weir.Batching{MaxRecords: 10}}, c)
		check("nothing matches")
		put(50, 150, func(i int) bool { return i%3 == 0 })
		check("some match, not the last")
		put(150, 250, func(int) bool { return false })
		check("nothing matches any more")
		put(250, 260, func(int) bool { return true })
		check("all match")
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}

func TestAShardEndsThoughAllOfItIsDropped(t *testing.T) {
	everyWay(t, func(t *testing.T, srv *kinesistest.Server, begin func(*memstore.Store, weir.Options, *collector) func() error) {
		for i := range 30 {
			srv.Put("s", "key", dropped(i))
		}
		srv.Split("s", "shardId-000000000000")
		srv.Put("s", "key", kept(30))
		c := &collector{}
		stop := begin(memstore.New(), weir.Options{Batching: weir.Batching{MaxRecords: 7}}, c)
		time.Sleep(20 * time.Second)
		if got := c.data(); len(got) != 1 || got[0] != string(kept(30)) || c.ends != 1 {
			t.Errorf("handled %q, and %d ends", got, c.ends)
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}

func TestAggregatesAreSplitBeforeTheyAreFiltered(t *testing.T) {
	everyWay(t, func(t *testing.T, srv *kinesistest.Server, begin func(*memstore.Store, weir.Options, *collector) func() error) {
		for _, payloads := range [][][]byte{{dropped(1), kept(2), dropped(3)}, {dropped(4), dropped(5)}, {kept(6), kept(7)}} {
			srv.Put("s", "a", packedOf(t, payloads...))
		}
		_, last := srv.Put("s", "a", packedOf(t, kept(8), dropped(9)))
		store, c := memstore.New(), &collector{}
		stop := begin(store, weir.Options{}, c)
		time.Sleep(20 * time.Second)
		if got, want := c.data(), []string{string(kept(2)), string(kept(6)), string(kept(7)), string(kept(8))}; !slices.Equal(got, want) {
			t.Errorf("handled %q", got)
		}
		if at := checkpointOf(t, store); at.SequenceNumber() != last || at.Done() != 1<<32-1 {
			t.Errorf("the checkpoint is %v", at)
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}

// A record that was pulled and is not done holds the checkpoint back. The checkpoint must not pass
// this record when later records are dropped.
func TestWhatIsDroppedIsNotPassedBeforeWhatIsPulled(t *testing.T) {
	bubble(t, 1, func(t *testing.T, srv *kinesistest.Server) {
		srv.Put("s", "key", kept(1))
		srv.Put("s", "key", kept(2))
		_, last := srv.Put("s", "key", dropped(3))
		store := memstore.New()
		batches := make(chan *weir.Batch, 10)
		stop := startPull(t, srv, store, weir.Options{Filter: weir.Filter{By: wanted}}, weir.PullHandler{
			Pull: func(_ context.Context, s *weir.Puller) error {
				for b, err := range s.Batches() {
					if err != nil {
						return err
					}
					batches <- b
				}
				return nil
			},
		})
		b := <-batches
		for range 3 {
			time.Sleep(5 * time.Second)
			_, last = srv.Put("s", "key", dropped(4))
		}
		time.Sleep(5 * time.Second)
		if at := checkpointOf(t, store); at != weir.Oldest {
			t.Errorf("nothing is done, and the checkpoint is %v", at)
		}
		if err := b.Checkpoint(t.Context(), b.Records[0]); err != nil {
			t.Error(err)
		}
		if at := checkpointOf(t, store); at != b.Records[0].Position() {
			t.Errorf("the first is done, and the checkpoint is %v", at)
		}
		if err := b.Checkpoint(t.Context(), b.Records[1]); err != nil {
			t.Error(err)
		}
		if at := checkpointOf(t, store); at.SequenceNumber() != last {
			t.Errorf("all is done, and the checkpoint is %v, the last record %s", at, last)
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}

func TestWhatIsNotJSON(t *testing.T) {
	put := func(srv *kinesistest.Server) {
		for i, data := range [][]byte{kept(1), []byte("no JSON"), dropped(2), kept(3), []byte(`{"keep":tru}`)} {
			srv.Put("s", fmt.Sprint("key ", i), data)
		}
	}
	for name, c := range map[string]struct {
		then             weir.NotJSON
		want             []string
		filtered, letter int
	}{
		"passes by default": {weir.PassNotJSON, []string{"no JSON", `{"keep":tru}`, string(kept(1)), string(kept(3))}, 1, 0},
		"is dropped":        {weir.DropNotJSON, []string{string(kept(1)), string(kept(3))}, 3, 0},
		"fails":             {weir.FailNotJSON, []string{string(kept(1)), string(kept(3))}, 1, 2},
	} {
		for _, keys := range []int{0, 4} {
			t.Run(fmt.Sprint(name, ", keys ", keys), func(t *testing.T) {
				bubble(t, 1, func(t *testing.T, srv *kinesistest.Server) {
					put(srv)
					store, got, box := memstore.New(), &collector{}, &letterbox{}
					var told event.Filtered
					opts := weir.Options{Filter: weir.Filter{By: wanted, NotJSON: c.then}, OnFailure: weir.FailurePolicy{Destination: box}, Concurrency: weir.Concurrency{Keys: keys}}
					opts.OnEvent = event.Join(opts.OnEvent, event.On(func(_ context.Context, e event.Filtered) {
						told.Dropped += e.Dropped
						told.NotJSON += e.NotJSON
					}))
					w, stop, over := runs(t, srv, store, opts, got.handle)
					time.Sleep(20 * time.Second)
					stop()
					if err := <-over; err != nil {
						t.Error(err)
					}
					if data := got.data(); !slices.Equal(data, c.want) {
						t.Errorf("handled %q", data)
					}
					if n := w.Counts(); n.RecordsFiltered != uint64(c.filtered) || n.RecordsNotJSON != 2 || n.RecordsHandled != uint64(len(c.want)) {
						t.Errorf("%+v", n)
					}
					if told.Dropped != 1 || told.NotJSON != 2 {
						t.Errorf("told %+v", told)
					}
					letters := box.letters()
					if len(letters) != c.letter {
						t.Errorf("%d letters", len(letters))
					}
					for _, l := range letters {
						if l.Reason != "rejected" || !strings.Contains(l.Error, "not JSON") {
							t.Errorf("a dead letter with reason %s: %s", l.Reason, l.Error)
						}
					}
				})
			})
		}
	}
}

// The filter fails at a record. Without a destination for dead letters, the record is retried
// forever, and the checkpoint does not pass it.
func TestWhatFailsTheFilterIsTriedAgain(t *testing.T) {
	for _, keys := range []int{0, 4} {
		bubble(t, 1, func(t *testing.T, srv *kinesistest.Server) {
			_, before := srv.Put("s", "key", kept(1))
			srv.Put("s", "key", []byte("no JSON"))
			srv.Put("s", "key", kept(2))
			store, got := memstore.New(), &collector{}
			w, stop, over := runs(t, srv, store, weir.Options{Filter: weir.Filter{By: wanted, NotJSON: weir.FailNotJSON}, Concurrency: weir.Concurrency{Keys: keys}}, got.handle)
			time.Sleep(time.Minute)
			if s := shardOf(t, w); s.Err == nil || !strings.Contains(s.Err.Error(), "not JSON") || s.Attempt < 3 {
				t.Errorf("status %+v", s)
			}
			stop()
			if err := <-over; err != nil {
				t.Error(err)
			}
			if data := got.data(); !slices.Equal(data, []string{string(kept(1))}) {
				t.Errorf("handled %q", data)
			}
			if at := checkpointOf(t, store); at.SequenceNumber() != before {
				t.Errorf("the checkpoint is %v", at)
			}
		})
	}
}

// matcher is a filter that a user supplies.
type matcher func(data []byte) (matches, isJSON bool)

func (m matcher) Match(data []byte, _ string, _ time.Time) (matches, isJSON bool) { return m(data) }

func TestAFilterThatPanicsLosesNothing(t *testing.T) {
	bubble(t, 1, func(t *testing.T, srv *kinesistest.Server) {
		for i := range 10 {
			srv.Put("s", "key", kept(i))
		}
		box, got := &letterbox{}, &collector{}
		by := matcher(func(data []byte) (bool, bool) {
			if string(data) == string(kept(3)) {
				panic("a bug")
			}
			return true, true
		})
		stop := start(t, srv.Client(), memstore.New(), weir.Options{Filter: weir.Filter{By: by}, OnFailure: weir.FailurePolicy{Destination: box, MaxAttempts: 3, OutageGrace: -1}}, got.handle)
		time.Sleep(time.Minute)
		if err := stop(); err != nil {
			t.Error(err)
		}
		if n := len(got.data()); n != 9 {
			t.Errorf("%d were handled", n)
		}
		letters := box.letters()
		if len(letters) != 1 || string(letters[0].Data) != string(kept(3)) || letters[0].Reason != "attempts" || !strings.Contains(letters[0].Error, "Options.Filter panicked: a bug") {
			t.Errorf("letters %+v", letters)
		}
	})
}

// If a filter panics once at a record, it decides about that record at the next attempt.
func TestAFilterThatPanicsOnceDecidesLater(t *testing.T) {
	for _, notJSON := range []weir.NotJSON{weir.PassNotJSON, weir.DropNotJSON} {
		bubble(t, 1, func(t *testing.T, srv *kinesistest.Server) {
			for i := range 10 {
				srv.Put("s", "key", kept(i))
			}
			got, asked := &collector{}, map[string]int{}
			by := matcher(func(data []byte) (bool, bool) {
				if asked[string(data)]++; asked[string(data)] == 1 {
					panic("a bug")
				}
				switch string(data) {
				case string(kept(3)):
					return false, true
				case string(kept(4)):
					return false, false
				}
				return true, true
			})
			store := memstore.New()
			stop := start(t, srv.Client(), store, weir.Options{Filter: weir.Filter{By: by, NotJSON: notJSON}}, got.handle)
			time.Sleep(time.Minute)
			if err := stop(); err != nil {
				t.Error(err)
			}
			want := 9
			if notJSON == weir.DropNotJSON {
				want = 8
			}
			if data := got.data(); len(data) != want || slices.Contains(data, string(kept(3))) {
				t.Errorf("with %v handled %q", notJSON, data)
			}
		})
	}
}

func TestAFilterThatFailsRecordsCannotBePulled(t *testing.T) {
	bubble(t, 1, func(t *testing.T, srv *kinesistest.Server) {
		stop := startPull(t, srv, memstore.New(), weir.Options{Filter: weir.Filter{By: wanted, NotJSON: weir.FailNotJSON}}, weir.PullHandler{Pull: new(collector).pull})
		if err := stop(); err == nil || !strings.Contains(err.Error(), "Options.Filter.NotJSON") {
			t.Error(err)
		}
	})
}

func TestWhatIsPulledCannotBeGivenUp(t *testing.T) {
	bubble(t, 1, func(t *testing.T, srv *kinesistest.Server) {
		opts := weir.Options{OnFailure: weir.FailurePolicy{Destination: &letterbox{}}}
		stop := startPull(t, srv, memstore.New(), opts, weir.PullHandler{Pull: new(collector).pull})
		if err := stop(); err == nil || !strings.Contains(err.Error(), "leave Options.OnFailure out") {
			t.Error(err)
		}
	})
}

// A sink that does not store the ends of shards may lack dropped records. weir does not treat the
// sink as behind because of them, so it does not read the shard again.
func TestASinkIsNotBehindBecauseOfWhatIsDropped(t *testing.T) {
	bubble(t, 1, func(t *testing.T, srv *kinesistest.Server) {
		srv.Put("s", "key", kept(1))
		srv.Put("s", "key", dropped(2))
		srv.Put("s", "a", packedOf(t, dropped(3), dropped(4)))
		for range 2 {
			srv.Split("s", srv.OpenShards("s")[0])
		}
		srv.Put("s", "key", kept(5))
		store, sink := memstore.New(), newDatabase()
		for range 2 { // the second run queries the sink about ancestors that the first has finished
			stop := startShards(t, srv, store, weir.Options{Filter: weir.Filter{By: wanted}}, sink.handlers())
			time.Sleep(time.Minute)
			if err := stop(); err != nil {
				t.Error(err)
			}
		}
		if !slices.Equal(sink.effects, []string{string(kept(1)), string(kept(5))}) {
			t.Errorf("effects %q", sink.effects)
		}
		if slices.ContainsFunc(sink.opened[1:], func(s string) bool { return strings.HasPrefix(s, "shardId-000000000000 ") }) {
			t.Errorf("the first shard was read again: %q", sink.opened)
		}
	})
}
