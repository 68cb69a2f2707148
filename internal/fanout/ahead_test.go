package fanout

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weir-go/weir/health"
	"github.com/weir-go/weir/internal/memory"
	"github.com/weir-go/weir/internal/polling"
	"github.com/weir-go/weir/internal/source"
	"github.com/weir-go/weir/internal/streams"
	"github.com/weir-go/weir/internal/wire"
	"github.com/weir-go/weir/kinesistest"
	"github.com/weir-go/weir/shard"
)

func TestRoomFor(t *testing.T) {
	for _, test := range []struct {
		n, events, bytes int
		want             bool
	}{
		{0, 0, 0, true}, {30 << 20, 0, 0, true}, {0, 1, 100, true}, {1 << 20, 1, 1 << 20, true}, {1<<20 + 1, 1, 1 << 20, false},
		{0, 1, 30 << 20, false}, {0, 2, 0, false}, {1, 2, 100, false},
	} {
		if got := roomFor(test.n, test.events, test.bytes); got != test.want {
			t.Errorf("%d bytes beside %d events of %d: %v", test.n, test.events, test.bytes, got)
		}
	}
}

func TestSpread(t *testing.T) {
	for _, test := range []struct {
		before spread
		err    error
		lasted time.Duration
		want   spread
	}{
		{false, errRenewed, 90 * time.Second, true},
		{true, wire.ErrEnded, subscriptionLife, true},
		{true, wire.ErrEnded, subscriptionLife - time.Second, true},
		{true, wire.ErrEnded, time.Minute, false}, // cut, perhaps together with many others
		{true, wire.ErrSilent, subscriptionLife, false},
		{true, errStalled, subscriptionLife, false},
		{false, wire.ErrEnded, subscriptionLife, false},
	} {
		if got := test.before.after(test.err, test.lasted); got != test.want {
			t.Errorf("%v after %v: %v", test.err, test.lasted, got)
		}
	}
	lives := map[time.Duration]bool{}
	for range 1000 {
		d := spread(false).life()
		if d < leastLife || d >= subscriptionLife {
			t.Errorf("a first life of %v", d)
		}
		lives[d/(10*time.Second)] = true
	}
	if len(lives) < 20 {
		t.Errorf("the first lives are %v", lives)
	}
	if d := spread(true).life(); d <= subscriptionLife {
		t.Errorf("a later life of %v", d)
	}
}

func TestTurnsOfCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var tn turns
		var running, most atomic.Int32
		began := time.Now()
		var calls sync.WaitGroup
		for i := range 320 {
			calls.Go(func() {
				over, err := tn.take(t.Context())
				if err != nil {
					t.Error(err)
					return
				}
				if n := running.Add(1); n > most.Load() {
					most.Store(n)
				}
				time.Sleep(100 * time.Millisecond)
				running.Add(-1)
				if i%2 == 0 {
					over()
				}
				over()
				over()
			})
		}
		calls.Wait()
		if most.Load() != callsAtOnce || time.Since(began) != time.Second {
			t.Errorf("%d at once, %v in all", most.Load(), time.Since(began))
		}
		for range callsAtOnce { // calls that are never answered
			if _, err := tn.take(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		ctx, cancel := context.WithTimeout(t.Context(), callTurn/2)
		defer cancel()
		if _, err := tn.take(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a call without a turn: %v", err)
		}
		if over, err := tn.take(t.Context()); err != nil || time.Since(began) > time.Second+callTurn {
			t.Errorf("%v, after %v", err, time.Since(began))
		} else {
			over()
		}
	})
}

// many reads all shards of a stream, each with its own Reader and goroutine. fanOutMany passes each
// page to its function parameter handle.
type many struct {
	srv    *kinesistest.Server
	budget *memory.Budget
	fans   []*Reader
	free   chan struct{} // closed when hanging handlers continue
	told   atomic.Int32  // number of reported failures and of changes between fan-out and polling
}

