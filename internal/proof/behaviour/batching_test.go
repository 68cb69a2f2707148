package behaviour

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/aggregate"
	"github.com/weir-go/weir/event"
	"github.com/weir-go/weir/health"
	"github.com/weir-go/weir/kinesistest"
	"github.com/weir-go/weir/store/memstore"
)

// gotBatches contains the batches that a handler received, as their payloads. Each payload is cut
// at the first space.
type gotBatches struct {
	mu      sync.Mutex
	batches [][]string
	at      []time.Time
	ends    []bool
}

func (s *gotBatches) handle(_ context.Context, b *weir.Batch) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var of []string
	for _, r := range b.Records {
		name, _, _ := strings.Cut(string(r.Data), " ")
		of = append(of, name)
	}
	s.batches, s.at, s.ends = append(s.batches, of), append(s.at, time.Now()), append(s.ends, b.End)
	return nil
}

func (s *gotBatches) all() [][]string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.batches)
}

func same(t *testing.T, what string, got [][]string, want ...string) {
	t.Helper()
	var as []string
	for _, b := range got {
		as = append(as, strings.Join(b, " "))
	}
	if !slices.Equal(as, want) {
		t.Errorf("%s: batches %q, want %q", what, as, want)
	}
}

// A batch has at most Options.Batching.MaxBytes bytes. A larger record is a batch by itself. This
// also holds for records from aggregates, and for batches of one key.
func TestBatchesAreBoundedByBytes(t *testing.T) {
	sizes := []int{40, 40, 40, 300, 10, 90, 1, 50, 50}
	want := []string{"0 1", "2", "3", "4 5", "6 7", "8"}
	for name, opts := range map[string]weir.Options{
		"plain": {}, "reused": {ReuseBuffers: true}, "waiting": {Batching: weir.Batching{MaxWait: time.Second}}, "both": {Batching: weir.Batching{MaxWait: time.Second}, ReuseBuffers: true},
		"keys": {Concurrency: weir.Concurrency{Keys: 2}},
	} {
		for _, packed := range []bool{false, true} {
			t.Run(fmt.Sprint(name, " ", packed), func(t *testing.T) {
				bubble(t, 1, func(t *testing.T, srv *kinesistest.Server) {
					var pack aggregate.Builder
					for i, n := range sizes {
						data := fmt.Appendf(nil, "%-*d", n, i)
						if packed {
							if err := pack.Add("key", "", data); err != nil {
								t.Fatal(err)
							}
						} else {
							srv.Put("s", "key", data)
						}
					}
					if packed {
						srv.Put("s", "key", pack.Append(nil))
					}
					var got gotBatches
					opts.Batching.MaxBytes = 100
					stop := start(t, srv.Client(), memstore.New(), opts, got.handle)
					time.Sleep(10 * time.Second)
					if err := stop(); err != nil {
						t.Error(err)
					}
					same(t, "by bytes", got.all(), want...)
				})
			})
		}
	}
}

