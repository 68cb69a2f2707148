package behaviour

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/aggregate"
	"github.com/weir-go/weir/event"
	"github.com/weir-go/weir/health"
	"github.com/weir-go/weir/kinesistest"
	"github.com/weir-go/weir/shard"
	"github.com/weir-go/weir/store/memstore"
)

// fat extends a payload of a sink by n bytes.
func fat(data []byte, n int) []byte {
	return append(append(data, ' '), bytes.Repeat([]byte{'.'}, n)...)
}

// slim returns a batch whose payloads have the original length.
func slim(b *weir.Batch) *weir.Batch {
	own := *b
	own.Records = slices.Clone(b.Records)
	for i := range own.Records {
		data := own.Records[i].Data
		if cut := bytes.IndexByte(data[bytes.IndexByte(data, ' ')+1:], ' '); cut >= 0 {
			own.Records[i].Data = data[:bytes.IndexByte(data, ' ')+1+cut]
		}
	}
	return &own
}

// Shards whose reads return large answers move between workers whose handlers are slow. No record
// is lost, and the order is kept. A graceful handoff repeats nothing.
func TestLargePagesSurviveHandOffs(t *testing.T) {
	bubbleWith(t, kinesistest.Config{NoLimits: true}, 3, func(t *testing.T, srv *kinesistest.Server) {
		s, store := newSink(t), memstore.New()
		for n := range 6000 {
			key := fmt.Sprintf("key-%d", n%30)
			srv.Put("s", key, fat(s.next(key), 1000))
		}
		handle := func(ctx context.Context, b *weir.Batch) error {
			select {
			case <-time.After(700 * time.Millisecond):
			case <-ctx.Done():
				return context.Cause(ctx)
			}
			return s.handle(ctx, slim(b))
		}
		var stops []func() error
		for i := range 4 {
			stops = append(stops, start(t, srv.Client(), store, weir.Options{Batching: weir.Batching{MaxRecords: 300}, ReuseBuffers: i%2 == 0}, handle))
			time.Sleep(3 * time.Second)
		}
		for _, stop := range stops[:2] {
			if err := stop(); err != nil {
				t.Error(err)
			}
		}
		until(t, "everything handled", 10*time.Minute, func() bool { return s.missing() == 0 })
		for _, stop := range stops[2:] {
			if err := stop(); err != nil {
				t.Error(err)
			}
		}
		s.judge()
		if s.again != 0 {
			t.Errorf("%d records were handled again although every handoff was orderly", s.again)
		}
	})
}

// One answer of GetRecords with aggregates can become many batches, and handling all of them can
// take longer than StopTimeout. Batches that have not started are left to the next owner, which
// continues inside the aggregate. No record is handled twice.
func TestAStopLeavesTheRestOfAPage(t *testing.T) {
	bubble(t, 1, func(t *testing.T, srv *kinesistest.Server) {
		s, store := newSink(t), memstore.New()
		var packed aggregate.Builder
		for i := range 200 {
			key := fmt.Sprintf("key-%d", i%10)
			if err := packed.Add(key, "", s.next(key)); err != nil {
				t.Fatal(err)
			}
		}
		srv.Put("s", "key", packed.Append(nil))
		slowly := func(ctx context.Context, b *weir.Batch) error {
			select {
			case <-time.After(3 * time.Second):
			case <-ctx.Done():
				return context.Cause(ctx)
			}
			return s.handle(ctx, b)
		}
		stop := start(t, srv.Client(), store, weir.Options{Batching: weir.Batching{MaxRecords: 10}}, slowly)
		until(t, "a batch handled", time.Minute, func() bool { return s.missing() < 200 })
		began := time.Now()
		if err := stop(); err != nil {
			t.Error(err)
		}
		// Run waits for the batch in progress and for one or two heartbeats.
		if took := time.Since(began); took > 7*time.Second {
			t.Errorf("Run returned after %v, although no batch takes longer than 3 s", took)
		}
		if left := s.missing(); left < 150 {
			t.Errorf("%d records were left to the next owner, of 200", left)
		}
		stop = start(t, srv.Client(), store, weir.Options{}, s.handle)
		until(t, "the rest handled", 10*time.Second, func() bool { return s.missing() == 0 })
		if err := stop(); err != nil {
			t.Error(err)
		}
		s.judge()
		if s.again != 0 {
			t.Errorf("%d records were handled again", s.again)
		}
	})
}

