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

// Each case shows what the next orders do to a lease: its reader continues, must return, or starts
// again. It also shows the next heartbeat.
func TestWhatOrdersMakeOfALease(t *testing.T) {
	const same, another, none = "the same term", "another term", "no term"
	waits := func(t *Term) error { <-t.Reading().Done(); return nil }
	moves := func(term *Term) error { term.Advance(at(t, "9")); return waits(term) }
	fails := func(*Term) error { return errDown }
	finishes := func(t *Term) error {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.at, t.finished = shard.End, true
		return nil
	}
	stops := func(w *worker, _ *Term) { w.stop(nil) }
	validityEnds := func(w *worker, _ *Term) {
		w.validity.end(ErrLeaseLost)
		synctest.Wait()
		w.validity.extend(time.Now())
	}
	heir := func(l *lease.Lease) bool { l.Heir = "b"; return true }
	givesBack := lease.Progress{Release: true}
	for _, c := range []struct {
		name   string
		read   func(*Term) error       // run by the existing term; nil means that there is no term
		before func(*worker, *Term)    // before the orders come
		orders func(*lease.Lease) bool // changes the lease in the orders; false removes it
		is     string
		asked  bool // the reader must return
		lost   bool
		from   string // the position where the term began
		says   lease.Progress
	}{
		{"it is named again", waits, nil, nil, same, false, false, "5", lease.Progress{}},
		{"it is wanted back", waits, nil, heir, same, true, false, "5", givesBack},
		{"it was wanted back before", waits, func(_ *worker, t *Term) { t.drain() }, nil, same, true, false, "5", givesBack},
		{"it is not named", waits, nil, func(*lease.Lease) bool { return false }, same, true, true, "5", givesBack},
		{"it was taken away and given again", waits, nil, func(l *lease.Lease) bool { l.Epoch++; return true }, same, true, true, "5", givesBack},
		{"its reader has failed", fails, nil, nil, same, false, false, "5", givesBack},
		{"its shard has ended, and the store does not know", finishes, nil, nil, same, false, false, "5", lease.Progress{Position: shard.End}},
		{"the leases had expired", moves, validityEnds, nil, another, false, false, "9", lease.Progress{}},
		{"the leases had expired, and the worker stops", moves, func(w *worker, t *Term) { validityEnds(w, t); stops(w, t) }, nil, none, false, false, "", givesBack},
		{"it is new", nil, nil, nil, another, false, false, "5", lease.Progress{}},
		{"it is new, and wanted back", nil, nil, heir, another, true, false, "5", givesBack},
		{"it is new, and finished", nil, nil, func(l *lease.Lease) bool { l.Position = shard.End; return true }, none, false, false, "", lease.Progress{}},
		{"it is new, and the worker stops", nil, stops, nil, none, false, false, "", givesBack},
	} {
		synctest.Test(t, func(t *testing.T) {
			w := quietWorker()
			defer w.running.Wait()
			defer w.validity.end(ErrLeaseLost)
			w.validity.extend(time.Now())
			l := lease.Lease{Key: lease.Key{Stream: "s", Shard: "1"}, Epoch: 2, Owner: w.session, Position: at(t, "5")}
			if funcsOf(w.cfg).OnRead = c.read; c.read != nil {
				w.startTerm(l)
				synctest.Wait()
			}
			before := w.terms[l.Key]
			funcsOf(w.cfg).OnRead = waits
			if c.before != nil {
				c.before(w, before)
				synctest.Wait()
			}
			var orders lease.Orders
			if c.orders == nil || c.orders(&l) {
				orders.Held = []lease.Lease{l}
			}
			w.take(orders, nil, 0)
			synctest.Wait()
			now, is := w.terms[l.Key], another
			switch now {
			case nil:
				is = none
			case before:
				is = same
			}
			if is != c.is {
				t.Errorf("%s: there is %s, want %s", c.name, is, c.is)
			} else if now != nil {
				asked, cause := now.draining || now.lost, context.Cause(now.Context())
				if asked != c.asked || now.lost != c.lost || c.lost != errors.Is(cause, ErrLeaseLost) {
					t.Errorf("%s: asked to return %t, lost %t, Context ends with %v", c.name, asked, now.lost, cause)
				}
				if now.Lease.Position != at(t, c.from) {
					t.Errorf("%s: it began at %v, want after %s", c.name, now.Lease.Position, c.from)
				}
			}
			var want []lease.Progress
			if c.says.Release || !c.says.Position.IsZero() {
				c.says.Key, c.says.Epoch = l.Key, 2
				want = []lease.Progress{c.says}
			}
			if r, _ := w.report(); !reflect.DeepEqual(r.Progress, want) {
				t.Errorf("%s: the next heartbeat says %+v, want %+v", c.name, r.Progress, want)
			}
		})
	}
}