// A batch that is not full waits until its first record has waited for Options.Batching.MaxWait.
// This holds for all ways of reading. The records are handled once, and in order.
func TestABatchThatIsNotFullWaits(t *testing.T) {
	for _, reading := range []weir.FanOutMode{weir.FanOutOff, weir.FanOutRegister} {
		for _, reuse := range []bool{false, true} {
			t.Run(fmt.Sprint(reading, " ", reuse), func(t *testing.T) {
				bubble(t, 1, func(t *testing.T, srv *kinesistest.Server) {
					var got gotBatches
					store := memstore.New()
					stop := start(t, srv.Client(), store, weir.Options{
						Batching: weir.Batching{MaxWait: 20 * time.Second, MaxRecords: 6}, FanOut: weir.FanOut{Mode: reading}, ReuseBuffers: reuse, Polling: weir.Polling{IdleInterval: 500 * time.Millisecond},
					}, got.handle)
					time.Sleep(15 * time.Second)
					began := time.Now()
					for i := range 4 {
						srv.Put("s", "key", []byte(fmt.Sprint(i)))
						time.Sleep(4 * time.Second)
					}
					if n := len(got.all()); n != 0 {
						t.Errorf("%d batches after 16 s", n)
					}
					if at := checkpointOf(t, store); at != weir.Oldest {
						t.Errorf("the checkpoint is %v although nothing was handled", at)
					}
					time.Sleep(6 * time.Second)
					same(t, "after the wait", got.all(), "0 1 2 3")
					if waited := got.at[0].Sub(began); waited < 20*time.Second || waited > 21*time.Second {
						t.Errorf("the batch waited for %v", waited)
					}
					for i := range 13 {
						srv.Put("s", "key", []byte(fmt.Sprint(i)))
					}
					time.Sleep(3 * time.Second)
					same(t, "full ones", got.all(), "0 1 2 3", "0 1 2 3 4 5", "6 7 8 9 10 11")
					if err := stop(); err != nil { // delivers the waiting records
						t.Error(err)
					}
					same(t, "at the stop", got.all(), "0 1 2 3", "0 1 2 3 4 5", "6 7 8 9 10 11", "12")
					if rest := handled(t, srv, store, weir.Options{}); len(rest) != 0 {
						t.Errorf("handled again: %v", rest)
					}
				})
			})
		}
	}
}

// If the records of one answer of GetRecords fill a waiting batch, the rest of them goes into
// further batches, and only the last of these waits.
func TestAPageThatFillsABatchGoesOnInWholeOnes(t *testing.T) {
	bubble(t, 1, func(t *testing.T, srv *kinesistest.Server) {
		var got gotBatches
		stop := start(t, srv.Client(), memstore.New(), weir.Options{Batching: weir.Batching{MaxWait: 20 * time.Second, MaxRecords: 6}}, got.handle)
		time.Sleep(3 * time.Second)
		srv.Put("s", "key", []byte("0"))
		time.Sleep(3 * time.Second)
		var pack aggregate.Builder
		for i := range 15 {
			if err := pack.Add("key", "", fmt.Append(nil, i+1)); err != nil {
				t.Fatal(err)
			}
		}
		srv.Put("s", "key", pack.Append(nil))
		time.Sleep(3 * time.Second)
		same(t, "full ones", got.all(), "0 1 2 3 4 5", "6 7 8 9 10 11")
		if err := stop(); err != nil {
			t.Error(err)
		}
		same(t, "after the stop", got.all(), "0 1 2 3 4 5", "6 7 8 9 10 11", "12 13 14 15")
	})
}

