package behaviour

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/event"
	"github.com/weir-go/weir/internal/history"
	"github.com/weir-go/weir/kinesistest"
	"github.com/weir-go/weir/lease"
	"github.com/weir-go/weir/store/memstore"
	"github.com/weir-go/weir/store/storetest"
)

// reported returns the samples that the workers of an application have reported, and their number
// by session.
func reported(t *testing.T, store lease.Store) (samples []history.Sample, sessions map[string]int) {
	t.Helper()
	chunks, err := store.(lease.Historian).History(t.Context(), "app", 0)
	if err != nil {
		t.Fatal(err)
	}
	sessions = map[string]int{}
	for _, c := range chunks {
		some, _, err := history.Read(c)
		if err != nil {
			t.Fatal(err)
		}
		sessions[c.Session] += len(some)
		samples = append(samples, some...)
	}
	return samples, sessions
}

func TestOwnersReportHowTheirShardsStand(t *testing.T) {
	bubble(t, 4, func(t *testing.T, srv *kinesistest.Server) {
		store := memstore.New()
		slow := func(ctx context.Context, _ *weir.Batch) error {
			select {
			case <-time.After(5 * time.Second):
			case <-ctx.Done():
			}
			return nil
		}
		stop := start(t, srv.Client(), store, weir.Options{Worker: "one", Batching: weir.Batching{MaxRecords: 1}}, slow)
		stopTwo := start(t, srv.Client(), store, weir.Options{Worker: "two", Batching: weir.Batching{MaxRecords: 1}}, slow)
		for range 10 * 60 / 2 { // twice as many as the handler of one shard can handle; all have one key
			srv.Put("s", "key", []byte("x"))
			time.Sleep(2 * time.Second)
		}
		v, err := store.View(t.Context(), "app", "")
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(stop(), stopTwo()); err != nil {
			t.Error(err)
		}
		samples, sessions := reported(t, store)
		for _, w := range v.Workers {
			if sessions[w.Session] < 18 {
				t.Errorf("session %s reported %d samples of its two shards in 10 minutes", w.Session, sessions[w.Session])
			}
		}
		// The samples are grouped by session, and a shard may have moved.
		slices.SortStableFunc(samples, func(a, b history.Sample) int { return cmp.Compare(a.Minute, b.Minute) })
		var busy, idle, began, ended int
		var last time.Duration
		for _, s := range samples {
			switch {
			case s.Busy > 80:
				busy++
				if s.Lag < last && s.Marks&history.Ended == 0 {
					t.Errorf("in minute %d the lag of the busy shard is %v, and was %v", s.Minute, s.Lag, last)
				}
				last = max(last, s.Lag)
			case s.Busy == 0 && s.Lag == 0:
				idle++
			}
			if s.Marks&history.Began != 0 {
				began++
			}
			if s.Marks&history.Ended != 0 {
				ended++
			}
		}
		if busy < 8 || idle < 24 || last < 4*time.Minute || last > 8*time.Minute || began < 4 || ended < 4 {
			t.Errorf("%d samples of a busy shard, which is %v behind at last, %d of idle ones, %d begin, %d end: %+v", busy, last, idle, began, ended, samples)
		}
	})
}

