package weir

import (
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weir-go/weir/internal/group"
	"github.com/weir-go/weir/internal/supervise"
	"github.com/weir-go/weir/lease"
)

// Live, Ready, Shards and Health answer while the term's mutex is held, as by a beat, and while a
// handler blocks.
func TestStatusWaitsForNoTermAndNoHandler(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &Consumer{loops: map[*shardLoop]struct{}{}, runs: map[*run]struct{}{}}
		r := &run{Consumer: c, lineage: newLineage(), stalls: map[lease.Key]supervise.Stalls{}, abandoned: map[lease.Key]*shardLoop{}}
		term := group.NewTestTerm(lease.Lease{Key: lease.Key{Stream: "s", Shard: "1"}, Epoch: 2})
		l := &shardLoop{in: r, term: term}
		r.register()
		c.begin(l)
		l.enter(ShardHandling, 0, nil) // the handler does not return
		release := group.HoldTestTerm(term)
		defer release()
		answered := make(chan int)
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
		case <-time.After(time.Minute):
			t.Error("one of them waits")
		}
	})
}

// A hold belongs to the call of Pull that got the shard. Set later, it holds nothing.
func TestAHoldEndsWithItsTerm(t *testing.T) {
	r := &run{Consumer: &Consumer{}, shards: &ShardHandlers{}}
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
