package behaviour

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/health"
	"github.com/weir-go/weir/kinesistest"
	"github.com/weir-go/weir/lease"
	"github.com/weir-go/weir/store/memstore"
)

// keyed is a handler for parallel keys. It records its calls.
type keyed struct {
	t     *testing.T
	takes time.Duration // duration of a record
	does  func(ctx context.Context, b *weir.Batch, r weir.Record) error

	mu    sync.Mutex
	got   map[string][]string // handled records by key, in order
	works map[string]int      // calls in progress by shard
	most  int                 // maximum number of concurrent calls of a shard
	in    map[string]bool     // keys with a call in progress
	ended map[string]time.Time
}

func newKeyed(t *testing.T, takes time.Duration) *keyed {
	return &keyed{t: t, takes: takes, got: map[string][]string{}, works: map[string]int{}, in: map[string]bool{}, ended: map[string]time.Time{}}
}

func (h *keyed) handle(ctx context.Context, b *weir.Batch) error {
	key := ""
	if len(b.Records) > 0 {
		key = b.Records[0].PartitionKey
	}
	h.mu.Lock()
	if h.in[key] && key != "" {
		h.t.Errorf("two calls have records of %q", key)
	}
	h.in[key] = true
	h.works[b.Shard]++
	h.most = max(h.most, h.works[b.Shard])
	if b.End {
		h.ended[b.Shard] = time.Now()
		if h.works[b.Shard] > 1 || len(b.Records) > 0 {
			h.t.Errorf("the end comes beside %d calls, with %d records", h.works[b.Shard]-1, len(b.Records))
		}
	}
	h.mu.Unlock()
	defer func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.in[key] = false
		h.works[b.Shard]--
	}()
	for i, r := range b.Records {
		if r.PartitionKey != key {
			h.t.Errorf("a batch with keys %q and %q", key, r.PartitionKey)
		}
		time.Sleep(h.takes)
		if h.does != nil {
			if err := h.does(ctx, b, r); err != nil {
				return err
			}
		}
		h.mu.Lock()
		h.got[key] = append(h.got[key], string(r.Data))
		h.mu.Unlock()
		if err := b.Done(b.Records[i]); err != nil {
			return err
		}
	}
	return nil
}

func (h *keyed) count(key string) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.got[key])
}

func (h *keyed) all() (n int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, of := range h.got {
		n += len(of)
	}
	return n
}

// inOrder checks that each key has all of its records once and in order.
func (h *keyed) inOrder(keys []string, each int) {
	h.t.Helper()
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, key := range keys {
		var want []string
		for i := range each {
			want = append(want, fmt.Sprint(key, " ", i))
		}
		if !slices.Equal(h.got[key], want) {
			h.t.Errorf("of %s %q", key, h.got[key])
		}
	}
}

// putKeys puts the given number of records of each key, alternating between the keys.
func putKeys(srv *kinesistest.Server, keys []string, each int) {
	for i := range each {
		for _, key := range keys {
			srv.Put("s", key, []byte(fmt.Sprint(key, " ", i)))
		}
	}
}

func someKeys(n int) (keys []string) {
	for i := range n {
		keys = append(keys, fmt.Sprint("k", i))
	}
	return keys
}

// shardOf returns the status of a consumer's only shard.
func shardOf(t *testing.T, c *weir.Consumer) weir.ShardStatus {
	t.Helper()
	all := c.Shards()
	if len(all) != 1 {
		t.Fatalf("%d shards", len(all))
	}
	return all[0]
}

// runs starts a consumer and returns it, so that a test can query its health. The channel receives
// the result of Run.
func runs(t *testing.T, srv *kinesistest.Server, store lease.Store, opts weir.Options, h weir.HandlerFunc) (*weir.Consumer, context.CancelFunc, <-chan error) {
	t.Helper()
	opts.App, opts.Streams, opts.Logger = "app", []string{"s"}, quiet
	c, err := weir.New(srv.Client(), store, opts)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	over := make(chan error, 1)
	go func() { over <- c.Run(ctx, h) }()
	return c, cancel, over
}