// When a shard ends, its waiting records are delivered together with the end. The records of its
// children come later.
func TestTheEndOfAShardEndsTheWait(t *testing.T) {
	bubble(t, 1, func(t *testing.T, srv *kinesistest.Server) {
		var got gotBatches
		stop := start(t, srv.Client(), memstore.New(), weir.Options{Batching: weir.Batching{MaxWait: 5 * time.Minute}}, got.handle)
		time.Sleep(3 * time.Second)
		srv.Put("s", "key", []byte("1"))
		time.Sleep(3 * time.Second)
		srv.Split("s", srv.OpenShards("s")[0])
		srv.Put("s", "key", []byte("2"))
		time.Sleep(10 * time.Second)
		same(t, "after the split", got.all(), "1")
		if !slices.Equal(got.ends, []bool{true}) {
			t.Errorf("ends: %v", got.ends)
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
		same(t, "after the stop", got.all(), "1", "2")
	})
}

// A batch may have to wait for minutes until it is full. A handoff does not wait for that: the
// owner drops the waiting batch without handling it, so another worker gets the lease soon. Nothing
// is handled twice.
func TestAHandOffEndsTheWait(t *testing.T) {
	bubble(t, 2, func(t *testing.T, srv *kinesistest.Server) {
		store := memstore.New()
		var one, other gotBatches
		opts := weir.Options{Batching: weir.Batching{MaxWait: 5 * time.Minute}}
		stop := start(t, srv.Client(), store, opts, one.handle)
		time.Sleep(3 * time.Second)
		for i := range 20 {
			srv.Put("s", fmt.Sprint("key-", i), []byte(fmt.Sprint(i)))
		}
		time.Sleep(3 * time.Second)
		stopOther := start(t, srv.Client(), store, opts, other.handle)
		time.Sleep(6 * time.Second)
		if n := len(one.all()); n != 1 {
			t.Errorf("%d batches of the shard that moved", n)
		}
		if err := errors.Join(stop(), stopOther()); err != nil {
			t.Error(err)
		}
		count := map[string]int{}
		for _, b := range slices.Concat(one.all(), other.all()) {
			for _, name := range b {
				count[name]++
			}
		}
		for i := range 20 {
			if n := count[fmt.Sprint(i)]; n != 1 {
				t.Errorf("record %d was handled %d times", i, n)
			}
		}
	})
}

// Waiting batches use no more than Options.MaxMemory.
func TestWhatWaitsIsBoundedByMemory(t *testing.T) {
	bubbleWith(t, kinesistest.Config{NoLimits: true}, 1, func(t *testing.T, srv *kinesistest.Server) {
		s := newSink(t)
		most := 0
		stop := start(t, srv.Client(), memstore.New(), weir.Options{Batching: weir.Batching{MaxWait: 5 * time.Minute}, MaxMemory: 16 << 20}, func(ctx context.Context, b *weir.Batch) error {
			n := 0
			for _, r := range b.Records {
				n += len(r.Data)
			}
			most = max(most, n)
			return s.handle(ctx, slim(b))
		})
		for range 700 {
			srv.Put("s", "key", fat(s.next("key"), 100_000))
		}
		time.Sleep(2 * time.Minute)
		if missing := s.missing(); missing > 160 { // of 70 MB, 16 MB may wait
			t.Errorf("%d of 700 records wait", missing)
		}
		if most > 16<<20 || most < 1<<20 {
			t.Errorf("the largest batch had %d bytes", most)
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
		if s.missing() > 0 {
			t.Errorf("%d records are missing", s.missing())
		}
		s.judge()
	})
}

// A batch that fails is handled again with the same records. Records that have arrived since then
// follow it.
func TestABatchThatWaitedAndFailsIsRepeated(t *testing.T) {
	bubble(t, 1, func(t *testing.T, srv *kinesistest.Server) {
		var got gotBatches
		fails := 3
		stop := start(t, srv.Client(), memstore.New(), weir.Options{Batching: weir.Batching{MaxWait: 5 * time.Second}, Retry: weir.Retry{MinBackoff: time.Second, MaxBackoff: time.Second}}, func(ctx context.Context, b *weir.Batch) error {
			if fails--; fails >= 0 {
				return errors.New("oh")
			}
			return got.handle(ctx, b)
		})
		time.Sleep(2 * time.Second)
		put(srv, 1, 3)
		time.Sleep(6 * time.Second)
		put(srv, 4, 6)
		time.Sleep(10 * time.Second)
		same(t, "after failures", got.all(), "1 2 3", "4 5 6")
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}

// The status of a shard with a waiting batch contains the reason AwaitingBatch.
func TestABatchThatWaitsIsShown(t *testing.T) {
	bubble(t, 1, func(t *testing.T, srv *kinesistest.Server) {
		var got gotBatches
		c, err := weir.New(srv.Client(), memstore.New(), weir.Options{App: "app", Streams: []string{"s"}, Logger: quiet, Batching: weir.Batching{MaxWait: time.Minute}})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- c.Run(ctx, weir.HandlerFunc(got.handle)) }()
		time.Sleep(3 * time.Second)
		put(srv, 1, 3)
		time.Sleep(3 * time.Second)
		if s := c.Shards(); len(s) != 1 || s[0].Reason != health.AwaitingBatch {
			t.Errorf("%+v", s)
		}
		time.Sleep(time.Minute)
		until(t, "the batch is handled, and the shard at its tip", time.Second, func() bool { // the status may be different during a read
			s := c.Shards()
			return len(s) == 1 && s[0].Reason == health.AtTip
		})
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

// With the field Idle of ShardHandlers or PullHandler, weir calls the handler when there are no
// records (an idle call). A failed idle call is repeated. A shard that gets a record each second
// has hardly any idle calls.
func TestCallsWhenThereIsNothing(t *testing.T) {
	for _, reading := range []weir.FanOutMode{weir.FanOutOff, weir.FanOutRegister} {
		for _, pull := range []bool{false, true} {
			t.Run(fmt.Sprint(reading, " ", pull), func(t *testing.T) {
				bubble(t, 1, func(t *testing.T, srv *kinesistest.Server) {
					var mu sync.Mutex
					idle, records, failures := 0, 0, 2
					var tip time.Time
					handle := func(_ context.Context, b *weir.Batch) error {
						mu.Lock()
						defer mu.Unlock()
						if b.Idle {
							if len(b.Records) > 0 || b.End {
								t.Error("an idle call has something")
							}
							if failures > 0 && !pull {
								failures--
								return errors.New("oh")
							}
							idle++
							if !b.Tip.IsZero() { // Tip is zero while a read is in progress
								tip = b.Tip
								if tip.After(time.Now()) || b.Behind != 0 {
									t.Errorf("the tip is at %v, behind %v", tip, b.Behind)
								}
							}
						}
						records += len(b.Records)
						return nil
					}
					run := func(ctx context.Context, c *weir.Consumer) error {
						return c.RunShards(ctx, weir.ShardHandlers{Idle: 2 * time.Second, Open: func(context.Context, weir.Term) (weir.ShardHandler, error) {
							return closer{weir.HandlerFunc(handle)}, nil
						}})
					}
					if pull {
						loop := func(ctx context.Context, p *weir.Puller) error {
							for b, err := range p.Batches() {
								if err != nil {
									return nil
								}
								if err := handle(ctx, b); err != nil {
									return err
								}
								for _, r := range b.Records {
									if err := b.Done(r); err != nil {
										return err
									}
								}
							}
							return nil
						}
						run = func(ctx context.Context, c *weir.Consumer) error {
							return c.RunPull(ctx, weir.PullHandler{Idle: 2 * time.Second, Pull: loop})
						}
					}
					stop := startRun(t, srv, memstore.New(), weir.Options{FanOut: weir.FanOut{Mode: reading}}, run)
					time.Sleep(time.Minute)
					mu.Lock()
					if idle < 15 || idle > 31 {
						t.Errorf("%d calls in a minute, every 2 s", idle)
					}
					if time.Since(tip) > 10*time.Second {
						t.Errorf("the tip was seen at %v", tip)
					}
					idle = 0
					mu.Unlock()
					for i := range 60 { // the shard is never idle for that long
						put(srv, i, i)
						time.Sleep(time.Second)
					}
					mu.Lock()
					if idle > 3 || records != 60 {
						t.Errorf("%d calls beside %d records", idle, records)
					}
					mu.Unlock()
					if err := stop(); err != nil {
						t.Error(err)
					}
				})
			})
		}
	}
}

type closer struct{ weir.Handler }

func (closer) Close(context.Context, event.EndReason) {}

func TestIdleIsChecked(t *testing.T) {
	bubble(t, 1, func(t *testing.T, srv *kinesistest.Server) {
		for _, d := range []time.Duration{-1, 1, time.Hour + 1} {
			c, err := weir.New(srv.Client(), memstore.New(), weir.Options{App: "app", Streams: []string{"s"}, Logger: quiet})
			if err != nil {
				t.Fatal(err)
			}
			err = c.RunPull(t.Context(), weir.PullHandler{Idle: d, Pull: func(context.Context, *weir.Puller) error { return nil }})
			if err == nil || !strings.Contains(err.Error(), "PullHandler.Idle") {
				t.Errorf("Idle %v: %v", d, err)
			}
		}
	})
}