// answers is a store that answers heartbeats with a function.
type answers struct {
	lease.Store
	beat func(lease.Report) (lease.Orders, error)
}

func (a answers) Heartbeat(_ context.Context, _ string, r lease.Report) (lease.Orders, error) {
	return a.beat(r)
}

// If an answer arrives after the deadline, other workers may already have the leases. The worker
// ignores the answer.
func TestAnAnswerThatTookTooLongIsNotActedOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := quietWorker()
		defer w.running.Wait()
		defer w.validity.end(ErrLeaseLost)
		funcsOf(w.cfg).OnRead = func(t *Term) error { <-t.Reading().Done(); return nil }
		for _, c := range []struct {
			takes time.Duration
			terms int
		}{{4500 * time.Millisecond, 0}, {4499 * time.Millisecond, 1}} {
			w.cfg.Store = answers{w.cfg.Store, func(lease.Report) (lease.Orders, error) {
				time.Sleep(c.takes)
				return lease.Orders{Held: []lease.Lease{{Key: lease.Key{Stream: "s", Shard: "1"}, Epoch: 2, Owner: w.session}}}, nil
			}}
			heard := false
			funcsOf(w.cfg).OnBeat = func(time.Time) { heard = true }
			next := w.beat(t.Context())
			if len(w.terms) != c.terms || heard != (c.terms > 0) || (next == 0) != (c.terms == 0) {
				t.Errorf("after an answer that took %v there are %d terms, want %d; the next heartbeat is due in %v", c.takes, len(w.terms), c.terms, next)
			}
		}
	})
}

// When a session ends, the worker loses all leases at once. It does not wait for the next
// heartbeat.
func TestASessionThatIsOverHasNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := quietWorker()
		defer w.running.Wait()
		defer w.validity.end(ErrLeaseLost)
		funcsOf(w.cfg).OnRead = func(t *Term) error { <-t.Reading().Done(); return nil }
		w.validity.extend(time.Now())
		w.startTerm(lease.Lease{Key: lease.Key{Stream: "s", Shard: "1"}, Epoch: 2, Owner: w.session, Position: shard.Oldest})
		var term *Term
		for _, term = range w.terms {
		}
		saved := make(chan error, 1)
		go func() { saved <- term.Save(t.Context(), at(t, "7")) }()
		synctest.Wait()
		ended := make(chan struct{})
		w.lead = &leadership{cfg: w.cfg, cancel: func() { close(ended) }, done: ended}
		session := w.session
		w.cfg.Store = answers{w.cfg.Store, func(lease.Report) (lease.Orders, error) { return lease.Orders{}, lease.ErrSessionOver }}
		if next := w.beat(t.Context()); next != 0 {
			t.Errorf("the next heartbeat is due in %v", next)
		}
		if w.session == session || !w.first {
			t.Errorf("the session is still %s", w.session)
		}
		if w.validity.context(nil).Err() == nil {
			t.Error("the leases are still valid")
		}
		if !term.state().lost || !errors.Is(context.Cause(term.Context()), ErrLeaseLost) {
			t.Errorf("the term is %+v, its context ends with %v", term.state(), context.Cause(term.Context()))
		}
		if err := <-saved; !errors.Is(err, ErrLeaseLost) {
			t.Errorf("who saves hears %v", err)
		}
		if w.lead != nil {
			t.Error("it still leads")
		}
	})
}
