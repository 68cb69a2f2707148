package group

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weir-go/weir/lease"
	"github.com/weir-go/weir/shard"
)

// mark is the progress that a handler reports.
type mark struct{ shard.Position }

func (m *mark) Mark() shard.Position { return m.Position }

// The next heartbeat reports the progress of a running handler. This progress still counts after
// the handler returned.
func TestABeatAsksHowFarTheHandlerIs(t *testing.T) {
	type step struct {
		do   func(term *Term, m *mark)
		says string // the position in the next heartbeat, "" for none
	}
	set := func(term *Term, m *mark) { term.SetMark(m) }
	moves := func(to string) func(*Term, *mark) {
		return func(_ *Term, m *mark) { m.Position, _ = shard.After(to) }
	}
	for _, c := range []struct {
		name  string
		steps []step
	}{
		{"nothing is done", []step{{set, ""}, {moves("6"), "6"}, {func(*Term, *mark) {}, "6"}}},
		{"it makes progress", []step{{set, ""}, {moves("6"), "6"}, {moves("8"), "8"}}},
		{"its progress does not go back", []step{{set, ""}, {moves("8"), "8"}, {moves("6"), "8"}}},
		{"it returns between two heartbeats", []step{{set, ""}, {func(term *Term, m *mark) { moves("6")(term, m); term.SetMark(nil) }, "6"}, {moves("8"), "6"}}},
		{"another call begins", []step{{set, ""}, {func(term *Term, m *mark) {
			moves("6")(term, m)
			term.SetMark(new(mark))
		}, "6"}}},
		{"the progress at its return counts too", []step{{set, ""}, {moves("6"), "6"}, {func(term *Term, _ *mark) {
			term.SetMark(nil)
			p, _ := shard.After("9")
			term.Advance(p)
		}, "9"}}},
		{"it is abandoned", []step{{set, ""}, {func(term *Term, m *mark) { moves("6")(term, m); term.Abandon() }, "6"}, {moves("8"), "6"}}},
		{"At returns it too", []step{{set, ""}, {func(term *Term, m *mark) {
			moves("6")(term, m)
			if p, _ := shard.After("6"); term.At() != p {
				t.Errorf("At is %v", term.At())
			}
		}, "6"}}},
	} {
		term, _ := validTerm(t)
		m := new(mark)
		for i, s := range c.steps {
			s.do(term, m)
			p, _ := term.progress()
			want := shard.Position{}
			if s.says != "" {
				want, _ = shard.After(s.says)
			}
			if p.Position != want {
				t.Errorf("%s, step %d: the heartbeat says %v, want %v", c.name, i+1, p.Position, want)
			}
		}
	}
}

func TestWhenWhatIsNotedCountsNoMore(t *testing.T) {
	for _, c := range []struct {
		name string
		do   func(term *Term, v *validity)
		lost bool
	}{
		{"the lease is held", func(*Term, *validity) {}, false},
		{"it is wanted back", func(term *Term, _ *validity) { term.drain() }, false},
		{"it is released, and the handler is still at work", func(term *Term, _ *validity) { term.GiveUp(errors.New("stalled")) }, false},
		{"the worker stops", func(term *Term, _ *validity) { term.cancel(ErrStopping) }, false},
		{"the store says that it has another owner", func(term *Term, _ *validity) { term.settle(lease.Progress{}, false) }, true},
		{"it has another owner after the worker was told to stop", func(term *Term, _ *validity) { term.cancel(ErrStopping); term.lose() }, true},
		{"the lease is no longer valid", func(_ *Term, v *validity) { v.end(ErrLeaseLost) }, true},
		{"the reader was abandoned", func(term *Term, _ *validity) { term.GiveUp(errors.New("stalled")); term.Abandon() }, true},
		{"the reader has returned", func(term *Term, _ *validity) { term.over(nil) }, true},
		{"the shard is finished", func(term *Term, _ *validity) {
			term.mu.Lock()
			term.finished = true
			term.mu.Unlock()
			term.over(nil)
		}, false},
	} {
		synctest.Test(t, func(t *testing.T) {
			v := newValidity(time.Hour)
			v.extend(time.Now())
			defer v.end(ErrLeaseLost)
			term := newTerm(lease.Lease{Key: lease.Key{Stream: "s", Shard: "1"}, Epoch: 2}, v, func() {})
			c.do(term, v)
			if err := term.Lost(); errors.Is(err, ErrLeaseLost) != c.lost || (err != nil) != c.lost {
				t.Errorf("%s: %v", c.name, err)
			}
		})
	}
}
