package behaviour

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/event"
	"github.com/weir-go/weir/kinesistest"
	"github.com/weir-go/weir/lease"
	"github.com/weir-go/weir/store/memstore"
)

// looping is a worker that ranges over its records.
type looping struct {
	stop context.CancelFunc
	err  error
	done chan struct{}
}

func startLoop(t *testing.T, srv *kinesistest.Server, store lease.Store, opts weir.Options, body func(weir.Record) bool) *looping {
	t.Helper()
	opts.App, opts.Streams, opts.Logger = "app", []string{"s"}, quiet
	c, err := weir.New(srv.Client(), store, opts)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	l := &looping{stop: cancel, done: make(chan struct{})}
	go func() {
		defer close(l.done)
		defer func() { _ = recover() }() // some bodies panic
		for r, err := range c.Records(ctx) {
			if err != nil {
				l.err = err
				return
			}
			if !body(r) {
				return
			}
		}
	}()
	return l
}

func (l *looping) end(t *testing.T) {
	t.Helper()
	l.stop()
	<-l.done
	if l.err != nil {
		t.Error(l.err)
	}
}

// taken counts how often the bodies received each record, and checks the order of each key.
type taken struct {
	mu    sync.Mutex
	times map[string]int
	last  map[string]string
	wrong []string
}

func newTaken() *taken { return &taken{times: map[string]int{}, last: map[string]string{}} }

func (k *taken) take(r weir.Record) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	data, key := string(r.Data), strings.Clone(r.PartitionKey) // cloned, because the memory may be used again
	if k.times[data]++; k.times[data] == 1 {
		if data < k.last[key] {
			k.wrong = append(k.wrong, fmt.Sprintf("%s after %s", data, k.last[key]))
		}
		k.last[key] = data
	}
	return true
}

func (k *taken) count() (records, again int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, n := range k.times {
		again += n - 1
	}
	return len(k.times), again
}

func putKeyed(srv *kinesistest.Server, from, to int) {
	for i := from; i < to; i++ {
		srv.Put("s", fmt.Sprint("key-", i%17), fmt.Appendf(nil, "%06d", i))
	}
}

// Two workers range over the records, through a split, a merge, a handoff and a stop. Each record
// is handled once, and the records of each key are handled in order.
func TestRecordsComeOneByOne(t *testing.T) {
	for _, reuse := range []bool{false, true} {
		bubble(t, 3, func(t *testing.T, srv *kinesistest.Server) {
			k, store := newTaken(), memstore.New()
			first := startLoop(t, srv, store, weir.Options{ReuseBuffers: reuse, Batching: weir.Batching{MaxRecords: 10}}, k.take)
			putKeyed(srv, 0, 300)
			time.Sleep(20 * time.Second)
			second := startLoop(t, srv, store, weir.Options{ReuseBuffers: reuse, Batching: weir.Batching{MaxRecords: 10}}, func(r weir.Record) bool {
				time.Sleep(50 * time.Millisecond)
				return k.take(r)
			})
			putKeyed(srv, 300, 600)
			open := srv.OpenShards("s")
			srv.Split("s", open[0])
			time.Sleep(20 * time.Second)
			putKeyed(srv, 600, 900)
			open = srv.OpenShards("s")
			srv.Merge("s", open[len(open)-2], open[len(open)-1])
			putKeyed(srv, 900, 1200)
			time.Sleep(30 * time.Second)
			first.end(t)
			putKeyed(srv, 1200, 1500)
			until(t, "all records", time.Minute, func() bool { n, _ := k.count(); return n == 1500 })
			second.end(t)
			if _, again := k.count(); again > 0 || len(k.wrong) > 0 {
				t.Errorf("%d came again, and not in order: %q", again, k.wrong)
			}
			third := startLoop(t, srv, store, weir.Options{}, k.take)
			time.Sleep(20 * time.Second)
			third.end(t)
			if _, again := k.count(); again > 0 {
				t.Errorf("%d were not saved as done", again)
			}
		})
	}
}

// If the body leaves the loop, the current record is not done. This holds even for the last record
// of a shard that has ended. Earlier records are done.
func TestTheRecordAtWhichTheLoopIsLeftComesAgain(t *testing.T) {
	for name, leave := range map[string]func() bool{"break": func() bool { return false }, "panic": func() bool { panic("on purpose") }} {
		t.Run(name, func(t *testing.T) {
			bubble(t, 1, func(t *testing.T, srv *kinesistest.Server) {
				k, store := newTaken(), memstore.New()
				putKeyed(srv, 0, 10)
				srv.Split("s", srv.OpenShards("s")[0])
				putKeyed(srv, 10, 12)
				failures := 0
				opts := weir.Options{OnEvent: event.On(func(context.Context, event.HandlerFailed) { failures++ })}
				first := startLoop(t, srv, store, opts, func(r weir.Record) (more bool) {
					if string(r.Data) == "000009" {
						return leave()
					}
					return k.take(r)
				})
				<-first.done
				if n, _ := k.count(); n != 9 || first.err != nil {
					t.Errorf("%d records, %v", n, first.err)
				}
				second := startLoop(t, srv, store, opts, k.take)
				until(t, "all records", time.Minute, func() bool { n, _ := k.count(); return n == 12 })
				second.end(t)
				if _, again := k.count(); again > 0 || len(k.wrong) > 0 {
					t.Errorf("%d came again, and not in order: %q", again, k.wrong)
				}
			})
		})
	}
}