// Owners report for how long throttling delayed reading. The number of throttled reads would be
// misleading: each throttled read is followed by a longer pause, so the more reads are throttled,
// the fewer reads there are.
func TestOwnersReportForHowLongThrottlesHeldReadingUp(t *testing.T) {
	const throttled = "ProvisionedThroughputExceededException"
	for _, c := range []struct {
		name, action, code string
		reading            weir.FanOutMode
		fails              func(n int) bool // reports whether the n-th call fails
		least, most        int              // percent of a minute; least applies to whole minutes
		marks              history.Marks
	}{
		{"no read", "GetRecords", throttled, weir.FanOutOff, func(int) bool { return false }, 0, 0, 0},
		{"one read in twenty", "GetRecords", throttled, weir.FanOutOff, func(n int) bool { return n%20 == 0 }, 2, 10, 0},
		{"every other read", "GetRecords", throttled, weir.FanOutOff, func(n int) bool { return n%2 == 0 }, 15, 60, 0},
		{"all reads", "GetRecords", throttled, weir.FanOutOff, func(int) bool { return true }, 80, 100, 0},
		{"all iterators", "GetShardIterator", "LimitExceededException", weir.FanOutOff, func(int) bool { return true }, 80, 100, 0},
		{"reads that fail otherwise", "GetRecords", "InternalFailure", weir.FanOutOff, func(int) bool { return true }, 0, 0, history.Unread},
		{"no subscription", "SubscribeToShard", "LimitExceededException", weir.FanOutRegister, func(int) bool { return false }, 0, 0, 0},
		{"while one is in the way", "SubscribeToShard", "ResourceInUseException", weir.FanOutRegister, func(n int) bool { return n < 3 }, 0, 0, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			bubble(t, 1, func(t *testing.T, srv *kinesistest.Server) {
				srv.Control(c.action, func(call *kinesistest.Call) kinesistest.Fault {
					if c.fails(call.N) {
						return kinesistest.Fault{Err: &kinesistest.Error{Code: c.code}}
					}
					return kinesistest.Fault{}
				})
				store, reads := memstore.New(), 0
				count := event.On(func(_ context.Context, e event.ReadFailed) {
					if e.Throttled {
						reads++
					}
				})
				stop := start(t, srv.Client(), store, weir.Options{FanOut: weir.FanOut{Mode: c.reading}, OnEvent: count}, func(context.Context, *weir.Batch) error { return nil })
				time.Sleep(10 * time.Minute)
				if err := stop(); err != nil {
					t.Error(err)
				}
				samples, _ := reported(t, store)
				var parts []int
				for i, s := range samples {
					whole := i > 1 && i < len(samples)-1
					if parts = append(parts, s.Throttled); s.Throttled > c.most || whole && (s.Throttled < c.least || s.Marks&history.Unread != c.marks) {
						t.Errorf("minute %d: throttled for %d %%, marks %b", s.Minute, s.Throttled, s.Marks)
					}
				}
				t.Logf("%d throttled calls in 10 minutes; of each minute %d %%", reads, parts)
				if len(parts) < 10 {
					t.Errorf("%d samples", len(parts))
				}
			})
		})
	}
}

// If Kinesis refuses a subscription because of its limits, the subscription is retried and reported
// as throttled.
func TestOwnersReportThatSubscribingWasThrottled(t *testing.T) {
	bubble(t, 1, func(t *testing.T, srv *kinesistest.Server) {
		srv.Control("SubscribeToShard", func(call *kinesistest.Call) kinesistest.Fault {
			if call.N == 2 {
				return kinesistest.Fault{Err: &kinesistest.Error{Code: "LimitExceededException"}}
			}
			return kinesistest.Fault{}
		})
		store := memstore.New()
		stop := start(t, srv.Client(), store, weir.Options{FanOut: weir.FanOut{Mode: weir.FanOutRegister}}, func(context.Context, *weir.Batch) error { return nil })
		time.Sleep(8 * time.Minute) // a subscription ends after five minutes
		if err := stop(); err != nil {
			t.Error(err)
		}
		samples, _ := reported(t, store)
		var some []int
		for _, s := range samples {
			if s.Throttled > 0 {
				some = append(some, s.Throttled)
			}
		}
		if len(some) != 1 || some[0] > 10 {
			t.Errorf("throttled for %d %% of a minute", some)
		}
	})
}

func TestHistoryIsOffWhereItIsNotWanted(t *testing.T) {
	bubble(t, 1, func(t *testing.T, srv *kinesistest.Server) {
		store := memstore.New()
		stop := start(t, srv.Client(), store, weir.Options{NoHistory: true}, func(context.Context, *weir.Batch) error { return nil })
		time.Sleep(3 * time.Minute)
		if err := stop(); err != nil {
			t.Error(err)
		}
		if samples, _ := reported(t, store); len(samples) > 0 {
			t.Errorf("with NoHistory there are %+v", samples)
		}
	})
}

func TestAStoreThatCannotKeepHistoryHoldsUpNothing(t *testing.T) {
	bubble(t, 1, func(t *testing.T, srv *kinesistest.Server) {
		puts := 0
		store := storetest.Faulty(memstore.New(), func(call string) storetest.Fault {
			if call != "PutHistory" {
				return storetest.Fault{}
			}
			if puts++; puts == 1 {
				panic("of the store")
			}
			return storetest.Fault{Delay: time.Hour}
		})
		s := newSink(t)
		stop := start(t, srv.Client(), store, weir.Options{}, s.handle)
		for range 10 {
			srv.Put("s", "key", s.next("key"))
			time.Sleep(30 * time.Second)
			if n := s.missing(); n > 0 {
				t.Errorf("%d records were not handled", n)
			}
		}
		began := time.Now()
		if err := stop(); err != nil {
			t.Error(err)
		}
		if took := time.Since(began); took > 5*time.Second || puts < 4 {
			t.Errorf("Run took %v to return, after %d reports", took, puts)
		}
		s.judge()
	})
}
