package run

import (
	"context"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weir-go/weir/event"
	"github.com/weir-go/weir/internal/delivery"
	"github.com/weir-go/weir/internal/group"
	"github.com/weir-go/weir/internal/pull"
	"github.com/weir-go/weir/internal/shardrun"
	"github.com/weir-go/weir/internal/source"
	"github.com/weir-go/weir/internal/supervise"
	"github.com/weir-go/weir/lease"
	"github.com/weir-go/weir/shard"
	"github.com/weir-go/weir/store/memstore"
)

// fakeUser is a user whose shards have one handler: handle. Methods that it lacks must not be
// called.
type fakeUser struct {
	User
	handle func() error
}

func (u *fakeUser) Shared() shardrun.Handler { return fakeHandler{u} }

type fakeHandler struct{ user *fakeUser }

func (h fakeHandler) Hand(*delivery.Delivery) *shardrun.Handover {
	return &shardrun.Handover{Delivery: new(delivery.Delivery), Code: fakeCode{user: h.user}}
}
func (h fakeHandler) Pulling() *pull.Progress                      { return nil }
func (h fakeHandler) Close(context.Context, event.EndReason) error { return nil }

type fakeCode struct {
	shardrun.Code
	user *fakeUser
}

func (c fakeCode) First([]source.Record)    {}
func (c fakeCode) Call(delivery.Part) error { return c.user.handle() }
func (c fakeCode) Forget()                  {}
func (c fakeCode) Release()                 {}

// onePage is a source with a single page.
type onePage struct {
	page source.Page
	read bool
}

func (p *onePage) Next(ctx context.Context) (source.Page, error) {
	switch {
	case ctx.Err() != nil:
		return source.Page{}, context.Cause(ctx)
	case p.read:
		return source.Page{}, source.ErrEmpty
	}
	p.read = true
	return p.page, nil
}

func (p *onePage) Last(context.Context) (source.Page, error) { return source.Page{}, source.ErrEmpty }
func (p *onePage) Status() source.Status                     { return source.Status{} }
func (p *onePage) Stop()                                     {}
func (p *onePage) Close()                                    {}

func newTestRun(t *testing.T, c Config, handle func() error) *Run {
	c.Log = slog.New(slog.DiscardHandler)
	return New(t.Context(), c, &fakeUser{handle: handle}, new(Registry), new(shardrun.Counters))
}

// Live, Ready, Shards and Health get their data while a heartbeat holds the mutex of a term, and
// while a handler blocks. The test runs in real time, because virtual time stands still while a
// goroutine waits for a mutex. It waits for long only if it fails.
func TestStatusWaitsForNoTermAndNoHandler(t *testing.T) {
	const patience = 30 * time.Second
	handling, finish := make(chan struct{}), make(chan struct{})
	r := newTestRun(t, Config{Config: shardrun.Config{Batch: 10}}, func() error {
		close(handling)
		<-finish
		return nil
	})
	r.registry.register(r)
	terms := make(chan *group.Term, 1)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		ended <- group.Run(ctx, group.Config{
			Store: memstore.New(), App: "app", Worker: "w", Log: slog.New(slog.DiscardHandler),
			Times: lease.Times{Heartbeat: time.Second, Failover: 5 * time.Second, Handoff: 30 * time.Second},
			Stop:  10 * time.Second, Streams: []string{"s"}, Start: shard.Oldest, ListInterval: time.Minute, Host: &group.HostFuncs{
				OnRead: func(term *group.Term) error {
					page := source.Page{Records: []source.Record{{SequenceNumber: "1", Done: shard.Whole}}}
					l := shardrun.NewTestLoop(&r.shared, term, &onePage{page: page})
					r.standing.begin(l)
					terms <- term
					return l.Read()
				},
				OnList: func(context.Context, string, shard.Position) (group.Listing, error) {
					return group.Listing{Shards: []shard.Shard{{ID: "1"}}}, nil
				},
			},
		})
	}()
	select {
	case <-handling:
		release := group.HoldTestTerm(<-terms)
		answered := make(chan int, 1)
		go func() {
			_, _ = r.registry.Workers()
			loops := r.registry.Loops()
			for _, l := range loops {
				_ = l.Status()
				_, _ = l.Snapshot()
			}
			answered <- len(loops)
		}()
		select {
		case n := <-answered:
			if n != 1 {
				t.Errorf("%d shards", n)
			}
			release()
		case <-time.After(patience):
			t.Error("one of them waits for the term or the handler")
			release()
			<-answered
		}
	case <-time.After(patience):
		t.Error("the handler is not called")
	}
	close(finish)
	stop()
	if err := <-ended; err != nil {
		t.Errorf("Run returned %v", err)
	}
}

// A look at sound shards allocates nothing, so a look at ten thousand shards is cheap.
func TestALookAtSoundShardsAllocatesNothing(t *testing.T) {
	r := newTestRun(t, Config{StallAfter: time.Minute, Config: shardrun.Config{Times: lease.Times{Handoff: time.Minute}}}, nil)
	for range 100 {
		term := group.NewTestTerm(lease.Lease{Key: lease.Key{Stream: "s", Shard: "1"}, Epoch: 2})
		r.standing.begin(shardrun.NewTestLoop(&r.shared, term, &onePage{}))
	}
	if n := testing.AllocsPerRun(10, func() { r.Troubles() }); n > 0 {
		t.Errorf("%v allocations", n)
	}
}

// When the stalls of a shard no longer count, a run forgets them, even if another worker has the
// shard now.
func TestStallsOfShardsThatWentElsewhereAreForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const after = 2 * time.Minute
		recent := lease.Key{Stream: "s", Shard: "2"}
		c := Config{StallAfter: after}
		c.Times.Heartbeat = time.Second
		r := newTestRun(t, c, nil)
		r.standing.stalls = map[lease.Key]supervise.Stalls{{Stream: "s", Shard: "1"}: {Count: 1, Last: time.Now()}}
		if r.Troubles(); len(r.standing.stalls) != 1 {
			t.Error("a stall is forgotten at once")
		}
		time.Sleep(time.Hour)
		r.standing.stalls[recent] = supervise.Stalls{Count: 1, Last: time.Now()}
		if r.Troubles(); len(r.standing.stalls) != 1 || r.standing.stalls[recent].Count != 1 {
			t.Errorf("after an hour the run remembers %v", r.standing.stalls)
		}
	})
}
