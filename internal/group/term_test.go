package group

import (
	"context"
	"errors"
	"reflect"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weir-go/weir/lease"
	"github.com/weir-go/weir/shard"
)

// at returns the position after a record.
func at(t *testing.T, n string) shard.Position {
	t.Helper()
	p, err := shard.After(n)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// validTerm returns a term whose lease is at record 5. It also returns a count of triggered
// heartbeats.
func validTerm(t *testing.T) (*Term, *int) {
	t.Helper()
	v, pokes := newValidity(time.Hour), new(int)
	v.extend(time.Now())
	t.Cleanup(func() { v.end(nil) })
	l := lease.Lease{Key: lease.Key{Stream: "s", Shard: "1"}, Epoch: 2, Position: at(t, "5")}
	return newTerm(l, v, func() { *pokes++ }), pokes
}

// A heartbeat releases a lease only if its reader has returned. It reports no position for a lost
// lease.
func TestWhatABeatSaysOfATerm(t *testing.T) {
	t.Parallel()
	moved, children := at(t, "7"), []shard.Shard{{ID: "2"}}
	type said = lease.Progress
	for _, c := range []struct {
		name string
		is   func(*Term)
		want said
		some bool
	}{
		{"nothing has happened", func(*Term) {}, said{}, false},
		{"it moved", func(t *Term) { t.at = moved }, said{Position: moved}, true},
		{"it moved, and that is saved", func(t *Term) { t.at, t.saved = moved, moved }, said{}, false},
		{"it is wanted back, and still read", func(t *Term) { t.draining = true }, said{}, false},
		{"it was released, and is still read", func(t *Term) { t.stalled = true }, said{}, false},
		{"the lease expired, and the reader has returned", func(t *Term) { t.returned = true }, said{}, false},
		{"the lease expired, the reader has returned, and it moved", func(t *Term) { t.returned, t.at = true, moved }, said{Position: moved}, true},
		{"the reader has returned because it was wanted back", func(t *Term) { t.returned, t.wanted = true, true }, said{Release: true}, true},
		{"the reader has returned because it was wanted back, and it moved", func(t *Term) { t.returned, t.wanted, t.at = true, true, moved }, said{Position: moved, Release: true}, true},
		{"the reader gave it up and has returned", func(t *Term) { t.returned, t.stalled = true, true }, said{Release: true, Stalled: true}, true},
		{"the reader has returned with an error", func(t *Term) { t.returned, t.rarely().err = true, errDown }, said{Release: true}, true},
		{"the shard has ended", func(t *Term) { t.finished, t.at, t.rarely().children = true, shard.End, children }, said{Position: shard.End, Children: children}, true},
		{"the shard has ended, and it was wanted back and released", func(t *Term) {
			t.finished, t.at, t.returned, t.wanted, t.stalled = true, shard.End, true, true, true
		}, said{Position: shard.End}, true},
		{"it is lost, moved, and still read", func(t *Term) { t.lost, t.at, t.stalled, t.wanted = true, moved, true, true }, said{}, false},
		{"it is lost, moved, and the reader has returned", func(t *Term) { t.lost, t.at, t.returned = true, moved, true }, said{Release: true}, true},
	} {
		term, _ := validTerm(t)
		c.is(term)
		c.want.Key, c.want.Epoch = term.Lease.Key, term.Lease.Epoch
		if got, some := term.progress(); some != c.some || !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: %+v, %t, want %+v, %t", c.name, got, some, c.want, c.some)
		}
	}
}