func TestKeysAreHandledSideBySide(t *testing.T) {
	for _, row := range []struct {
		keys, calls, shards, records, want int
		most                               time.Duration
	}{
		{8, 100, 1, 64, 8, 4 * time.Second},      // 64 keys, 8 at a time: 8 rounds of 4 records of 100 ms, and reading
		{8, 3, 1, 64, 4, 9 * time.Second},        // three records, which take 8.5 s, and sometimes the oldest record too
		{64, 100, 1, 64, 64, 1 * time.Second},    // all at the same time
		{2, 100, 1, 1, 1, 1 * time.Second},       // a single key
		{64, 100, 4, 64, 40, 2 * time.Second},    // in four shards
		{16, 1, 1, 256, 2, 60 * time.Second},     // one slot, and the oldest record
		{100, 100, 1, 100, 100, 2 * time.Second}, // as many as there are keys
	} {
		t.Run(fmt.Sprintf("%d of %d keys, %d calls, %d shards", row.keys, row.records, row.calls, row.shards), func(t *testing.T) {
			bubble(t, row.shards, func(t *testing.T, srv *kinesistest.Server) {
				h, keys := newKeyed(t, 100*time.Millisecond), someKeys(row.records)
				putKeys(srv, keys, 4)
				_, stop, over := runs(t, srv, memstore.New(), weir.Options{Concurrency: weir.Concurrency{Keys: row.keys, MaxCalls: row.calls}}, h.handle)
				until(t, "a call", 10*time.Second, func() bool { h.mu.Lock(); defer h.mu.Unlock(); return h.most > 0 })
				took := until(t, "all", 2*time.Minute, func() bool { return h.all() == 4*len(keys) })
				h.inOrder(keys, 4)
				if h.most > row.want || row.shards == 1 && h.most < row.want || took > row.most {
					t.Errorf("%d calls at a time, want %d; it took %v", h.most, row.want, took)
				}
				stop()
				if err := <-over; err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// A key that fails delays only itself. Other keys continue as far as the span allows. The
// checkpoint waits for the failing key, and the status shows it.
func TestAKeyThatFailsHoldsUpItself(t *testing.T) {
	bubble(t, 1, func(t *testing.T, srv *kinesistest.Server) {
		store, h := memstore.New(), newKeyed(t, time.Millisecond)
		var bad sync.Map
		bad.Store("k3 2", true)
		h.does = func(_ context.Context, _ *weir.Batch, r weir.Record) error {
			if _, is := bad.Load(string(r.Data)); is {
				return errors.New("not yet")
			}
			return nil
		}
		keys := someKeys(10)
		putKeys(srv, keys, 50) // 500 records, 23 of them before the bad one
		c, stop, over := runs(t, srv, store, weir.Options{Concurrency: weir.Concurrency{Keys: 4, MaxRecords: 200}}, h.handle)
		time.Sleep(time.Minute)
		if n := h.count("k3"); n != 2 {
			t.Errorf("%d of the key that fails were handled", n)
		}
		if n := h.all(); n < 23+150 || n > 23+180 { // a tenth of the records belongs to the failing key
			t.Errorf("%d were handled, want as many as a span has beyond the bad one", n)
		}
		s := shardOf(t, c)
		if s.Keys < 1 || s.Span < 170 || s.Span > 200 || s.Err == nil || s.Attempt < 5 || s.Reason != health.HandlerFailed {
			t.Errorf("it stands like this: %+v", s)
		}
		v, err := store.View(t.Context(), "app", "")
		if err != nil || len(v.Leases) != 1 || v.Leases[0].Position != s.At {
			t.Errorf("%v; %v, want %v", err, v.Leases, s.At)
		}
		troubles := v.Workers[0].Troubles
		if len(troubles) != 1 || troubles[0].Failing.KeyHash == "" || troubles[0].Failing.Attempts < 5 || !strings.Contains(troubles[0].Why, "not yet") {
			t.Errorf("it says %+v", troubles)
		}
		bad.Delete("k3 2")
		until(t, "all", time.Minute, func() bool { return h.all() == 500 })
		h.inOrder(keys, 50)
		time.Sleep(2 * time.Second)
		if s := shardOf(t, c); s.Keys != 0 || s.Span != 0 || s.Err != nil {
			t.Errorf("in the end it stands like this: %+v", s)
		}
		stop()
		if err := <-over; err != nil {
			t.Error(err)
		}
	})
}

// With a policy for dead letters, only the failing record is dead-lettered, and the checkpoint
// advances.
func TestAKeyIsGivenUpBesideOthers(t *testing.T) {
	bubble(t, 1, func(t *testing.T, srv *kinesistest.Server) {
		h, box := newKeyed(t, time.Millisecond), &letterbox{fail: func(put int) error {
			if put < 4 {
				return errors.New("no room")
			}
			return nil
		}}
		h.does = func(_ context.Context, b *weir.Batch, r weir.Record) error {
			if strings.HasSuffix(string(r.Data), " 7") {
				return weir.FailedAt(r, errors.New("never"))
			}
			return nil
		}
		keys := someKeys(6)
		putKeys(srv, keys, 20)
		c, stop, over := runs(t, srv, memstore.New(), weir.Options{Concurrency: weir.Concurrency{Keys: 8}, OnFailure: weir.FailurePolicy{Destination: box, MaxAttempts: 3, OutageGrace: -1}}, h.handle)
		until(t, "all", time.Minute, func() bool { return h.all() == 6*19 })
		time.Sleep(2 * time.Second)
		got := box.data()
		slices.Sort(got)
		if want := []string{"k0 7", "k1 7", "k2 7", "k3 7", "k4 7", "k5 7"}; !slices.Equal(got, want) {
			t.Errorf("letters of %q", got)
		}
		for _, l := range box.got {
			if l.Attempts != 3 || l.Together != 1 {
				t.Errorf("%+v", l)
			}
		}
		if s := shardOf(t, c); s.Span != 0 {
			t.Errorf("%+v", s)
		}
		stop()
		if err := <-over; err != nil {
			t.Error(err)
		}
	})
}

// The end of a shard is delivered when all of its keys are done. The records of its children come
// after that.
func TestTheEndWaitsForAllKeys(t *testing.T) {
	bubble(t, 1, func(t *testing.T, srv *kinesistest.Server) {
		h := newKeyed(t, time.Millisecond)
		began := time.Now()
		h.does = func(_ context.Context, _ *weir.Batch, r weir.Record) error {
			if string(r.Data) == "k2 5" && time.Since(began) < time.Minute {
				return errors.New("not yet")
			}
			return nil
		}
		keys := someKeys(5)
		putKeys(srv, keys, 10)
		srv.Split("s", "shardId-000000000000")
		for i := 10; i < 20; i++ {
			for _, key := range keys {
				srv.Put("s", key, []byte(fmt.Sprint(key, " ", i)))
			}
		}
		_, stop, over := runs(t, srv, memstore.New(), weir.Options{Concurrency: weir.Concurrency{Keys: 8}}, h.handle)
		time.Sleep(50 * time.Second)
		if n := h.all(); n != 45 || len(h.ended) > 0 {
			t.Errorf("%d were handled, and the ends of %v", n, slices.Collect(maps.Keys(h.ended)))
		}
		until(t, "all", time.Minute, func() bool { return h.all() == 100 })
		h.inOrder(keys, 20)
		if len(h.ended) != 1 {
			t.Errorf("the ends of %v", h.ended)
		}
		stop()
		if err := <-over; err != nil {
			t.Error(err)
		}
	})
}

// If a handler stops Run, this takes effect immediately, even during other calls. No new call
// begins in any shard.
func TestStopIsHeardWhileOthersAreAtWork(t *testing.T) {
	for name, end := range map[string]func() error{
		"Stop":         func() error { return weir.Stop(errors.New("enough")) },
		"runtime.Exit": func() error { runtime.Goexit(); return nil },
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, 2, func(t *testing.T, srv *kinesistest.Server) {
				h := newKeyed(t, time.Millisecond)
				release := make(chan struct{})
				var stopped time.Time
				keys := someKeys(40)
				h.does = func(_ context.Context, _ *weir.Batch, r weir.Record) error {
					switch string(r.Data) {
					case "k0 1": // ignores the end of its context
						<-release
					case "k1 2", "k2 2", "k3 2", "k4 2":
						time.Sleep(2 * time.Second)
						h.mu.Lock()
						stopped = time.Now()
						h.mu.Unlock()
						return end()
					}
					return nil
				}
				putKeys(srv, keys, 10)
				_, _, over := runs(t, srv, memstore.New(), weir.Options{Concurrency: weir.Concurrency{Keys: 64}}, h.handle)
				until(t, "the stop", time.Minute, func() bool { h.mu.Lock(); defer h.mu.Unlock(); return !stopped.IsZero() })
				time.Sleep(2 * time.Second)
				before := h.all()
				putKeys(srv, keys, 10)
				time.Sleep(10 * time.Second)
				if n := h.all(); n != before {
					t.Errorf("%d more were handled after the stop", n-before)
				}
				close(release)
				if err := <-over; err == nil {
					t.Error("Run returned nil")
				}
			})
		})
	}
}

// Calls that wait until all earlier records are saved release their slots to calls for those
// earlier records.
func TestCallsThatSaveLeaveTheirPlaces(t *testing.T) {
	bubble(t, 2, func(t *testing.T, srv *kinesistest.Server) {
		h := newKeyed(t, 100*time.Millisecond)
		h.does = func(ctx context.Context, b *weir.Batch, r weir.Record) error { return b.Checkpoint(ctx, r) }
		keys := someKeys(30)
		putKeys(srv, keys, 3)
		_, stop, over := runs(t, srv, memstore.New(), weir.Options{Concurrency: weir.Concurrency{Keys: 3, MaxCalls: 2}}, h.handle)
		until(t, "all", 5*time.Minute, func() bool { return h.all() == 90 })
		h.inOrder(keys, 3)
		stop()
		if err := <-over; err != nil {
			t.Error(err)
		}
	})
}

// A checkpoint inside a handler covers all records up to that point, including those of other keys.
func TestACheckpointWaitsForOtherKeys(t *testing.T) {
	bubble(t, 1, func(t *testing.T, srv *kinesistest.Server) {
		h, store := newKeyed(t, time.Millisecond), memstore.New()
		var saved time.Time
		began := time.Now()
		h.does = func(ctx context.Context, b *weir.Batch, r weir.Record) error {
			switch string(r.Data) {
			case "k0 0": // comes before the other key
				time.Sleep(20 * time.Second)
			case "k1 0":
				if err := b.Checkpoint(ctx, r); err != nil {
					return err
				}
				saved = time.Now()
				v, err := store.View(ctx, "app", "")
				if err != nil || v.Leases[0].Position.SequenceNumber() < r.SequenceNumber {
					t.Errorf("%v; %v", err, v.Leases)
				}
			}
			return nil
		}
		putKeys(srv, someKeys(3), 1)
		_, stop, over := runs(t, srv, store, weir.Options{Concurrency: weir.Concurrency{Keys: 8}}, h.handle)
		until(t, "all", time.Minute, func() bool { return h.all() == 3 })
		if took := saved.Sub(began); took < 20*time.Second || took > 25*time.Second {
			t.Errorf("it was saved after %v", took)
		}
		stop()
		if err := <-over; err != nil {
			t.Error(err)
		}
	})
}

// weir reuses the memory of a call for the next call. A batch that has ended must not affect the
// next call: marking a record of the next call with the old batch returns an error.
func TestABatchThatIsOverTakesNoRecordOfTheNext(t *testing.T) {
	bubble(t, 1, func(t *testing.T, srv *kinesistest.Server) {
		h := newKeyed(t, time.Millisecond)
		var before []*weir.Batch
		failed := map[string]bool{}
		h.does = func(_ context.Context, b *weir.Batch, r weir.Record) error {
			h.mu.Lock()
			defer h.mu.Unlock()
			for _, old := range before {
				done := old.Records[0]
				if err := old.Done(done); err != nil {
					t.Errorf("a record that is done: %v", err)
				}
				if of := old.Records[0].PartitionKey; of != r.PartitionKey && old.Done(r) == nil {
					t.Errorf("a batch of %q takes a record of %q", of, r.PartitionKey)
				}
			}
			if strings.HasSuffix(string(r.Data), " 0") {
				before = append(before, b)
				return nil
			}
			if key := r.PartitionKey; !failed[key] {
				failed[key] = true
				return errors.New("not yet") // nothing of it is done, whatever the other calls marked
			}
			return nil
		}
		keys := someKeys(12)
		putKeys(srv, keys, 2)
		_, stop, over := runs(t, srv, memstore.New(), weir.Options{Batching: weir.Batching{MaxRecords: 1}, Concurrency: weir.Concurrency{Keys: 2}}, h.handle)
		until(t, "all", time.Minute, func() bool { return h.all() == 2*len(keys) })
		h.inOrder(keys, 2)
		for _, old := range before {
			if err := old.Checkpoint(t.Context(), old.Records[0]); err != nil {
				t.Errorf("a record that is done: %v", err)
			}
		}
		stop()
		if err := <-over; err != nil {
			t.Error(err)
		}
	})
}