func fanOutMany(t *testing.T, shards, budget int, handle func(m *many, i int, p source.Page), f func(t *testing.T, m *many)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		srv, err := kinesistest.Start(kinesistest.Config{InMemory: true, NoLimits: true})
		if err != nil {
			t.Fatal(err)
		}
		defer srv.Close()
		srv.CreateStream("s", shards)
		m := &many{srv: srv, budget: memory.New(budget), free: make(chan struct{})}
		client := srv.Client()
		made, err := wire.NewCaller(client, wire.Options{Reuse: true, Poison: true})
		if err != nil {
			t.Fatal(err)
		}
		defer made.Close()
		consumers := &Consumers{Client: client, Name: "c"}
		ctx, cancel := context.WithCancel(t.Context())
		var readers sync.WaitGroup
		for i, id := range srv.OpenShards("s") {
			fan := &Reader{
				Poll: polling.Poll{
					Setup: &source.Setup{Client: client, Caller: made, Stream: streams.Stream{Name: "s"}, Idle: time.Second}, Shard: id, From: shard.Oldest, Limit: 10000,
					Listener: &source.ListenerFuncs{OnFailed: func(error, bool, time.Duration) { m.told.Add(1) }},
				},
				Share: m.budget.Share(), Consumers: consumers,
				Changed: func(error) { m.told.Add(1) },
			}
			m.fans = append(m.fans, fan)
			readers.Go(func() {
				defer fan.Close()
				for {
					page, err := fan.Next(ctx)
					if err != nil {
						return
					}
					handle(m, i, page)
					page.Release()
				}
			})
		}
		f(t, m)
		cancel()
		readers.Wait()
		synctest.Wait()
		if n := m.budget.InUse(); n != 0 {
			t.Errorf("%d bytes of memory were not given back", n)
		}
		if n := len(srv.Subscriptions("s")); n != 0 {
			t.Errorf("%d subscriptions are left", n)
		}
	})
}

// Shards whose leases were taken together do not renew their subscriptions together.
func TestFanOutRenewsAtTimesOfItsOwn(t *testing.T) {
	const shards = 100
	fanOutMany(t, shards, 128<<20, func(*many, int, source.Page) {}, func(t *testing.T, m *many) {
		var calls []int // number of calls in each second
		before := 0
		for range 20 * 60 {
			time.Sleep(time.Second)
			n := m.srv.Requests("SubscribeToShard")
			calls = append(calls, n-before)
			before = n
		}
		if calls[0] != shards {
			t.Errorf("%d calls in the first second", calls[0])
		}
		later := calls[1:]
		if most := slices.Max(later); most > shards/10 {
			t.Errorf("%d calls in one second, at %d s", most, 1+slices.Index(later, most))
		}
		if total := before; total < 4*shards || total > 6*shards {
			t.Errorf("%d calls in 20 minutes for %d shards", total, shards)
		}
		if n := m.told.Load(); n > 0 {
			t.Errorf("%d failures and changes", n)
		}
		t.Logf("%d calls in all, at most %d in one second after the first", before, slices.Max(later))
	})
}

// If a handler hangs, its shard keeps its pages and the events that were read ahead. It delays no
// other shard, and memory stays close to the budget.
func TestFanOutHandlersThatHangStopTheirOwnShardsOnly(t *testing.T) {
	const shards, budget, size = 12, 8 << 20, 200_000
	var mu sync.Mutex
	got := make([]int, shards)
	handle := func(m *many, i int, p source.Page) {
		if len(p.Records) > 0 && i < shards/2 {
			<-m.free
		}
		mu.Lock()
		defer mu.Unlock()
		got[i] += len(p.Records)
	}
	fanOutMany(t, shards, budget, handle, func(t *testing.T, m *many) {
		put := map[string]int{}
		index := map[string]int{}
		for i, id := range m.srv.OpenShards("s") {
			index[id] = i
		}
		peak := 0
		for i := range 400 { // 80 MB
			id, _ := m.srv.Put("s", fmt.Sprint("key", i), make([]byte, size))
			put[id]++
			if i%10 == 0 {
				time.Sleep(time.Second)
			}
			peak = max(peak, m.budget.InUse())
		}
		// Where the memory is too small for events, the reader must catch up by polling small
		// pages.
		time.Sleep(2 * time.Minute)
		mu.Lock()
		for id, i := range index {
			if hangs := i < shards/2; !hangs && got[i] != put[id] || hangs && got[i] != 0 {
				t.Errorf("shard %d: %d of %d records, hangs %v", i, got[i], put[id], hangs)
			}
		}
		mu.Unlock()
		if peak > budget+3<<20 || peak < 1<<20 {
			t.Errorf("up to %d bytes were in use, the budget is %d", peak, budget)
		}
		for i := range shards / 2 {
			if s := m.fans[i].Status(); s.Doing == health.Subscribed && s.Buffered == 0 {
				t.Errorf("shard %d: %+v", i, s)
			}
		}
		close(m.free)
		time.Sleep(2 * time.Minute)
		mu.Lock()
		defer mu.Unlock()
		for id, i := range index {
			if got[i] != put[id] {
				t.Errorf("shard %d: %d of %d records in the end", i, got[i], put[id])
			}
		}
	})
}