// These cases show how an answer affects a lease, and callers that wait until record 7 is saved. A
// position that was sent is durable only if the answer contains the lease, or if the same heartbeat
// released it.
func TestWhatAnAnswerSaysOfATerm(t *testing.T) {
	t.Parallel()
	moved := at(t, "7")
	waits := errors.New("still waits")
	type said = lease.Progress
	for _, c := range []struct {
		name  string
		is    func(*Term)
		said  said
		held  bool
		over  bool
		lost  bool
		saved shard.Position
		hears error
	}{
		{"it is held, nothing was said", nil, said{}, true, false, false, at(t, "5"), waits},
		{"it is held, some of it was said", nil, said{Position: at(t, "6")}, true, false, false, at(t, "6"), waits},
		{"it is held, all of it was said", nil, said{Position: moved}, true, false, false, moved, nil},
		{"it is held, more was said", nil, said{Position: at(t, "8")}, true, false, false, at(t, "8"), nil},
		{"it is held, less was said", nil, said{Position: at(t, "4")}, true, false, false, at(t, "5"), waits},
		{"it is held, though given back", func(t *Term) { t.returned, t.wanted = true, true }, said{Release: true}, true, false, false, at(t, "5"), waits},
		{"it is not held", nil, said{}, false, false, true, at(t, "5"), ErrLeaseLost},
		{"it is not held, and all was said", nil, said{Position: moved}, false, false, true, at(t, "5"), ErrLeaseLost},
		{"it is not held, and the reader has returned", func(t *Term) { t.returned = true }, said{Position: moved}, false, false, true, at(t, "5"), ErrLeaseLost},
		{"it was given back", func(t *Term) { t.returned = true }, said{Release: true}, false, true, false, at(t, "5"), ErrLeaseLost},
		{"it was given back with all", func(t *Term) { t.returned = true }, said{Position: moved, Release: true}, false, true, false, moved, nil},
		{"it was given back with less", func(t *Term) { t.returned = true }, said{Position: at(t, "4"), Release: true}, false, true, false, at(t, "5"), ErrLeaseLost},
		{"it was lost, and then given back", func(t *Term) { t.lost, t.returned = true, true }, said{Release: true}, false, true, true, at(t, "5"), ErrLeaseLost},
		{"it has ended, and is still read", func(t *Term) { t.finished = true }, said{Position: shard.End}, false, false, false, shard.End, nil},
		{"it has ended", func(t *Term) { t.finished, t.returned = true, true }, said{Position: shard.End}, false, true, false, shard.End, nil},
		{"it had ended before", func(t *Term) { t.finished, t.returned, t.saved = true, true, shard.End }, said{}, false, true, false, shard.End, nil},
		{"its end was not reported", func(t *Term) { t.finished = true }, said{}, false, false, true, at(t, "5"), ErrLeaseLost},
	} {
		term, _ := validTerm(t)
		if c.is != nil {
			c.is(term)
		}
		done := make(chan error, 1)
		term.rarely().waiters = []waiter{{moved, done}}
		over, _ := term.settle(c.said, c.held)
		if over != c.over || term.lost != c.lost || term.saved != c.saved {
			t.Errorf("%s: over %t, lost %t, saved %v", c.name, over, term.lost, term.saved)
		}
		hears := waits
		select {
		case hears = <-done:
		default:
		}
		if hears != c.hears || (hears == waits) != (len(term.rare.waiters) == 1) { //nolint:errorlint // the very one
			t.Errorf("%s: who waits hears %v, %d wait", c.name, hears, len(term.rare.waiters))
		}
		if want := context.Cause(term.Context()); (want == ErrLeaseLost) != c.lost { //nolint:errorlint // the very one
			t.Errorf("%s: Context ends with %v", c.name, want)
		}
	}
}

