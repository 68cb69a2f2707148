package behaviour

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/kinesistest"
	"github.com/weir-go/weir/store/memstore"
)

func TestARecordFuncIsRetriedAtTheRecordThatFailed(t *testing.T) {
	for how, fail := range map[string]func() error{
		"with an error": func() error { return errOnceMore },
		"in a panic":    func() error { panic("of one record") },
	} {
		t.Run(how, func(t *testing.T) {
			inEachReading(t, func(t *testing.T, srv *kinesistest.Server, opts weir.Options, want []string) {
				var got, tried []string
				failures := map[string]int{}
				f := weir.RecordFunc(func(_ context.Context, r weir.Record) error {
					name := string(r.Data)
					tried = append(tried, name)
					if i := slices.Index(want, name); i%4 == 1 && failures[name] < i%3 {
						failures[name]++
						return fail()
					}
					got = append(got, name)
					return nil
				})
				stop := start(t, srv.Client(), memstore.New(), opts, f.Handle)
				time.Sleep(time.Minute)
				if err := stop(); err != nil {
					t.Error(err)
				}
				if !slices.Equal(got, want) {
					t.Errorf("handled %q, want %q", got, want)
				}
				if len(failures) == 0 || !slices.Equal(slices.Compact(tried), want) {
					t.Errorf("tried %q, %d of them in vain", tried, len(failures))
				}
			})
		})
	}
}

// One answer of GetRecords has ten thousand records, and handling a record takes a second. A
// handoff waits only for the current record.
func TestARecordFuncHandsOffBetweenTwoRecords(t *testing.T) {
	bubble(t, 2, func(t *testing.T, srv *kinesistest.Server) {
		puts := map[string]int{}
		for i := 0; len(puts) < 2 || puts["shardId-000000000000"] < 10000 || puts["shardId-000000000001"] < 10000; i++ {
			key := fmt.Sprint("key ", i%2)
			if i%2 == 1 {
				key = "another"
			}
			shard, _ := srv.Put("s", key, nil)
			puts[shard]++
			if i > 30000 {
				t.Fatalf("two keys in one shard: %v", puts)
			}
		}
		store := memstore.New()
		var mu sync.Mutex
		last, count, by := map[string]weir.Position{}, map[string]int{}, map[string]string{}
		worker := func(name string) weir.HandlerFunc {
			return weir.RecordFunc(func(_ context.Context, r weir.Record) error {
				mu.Lock()
				if r.Position().Compare(last[r.Shard()]) <= 0 {
					t.Errorf("%s is handled after %v", r.ID(), last[r.Shard()])
				}
				last[r.Shard()], by[r.Shard()] = r.Position(), name
				count[r.Shard()]++
				mu.Unlock()
				time.Sleep(time.Second)
				return nil
			}).Handle
		}
		shared := func() bool {
			mu.Lock()
			defer mu.Unlock()
			return len(by) == 2 && by["shardId-000000000000"] != by["shardId-000000000001"]
		}
		opts := weir.Options{Timing: weir.Timing{HandoffTimeout: 10 * time.Minute, StopTimeout: time.Hour}}
		stopA := start(t, srv.Client(), store, opts, worker("a"))
		time.Sleep(100 * time.Second)
		stopB := start(t, srv.Client(), store, opts, worker("b"))
		if took := until(t, "one shard each", time.Minute, shared); took > 8*time.Second {
			t.Errorf("it took %v", took)
		}
		time.Sleep(20 * time.Second)
		for _, stop := range []func() error{stopA, stopB} {
			told := time.Now()
			if err := stop(); err != nil {
				t.Error(err)
			}
			if took := time.Since(told); took > 4*time.Second {
				t.Errorf("a stop took %v", took)
			}
		}
		for shard, n := range count {
			if n < 110 {
				t.Errorf("%s: only %d records in 120 s", shard, n)
			}
		}
	})
}

func TestARecordFuncEndsWithItsContext(t *testing.T) {
	bubble(t, 1, func(t *testing.T, srv *kinesistest.Server) {
		want := putSome(t, srv, false)
		store := memstore.New()
		var got []string
		f := weir.RecordFunc(func(ctx context.Context, r weir.Record) error {
			got = append(got, string(r.Data))
			if len(got) == 4 {
				time.Sleep(3 * time.Second)
				<-ctx.Done()
				return nil // counts while the worker owns the lease
			}
			return nil
		})
		stop := start(t, srv.Client(), store, weir.Options{Timing: weir.Timing{HandlerTimeout: 10 * time.Second}}, f.Handle)
		time.Sleep(20 * time.Second)
		if err := stop(); err != nil {
			t.Error(err)
		}
		got = append(got, handled(t, srv, store, weir.Options{})...)
		if !slices.Equal(got, want) {
			t.Errorf("handled %q, want %q", got, want)
		}
	})
}

func TestARecordFuncNeedsNoConsumer(t *testing.T) {
	var got []string
	f := weir.RecordFunc(func(_ context.Context, r weir.Record) error {
		if got = append(got, string(r.Data)); len(got) == 2 {
			return errOnceMore
		}
		return nil
	})
	b := &weir.Batch{Records: []weir.Record{{Data: []byte("a")}, {Data: []byte("b")}, {Data: []byte("c")}}}
	if err := f.Handle(t.Context(), b); !errors.Is(err, errOnceMore) || len(got) != 2 {
		t.Errorf("%q, %v", got, err)
	}
	ended, cancel := context.WithCancelCause(t.Context())
	cancel(weir.ErrLeaseLost)
	if err := f.Handle(ended, b); !errors.Is(err, weir.ErrLeaseLost) || len(got) != 2 {
		t.Errorf("with a context that has ended: %q, %v", got, err)
	}
	if err := f.Handle(t.Context(), &weir.Batch{End: true}); err != nil {
		t.Error(err)
	}
}