// If ctx ends in the middle of a batch, the current record is done. The next worker handles the
// rest.
func TestTheLoopEndsWithItsContext(t *testing.T) {
	bubble(t, 1, func(t *testing.T, srv *kinesistest.Server) {
		k, store := newTaken(), memstore.New()
		putKeyed(srv, 0, 100)
		started := make(chan struct{})
		var stop func()
		first := startLoop(t, srv, store, weir.Options{}, func(r weir.Record) bool {
			if string(r.Data) == "000041" {
				<-started
				stop()
			}
			return k.take(r)
		})
		stop = first.stop
		close(started)
		<-first.done
		if n, _ := k.count(); n != 42 || first.err != nil {
			t.Errorf("%d records, %v", n, first.err)
		}
		second := startLoop(t, srv, store, weir.Options{}, k.take)
		until(t, "all records", time.Minute, func() bool { n, _ := k.count(); return n == 100 })
		second.end(t)
		if _, again := k.count(); again > 0 {
			t.Errorf("%d came again", again)
		}
	})
}

// A worker that cannot reach the store loses its shards. The loop yields no more of their records.
// It continues with them when the store is back.
func TestTheLoopStopsWhereTheLeaseIsLost(t *testing.T) {
	bubble(t, 2, func(t *testing.T, srv *kinesistest.Server) {
		k := newTaken()
		store := &faultyStore{Store: memstore.New()}
		putKeyed(srv, 0, 1000)
		lost := time.Now().Add(5 * time.Second)
		late := 0
		l := startLoop(t, srv, store, weir.Options{}, func(r weir.Record) bool {
			time.Sleep(20 * time.Millisecond)
			if time.Since(lost) > 6*time.Second && time.Since(lost) < 30*time.Second {
				late++
			}
			return k.take(r)
		})
		time.Sleep(5 * time.Second)
		store.set(true, 0)
		time.Sleep(30 * time.Second)
		store.set(false, 0)
		until(t, "all records", 5*time.Minute, func() bool { n, _ := k.count(); return n == 1000 })
		l.end(t)
		if _, again := k.count(); again > 200 || len(k.wrong) > 0 {
			t.Errorf("%d came again, and not in order: %q", again, k.wrong)
		}
		if late > 2 { // one record of each shard may be in the body
			t.Errorf("%d records were given out without a lease", late)
		}
	})
}

// The last pair of the loop contains the error of Run, even if Run refuses the options.
func TestTheLoopYieldsTheErrorOfTheRun(t *testing.T) {
	bubble(t, 0, func(t *testing.T, srv *kinesistest.Server) {
		l := startLoop(t, srv, memstore.New(), weir.Options{}, func(weir.Record) bool { return true })
		<-l.done
		if !errors.Is(l.err, weir.ErrStreamNotFound) {
			t.Errorf("without a stream: %v", l.err)
		}
		l = startLoop(t, srv, memstore.New(), weir.Options{Concurrency: weir.Concurrency{Keys: 2}}, func(weir.Record) bool { return true })
		<-l.done
		if l.err == nil {
			t.Error("with Parallel there is no error")
		}
	})
}

// With iter.Pull2, records come from calls of next.
func TestRecordsByNext(t *testing.T) {
	bubble(t, 2, func(t *testing.T, srv *kinesistest.Server) {
		putKeyed(srv, 0, 50)
		store := memstore.New()
		seen := map[string]bool{}
		for round := range 5 {
			c, err := weir.New(srv.Client(), store, weir.Options{App: "app", Streams: []string{"s"}, Logger: quiet})
			if err != nil {
				t.Fatal(err)
			}
			next, stop := iter.Pull2(c.Records(t.Context()))
			for range 11 { // the eleventh record is not done at the stop
				r, err, ok := next()
				if err != nil || !ok {
					t.Fatalf("round %d: %v, %v", round, err, ok)
				}
				seen[string(r.Data)] = true
				if len(seen) == 50 {
					break
				}
			}
			stop()
		}
		if len(seen) != 50 {
			t.Errorf("%d records", len(seen))
		}
	})
}
