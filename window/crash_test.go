package window_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/aggregate"
	"github.com/weir-go/weir/kinesistest"
	"github.com/weir-go/weir/lease"
	"github.com/weir-go/weir/store/memstore"
	"github.com/weir-go/weir/window"
)

// mortal is a store that simulates the death of a worker. After the death, heartbeats stop and
// progress is not saved.
type mortal struct {
	lease.Store
	dead atomic.Bool
}

func (s *mortal) Heartbeat(ctx context.Context, app string, r lease.Report) (lease.Orders, error) {
	if s.dead.Load() {
		return lease.Orders{}, errors.New("the network is gone")
	}
	return s.Store.Heartbeat(ctx, app, r)
}

// notDropped is a filter that drops the records with the key "dropped".
type notDropped struct{}

func (notDropped) Match(_ []byte, key string, _ time.Time) (matches, isJSON bool) {
	return key != "dropped", true
}

// amid returns an aggregate: one record with n dropped records before and after it.
func amid(t *testing.T, n int, key, name string) []byte {
	var b aggregate.Builder
	for i := range 2*n + 1 {
		k := "dropped"
		if i == n {
			k = key
		}
		if err := b.Add(k, "", []byte(name)); err != nil {
			t.Error(err)
		}
	}
	return b.AppendContainer(nil)
}

// Workers start, die and stop, shards are split and merged, and calls fail. Each record must be in
// exactly one result, and a repeated result must be the same.
func TestWindowsSurviveWhatHappensToWorkers(t *testing.T) {
	for seed := range uint64(24) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			bubble(t, func(t *testing.T, srv *kinesistest.Server) {
				var mu sync.Mutex
				source := rand.New(rand.NewPCG(seed, 18))
				roll := func(n int) int {
					mu.Lock()
					defer mu.Unlock()
					return source.IntN(n)
				}
				got, store := &results{t: t, of: map[string]window.Result[[]string]{}}, memstore.New()
				times, arrived := map[string]time.Time{}, map[string]time.Time{}
				config := window.Config[[]string]{
					Size: time.Duration(1+roll(20)) * time.Second, ByKey: roll(2) == 0, MaxRecords: 5 + roll(100), Add: add,
					Emit: func(ctx context.Context, r window.Results[[]string]) error {
						time.Sleep(time.Duration(roll(300)) * time.Millisecond)
						if err := got.emit(ctx, r); err != nil || roll(10) > 0 {
							return err
						}
						return errors.New("oh")
					},
				}
				if seed%2 == 1 { // windows by a time in the payload
					config.Lateness = time.Duration(roll(5)) * time.Second
					config.MaxAge = time.Duration(10+roll(120)) * time.Second
					config.Time = func(r weir.Record) (time.Time, error) {
						mu.Lock()
						defer mu.Unlock()
						return times[string(r.Data)], nil
					}
				}
				options := func(o *weir.Options) {
					o.ReuseBuffers = seed%4 > 1
					if seed%3 > 0 {
						o.Filter.By = notDropped{}
					}
				}
				type process struct {
					store *mortal
					stop  func()
				}
				var live, dead []process
				begin := func() {
					own := &mortal{Store: store}
					live = append(live, process{own, worker(t, srv, own, config, options)})
				}
				begin()
				reshards, deaths := 0, 0
				for i := range 400 {
					name := fmt.Sprint("record-", i)
					at := time.Now()
					if seed%2 == 1 {
						at = at.Add(-time.Duration(roll(6000)) * time.Millisecond)
						mu.Lock()
						times[name] = at
						mu.Unlock()
					}
					arrived[name] = at
					key := fmt.Sprint("key-", roll(9))
					if seed%3 > 0 {
						srv.Put("s", key, amid(t, roll(3), key, name))
					} else {
						srv.Put("s", key, []byte(name))
					}
					time.Sleep(time.Duration(roll(600)) * time.Millisecond)
					switch roll(60) {
					case 0:
						if len(live) < 4 {
							begin()
						}
					case 1:
						live[0].stop()
						live = live[1:]
					case 2:
						live[0].store.dead.Store(true)
						dead, live = append(dead, live[0]), live[1:]
						deaths++
					case 3:
						if open := srv.OpenShards("s"); len(open) < 4 {
							srv.Split("s", open[roll(len(open))])
							reshards++
						} else {
							srv.Merge("s", open[0], open[1])
							reshards++
						}
					}
					if len(live) == 0 {
						begin()
					}
				}
				time.Sleep(3 * time.Minute)
				for _, p := range append(live, dead...) {
					p.store.dead.Store(false) // the worker can now stop
					p.stop()
				}
				early := got.judge(arrived)
				t.Logf("%d results, handed over %d times, %d early; %d deaths, %d splits and merges", len(got.of), got.n, early, deaths, reshards)
			})
		})
	}
}