// A handler that hangs stops only its own shard, and the status shows this. The other shards
// continue with the remaining memory.
func TestAHungHandlerStopsItsShardOnlyAndShows(t *testing.T) {
	bubbleWith(t, kinesistest.Config{NoLimits: true}, 4, func(t *testing.T, srv *kinesistest.Server) {
		for n := range 40_000 {
			srv.Put("s", strconv.Itoa(n%101), bytes.Repeat([]byte{'x'}, 1000))
		}
		var mu sync.Mutex
		handled := map[string]int{}
		hung := ""
		c, err := weir.New(srv.Client(), memstore.New(), weir.Options{App: "app", Streams: []string{"s"}, Logger: quiet, MaxMemory: 16 << 20})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() {
			done <- c.Run(ctx, weir.HandlerFunc(func(ctx context.Context, b *weir.Batch) error {
				mu.Lock()
				if hung == "" {
					hung = b.Shard
				}
				hang := hung == b.Shard
				handled[b.Shard] += len(b.Records)
				mu.Unlock()
				if hang {
					<-ctx.Done()
				}
				return nil
			}))
		}()
		time.Sleep(2 * time.Minute)
		synctest.Wait() // wait for reads that are in progress
		all := c.Shards()
		if len(all) != 4 {
			t.Fatalf("%d shards", len(all))
		}
		mu.Lock()
		defer mu.Unlock()
		for i, s := range all {
			if i > 0 && all[i-1].Shard >= s.Shard {
				t.Error("not sorted")
			}
			want, reading := health.AtTip, health.AtTip
			if s.Shard == hung {
				want, reading = health.InHandler, health.AwaitingHandler
				if s.Buffered == 0 || s.Buffered > 2000 {
					t.Errorf("%d records wait for the handler", s.Buffered)
				}
			} else if handled[s.Shard] < 5000 || s.Behind != 0 {
				t.Errorf("%s: only %d handled, %v behind", s.Shard, handled[s.Shard], s.Behind)
			}
			if s.Reason != want || s.Reading != reading && s.Reading != health.Requesting {
				t.Errorf("%s is %s, reading %s; want %s and %s", s.Shard, s.Reason, s.Reading, want, reading)
			}
			if s.Err != nil || s.Attempt != 0 || time.Since(s.Since) < 0 || s.Epoch == 0 {
				t.Errorf("%+v", s)
			}
		}
		cancel()
		mu.Unlock()
		err = <-done
		mu.Lock()
		if err != nil {
			t.Error(err)
		}
		if n := len(c.Shards()); n != 0 {
			t.Errorf("%d shards after Run", n)
		}
	})
}

func TestTheStatusSaysWhatFails(t *testing.T) {
	bubble(t, 1, func(t *testing.T, srv *kinesistest.Server) {
		srv.Put("s", "k", []byte("k 1"))
		c, err := weir.New(srv.Client(), memstore.New(), weir.Options{App: "app", Streams: []string{"s"}, Logger: quiet, Retry: weir.Retry{MinBackoff: 10 * time.Second}})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		broken := errors.New("the disk is full")
		var well atomic.Bool
		go func() {
			done <- c.Run(ctx, weir.HandlerFunc(func(context.Context, *weir.Batch) error {
				if well.Load() {
					return nil
				}
				return broken
			}))
		}()
		time.Sleep(3 * time.Second)
		if s := c.Shards()[0]; s.Reason != health.HandlerFailed || !errors.Is(s.Err, broken) || s.Attempt != 1 {
			t.Errorf("%+v", s)
		}
		well.Store(true)
		time.Sleep(time.Minute)
		srv.Control("GetRecords", func(*kinesistest.Call) kinesistest.Fault {
			return kinesistest.Fault{Err: &kinesistest.Error{Code: "KMSDisabledException"}}
		})
		time.Sleep(time.Minute)
		if s := c.Shards()[0]; s.Reason != health.ReadFailed || s.Err == nil || s.Attempt < 3 {
			t.Errorf("%+v", s)
		}
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

func TestAnExpiredCheckpointFollowsThePolicy(t *testing.T) {
	for policy, want := range map[weir.ExpiredPolicy]string{weir.FailExpired: "", weir.OldestExpired: "3", weir.LatestExpired: "4"} {
		bubbleWith(t, kinesistest.Config{RefuseTrimmed: true}, 1, func(t *testing.T, srv *kinesistest.Server) {
			store, got := memstore.New(), make(chan string, 10)
			handle := func(_ context.Context, b *weir.Batch) error {
				for _, r := range b.Records {
					got <- string(r.Data)
				}
				return nil
			}
			srv.Put("s", "k", []byte("1"))
			stop := start(t, srv.Client(), store, weir.Options{}, handle)
			<-got
			if err := stop(); err != nil {
				t.Error(err)
			}
			srv.Put("s", "k", []byte("2"))
			time.Sleep(30 * time.Hour)
			srv.Put("s", "k", []byte("3"))
			time.Sleep(5 * time.Second)
			var told []event.PositionExpired
			stop = start(t, srv.Client(), store, weir.Options{Expired: policy, OnEvent: event.Join(
				event.On(func(_ context.Context, e event.PositionExpired) { told = append(told, e) }),
			)}, handle)
			time.Sleep(20 * time.Second)
			srv.Put("s", "k", []byte("4"))
			time.Sleep(20 * time.Second)
			if err := stop(); err != nil {
				t.Error(err)
			}
			close(got)
			first := <-got
			if first != want || len(told) != 1 {
				t.Fatalf("policy %d: went on with %q, want %q; told %v", policy, first, want, told)
			}
			e := told[0]
			if e.Shard == "" || e.Stream != "s" || e.Err == nil || e.Position.Kind() != shard.Sequence || (e.Next == e.Position) != (want == "") {
				t.Errorf("policy %d: told %+v", policy, e)
			}
			if want != "" && !e.To.After(e.From) {
				t.Errorf("policy %d: told of %v to %v", policy, e.From, e.To)
			}
		})
	}
}