// If the store requests a lease back, the worker releases it once: when the reader returns, or at
// once if the reader has returned already. A reader that returns because the lease expired does not
// release it.
func TestALeaseIsGivenBackOnce(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		is     func(*Term)
		wanted bool
		poked  int
	}{
		{"it is read", func(*Term) {}, false, 0},
		{"the reader has returned", func(t *Term) { t.returned = true }, true, 1},
		{"the reader has returned and has finished the shard", func(t *Term) { t.returned, t.finished = true, true }, false, 0},
		{"the reader has returned and the lease is lost", func(t *Term) { t.returned, t.lost = true, true }, false, 0},
		{"the reader has returned and it is given back already", func(t *Term) { t.returned, t.wanted = true, true }, true, 0},
	} {
		term, pokes := validTerm(t)
		c.is(term)
		term.drain()
		if term.wanted != c.wanted || *pokes != c.poked || !term.draining {
			t.Errorf("%s: wanted %t, poked %d times", c.name, term.wanted, *pokes)
		}
	}
	for _, c := range []struct {
		name   string
		before func(*Term)
		wanted bool
	}{
		{"it returns by itself", func(*Term) {}, false},
		{"it was asked to", func(t *Term) { t.drain() }, true},
		{"it was asked to, and the lease expired first", func(t *Term) { t.drain(); t.validity.end(ErrLeaseLost) }, false},
		{"the lease expired", func(t *Term) { t.validity.end(ErrLeaseLost) }, false},
		{"it was asked to, and the lease is lost", func(t *Term) { t.drain(); t.lose() }, false},
	} {
		term, pokes := validTerm(t)
		c.before(term)
		*pokes = 0
		term.over(nil)
		if term.wanted != c.wanted || !term.returned || *pokes != 1 {
			t.Errorf("%s: wanted %t, returned %t, poked %d times", c.name, term.wanted, term.returned, *pokes)
		}
		if term.over(errDown); *pokes != 1 || term.state().err != nil {
			t.Errorf("%s: it returned twice", c.name)
		}
	}
}

// An abandoned reader has released its lease, and its later progress does not count.
func TestWhatALeftReaderDoes(t *testing.T) {
	t.Parallel()
	term, _ := validTerm(t)
	term.Advance(at(t, "6"))
	term.Abandon()
	term.Advance(at(t, "7"))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := term.Finish(ctx, nil); err == nil {
		t.Error("it finishes its shard")
	}
	p, _ := term.progress()
	if want := (lease.Progress{Key: term.Lease.Key, Epoch: 2, Position: at(t, "6"), Release: true, Stalled: true}); !reflect.DeepEqual(p, want) {
		t.Errorf("the next heartbeat says %+v, want %+v", p, want)
	}
}

func TestPositionsOfATermDoNotGoBack(t *testing.T) {
	t.Parallel()
	term, _ := validTerm(t)
	for _, c := range []struct{ to, want string }{{"4", "5"}, {"9", "9"}, {"8", "9"}, {"9", "9"}, {"10", "10"}} {
		if term.Advance(at(t, c.to)); term.At() != at(t, c.want) {
			t.Errorf("after %s it is at %v", c.to, term.At())
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_ = term.Finish(ctx, nil)
	if term.Advance(at(t, "11")); !term.At().IsEnd() {
		t.Errorf("after the end it is at %v", term.At())
	}
}

func TestWhoSavesHears(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		term, pokes := validTerm(t)
		if err := term.Save(t.Context(), at(t, "5")); err != nil || *pokes != 0 {
			t.Errorf("what is saved: %v, and the heartbeat loop was poked %d times", err, *pokes)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := term.Save(ctx, at(t, "6")); !errors.Is(err, context.DeadlineExceeded) || *pokes != 1 {
			t.Errorf("nobody answers: %v, and the heartbeat loop was poked %d times", err, *pokes)
		}
		term.lose()
		for _, n := range []string{"5", "6", "7"} {
			if err := term.Save(t.Context(), at(t, n)); !errors.Is(err, ErrLeaseLost) {
				t.Errorf("of a lost lease, record %s: %v", n, err)
			}
		}
	})
	// The answer and the end of the term arrive at the same moment. The position is durable.
	for range 50 {
		term, _ := validTerm(t)
		term.poke = func() { // both arrive before the call waits
			term.poke = func() {}
			term.settle(lease.Progress{Position: at(t, "6")}, true)
			term.lose()
		}
		if err := term.Save(t.Context(), at(t, "6")); err != nil {
			t.Fatalf("what is durable: %v", err)
		}
	}
}
