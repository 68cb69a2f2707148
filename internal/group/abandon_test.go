package group

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/weir-go/weir/lease"
	"github.com/weir-go/weir/shard"
)

func position(t *testing.T, s string) shard.Position {
	t.Helper()
	p, err := shard.After(s)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// An abandoned reader can no longer change the position of its term, and Run does not wait for it.
func TestAnAbandonedReaderCountsForNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := newValidity(time.Hour)
		v.extend(time.Now())
		defer v.end(ErrLeaseLost)
		held := lease.Lease{Key: lease.Key{Stream: "s", Shard: "1"}, Epoch: 2, Position: shard.Oldest}
		term := newTerm(held, v, func() {})
		gone, hang, returned := 0, make(chan struct{}), make(chan struct{})
		term.gone = func() { gone++ }
		go func() {
			defer close(returned)
			term.run(func() error {
				<-hang
				term.Advance(position(t, "20"))
				if err := term.Finish(t.Context(), nil); err == nil {
					t.Error("it finished a shard that was released")
				}
				return nil
			})
		}()
		term.Advance(position(t, "10"))
		synctest.Wait()
		term.GiveUp(ErrLeaseLost)
		if term.Context().Err() == nil || term.Reading().Err() == nil || term.state().returned {
			t.Error("giving up ends the contexts and no more")
		}
		term.Abandon()
		p, some := term.progress()
		if !some || !p.Release || !p.Stalled || p.Position != position(t, "10") || gone != 1 {
			t.Errorf("the heartbeat says %+v; gone %d times", p, gone)
		}
		close(hang)
		<-returned
		if q, _ := term.progress(); q.Position != p.Position || q.Position.IsEnd() || gone != 1 {
			t.Errorf("then the heartbeat says %+v; gone %d times", q, gone)
		}
		if over, _ := term.settle(p, false); !over {
			t.Error("the term is not over")
		}
	})
}

func TestStreamsAreNamedAnew(t *testing.T) {
	s := newListings([]string{"a", "b"})
	kept := s.streams["b"]
	s.name([]string{"b", "c"})
	if len(s.streams) != 2 || s.streams["b"] != kept || s.streams["c"] == nil {
		t.Errorf("%v", s.streams)
	}
	if err := s.take(result{stream: "a", err: ErrNoStream, fresh: true}, Config{Host: new(HostFuncs)}); err != nil {
		t.Errorf("what is not named any more ended the run: %v", err)
	}
}
