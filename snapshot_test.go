package weir

import (
	"context"
	"log/slog"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/kinesis"

	"github.com/weir-go/weir/internal/group"
	"github.com/weir-go/weir/internal/source"
	"github.com/weir-go/weir/internal/supervise"
	"github.com/weir-go/weir/lease"
	"github.com/weir-go/weir/shard"
	"github.com/weir-go/weir/store/memstore"
)

// Live, Ready, Shards and Health answer while the term's mutex is held, as by a beat, and while a
// handler blocks. The test runs in real time, because virtual time stands still while a goroutine
// waits for a mutex. It waits for long only if it fails.
func TestStatusWaitsForNoTermAndNoHandler(t *testing.T) {
	const patience = 30 * time.Second
	handling, finish := make(chan struct{}), make(chan struct{})
	c, err := New(new(kinesis.Client), memstore.New(), Options{
		Stream: "s", App: "app", Start: Oldest, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	r := c.newRun(t.Context(), HandlerFunc(func(context.Context, *Batch) error {
		close(handling)
		<-finish
		return nil
	}), nil)
	r.register()
	terms := make(chan *group.Term, 1)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		ended <- group.Run(ctx, group.Config{
			Store: memstore.New(), App: "app", Worker: "w", Log: slog.New(slog.DiscardHandler),
			Times: lease.Times{Beat: time.Second, Failover: 5 * time.Second, Handoff: 30 * time.Second},
			Stop:  10 * time.Second, Streams: []string{"s"}, Start: shard.Oldest, ListInterval: time.Minute, Host: &group.HostFuncs{
				OnRead: func(term *group.Term) error {
					page := source.Page{Records: []source.Record{{SequenceNumber: "1", Done: shard.Whole}}}
					l := &shardLoop{in: r, term: term, source: &onePage{wait: func(context.Context) {}, page: page}, notes: notes{begun: true}}
					r.begin(l)
					defer r.end(l)
					terms <- term
					_ = l.read()
					<-term.Reading().Done()
					return nil
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
			_, _ = c.Live(), c.Ready()
			c.Health().ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", "http://localhost/readyz", nil))
			answered <- len(c.Shards())
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

// A look at sound shards allocates nothing, so that one at ten thousand is cheap.
func TestALookAtSoundShardsAllocatesNothing(t *testing.T) {
	r := (&Consumer{}).newRun(t.Context(), nil, nil)
	r.opts.StallAfter, r.opts.HandoffTimeout = time.Minute, time.Minute
	for range 100 {
		term := group.NewTestTerm(lease.Lease{Key: lease.Key{Stream: "s", Shard: "1"}, Epoch: 2})
		r.begin(&shardLoop{in: r, term: term, source: &onePage{}})
	}
	if n := testing.AllocsPerRun(10, func() { r.Troubles() }); n > 0 {
		t.Errorf("%v allocations", n)
	}
}

// A run forgets the stalls of a shard that went to another worker once they no longer count,
// although the shard has no term here.
func TestStallsOfShardsThatWentElsewhereAreForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const after = 2 * time.Minute
		recent := lease.Key{Stream: "s", Shard: "2"}
		r := (&Consumer{}).newRun(t.Context(), nil, nil)
		r.opts.StallAfter, r.opts.BeatInterval = after, time.Second
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

// A hold belongs to the call of Pull that got the shard. Set later, it holds nothing.
func TestAHoldEndsWithItsTerm(t *testing.T) {
	r := &run{shards: &ShardHandlers{}}
	term := group.NewTestTerm(lease.Lease{Key: lease.Key{Stream: "s", Shard: "1"}, Epoch: 2})
	before, now := &Shard{pull: new(puller)}, &Shard{pull: new(puller)}
	l := &shardLoop{in: r, term: term, handles: &handling{pull: before.pull}}
	if before.Hold("by an open window"); l.held().why == "" {
		t.Error("a hold is not seen")
	}
	l.handledBy(nil)
	if l.held().why != "" {
		t.Error("a hold outlasts its term")
	}
	l.handledBy(&handling{pull: now.pull})
	if before.Hold("late"); l.held().why != "" {
		t.Error("a late call holds the next term's checkpoint")
	}
	now.Hold("by an open window")
	if now.Hold(""); l.held().why != "" {
		t.Error("a hold that was lifted is seen")
	}
}