// While an event is handled, the next events are read as long as there is room. If there is no
// room, Kinesis has to wait. If the handler is too slow, the subscription is ended, and no record
// is lost.
func TestFanOutReadsAhead(t *testing.T) {
	fanOut(t, kinesistest.Config{NoLimits: true}, func(t *testing.T, p *fanned) {
		p.send()
		p.all(time.Second)
		for range 5 {
			p.send()
			synctest.Wait()
		}
		if s := p.fan.Status(); s.Doing != health.AwaitingHandler || s.Buffered != aheadEvents || s.Behind < 0 {
			t.Errorf("with five events behind it is at %+v", s)
		}
		time.Sleep(stallTimeout - time.Second)
		if n := len(p.srv.Subscriptions("s")); n != 1 {
			t.Errorf("%d subscriptions while the handler works", n)
		}
		time.Sleep(2 * time.Second)
		if n := len(p.srv.Subscriptions("s")); n != 0 {
			t.Errorf("%d subscriptions after %v", n, stallTimeout)
		}
		if took := p.all(5 * time.Second); took > 2*time.Second {
			t.Errorf("the rest came after %v", took)
		}
		if len(p.fails) > 0 || len(p.modes) > 0 || p.subscriptions() != 2 {
			t.Errorf("%d subscriptions, failures %v, changes %v", p.subscriptions(), p.fails, p.modes)
		}
		if s := p.fan.Status(); s.Doing != health.Subscribed || s.Err != nil || s.Buffered != 0 {
			t.Errorf("in the end it is at %+v", s)
		}
	})
}

// If a page has a Tip, every record that was put before that time has arrived. This is also true if
// the handler was slow and events were waiting in the reader or on the network.
func TestFanOutSaysWhenThereWasNoMore(t *testing.T) {
	fanOut(t, kinesistest.Config{NoLimits: true}, func(t *testing.T, p *fanned) {
		var put []time.Time
		tips := 0
		look := func(length time.Duration) {
			for began := time.Now(); time.Since(began) < length; {
				page, err := p.read(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				if page.Tip.IsZero() {
					continue
				}
				if tips++; p.got < len(put) && put[p.got].Before(page.Tip) {
					t.Errorf("there was no more at %v, and record %d was put at %v", page.Tip, p.got+1, put[p.got])
				}
			}
		}
		for range 5 {
			for range 6 {
				put = append(put, time.Now())
				p.send()
				time.Sleep(1500 * time.Millisecond)
			}
			look(12 * time.Second)
		}
		if p.got < p.put || tips < 5 {
			t.Errorf("%d of %d records came, and %d pages said when there was no more", p.got, p.put, tips)
		}
	})
}

// A slow handler does not lose its subscription while no records are put.
func TestFanOutKeepsOneEmptyEvent(t *testing.T) {
	fanOut(t, kinesistest.Config{}, func(t *testing.T, p *fanned) {
		p.send()
		p.all(time.Second)
		p.follow(10 * time.Second)
		life := time.Until(p.fan.sub.until)
		time.Sleep(min(life, 4*time.Minute))
		if n := len(p.srv.Subscriptions("s")); n != 1 {
			t.Errorf("%d subscriptions", n)
		}
		ev, err := p.fan.sub.waiting()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := p.fan.sub.waiting(); !errors.Is(err, errNothing) {
			t.Errorf("more than one empty event was kept: %v", err)
		}
		ev.wire.Release()
		p.send()
		p.all(2 * time.Second)
	})
}

// Closing a subscription ends each of its waits.
func TestFanOutClosesInEveryWait(t *testing.T) {
	for want, wait := range map[health.Reason]func(p *fanned){
		health.Subscribed: func(*fanned) {},
		health.AwaitingHandler: func(p *fanned) {
			for range 4 {
				p.send()
				synctest.Wait()
			}
		},
		health.AwaitingMemory: func(p *fanned) {
			p.fan.Share.TryTake(1, 1<<30)
			over := p.budget.Share() // a share that may exceed the budget
			defer time.AfterFunc(30*time.Second, over.Close)
			if err := over.Take(p.t.Context(), 256<<20); err != nil {
				p.t.Fatal(err)
			}
			p.srv.Put("s", "k", make([]byte, 100_000))
			synctest.Wait()
		},
	} {
		t.Run(want.String(), func(t *testing.T) {
			fanOut(t, kinesistest.Config{NoLimits: true}, func(t *testing.T, p *fanned) {
				p.send()
				p.all(time.Second)
				wait(p)
				if got := p.fan.Status().Doing; got != want {
					t.Errorf("it is %s, want %s", got, want)
				}
				began := time.Now()
				p.fan.Close()
				if took := time.Since(began); took > 0 {
					t.Errorf("closing took %v", took)
				}
				synctest.Wait()
				if n := len(p.srv.Subscriptions("s")); n != 0 {
					t.Errorf("%d subscriptions are left", n)
				}
				time.Sleep(time.Minute)
			})
		})
	}
}
