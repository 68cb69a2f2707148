package group

import (
	"context"
	"errors"
	"time"

	"github.com/weir-go/weir/event"
	"github.com/weir-go/weir/lease"
)

// stop begins an orderly end of Run.
func (w *worker) stop(err error) {
	w.fatal = err
	w.stopSession(false)
	w.cfg.Host.Stopping()
}

// stopSession begins an orderly end of the session. Unless again is set, Run ends with it.
func (w *worker) stopSession(again bool) {
	w.stopping, w.again = time.Now(), again
	w.hurryUntil = w.stopping.Add(3 * w.cfg.Times.Heartbeat)
}

// stopped continues an orderly stop and reports whether every reader has returned.
func (w *worker) stopped() bool {
	since := time.Since(w.stopping)
	alone := w.lead != nil && w.lead.aloneIn()
	// Reading continues while the leader can name heirs, because a handoff to an heir has a shorter
	// gap. The last worker has no heirs. If the leader does not answer, the worker does not wait
	// for it.
	if w.fatal != nil || alone || w.first || since >= 2*w.cfg.Times.Heartbeat || !w.outage.IsZero() {
		for _, t := range w.sorted() {
			t.drain()
		}
	}
	if since >= w.cfg.Stop && !w.cancelled {
		w.cancelled = true
		w.validity.end(ErrStopping)
	}
	for _, t := range w.terms {
		if !t.state().returned {
			return false
		}
	}
	return true // Leave reports progress that the store does not have yet
}

// leave ends the session at the store and reports the remaining progress. It retries until the
// failover time has passed, because other workers then count the session as dead. One call may take
// half of that time, like a heartbeat, which leaves time for a second call. leave returns a
// [*StopError] if the store may lack progress, or if this worker may still hold leases according to
// the store.
func (w *worker) leave(ctx context.Context) error {
	within := w.cfg.Times.Failover
	// If the store never answered this session, a short try is enough. If the store has no such
	// session, there is nothing to end. If it has, other workers take over the session's leases
	// when the session counts as dead.
	if w.first {
		within = w.cfg.Times.Heartbeat
	}
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	for {
		report, _ := w.report()
		err := w.farewell(ctx, report)
		switch {
		case w.first:
			return w.neverHeard(err)
		case errors.Is(err, lease.ErrSessionOver):
			unsaved := append(w.unsaved, w.notSaved()...)
			w.dropAll()
			return w.stopError(StopError{Unsaved: unsaved, Err: errSessionEnded})
		case errors.Is(err, lease.ErrFormat): // a retry would fail the same way
			unsaved, held := append(w.unsaved, w.notSaved()...), w.held()
			w.dropAll()
			return w.stopError(StopError{Unsaved: unsaved, Held: held, Unheard: true, Err: err})
		case err == nil:
			w.dropAll()
			return w.stopError(StopError{Unsaved: w.unsaved, Err: errSessionEnded})
		}
		w.cfg.Host.CallFailed(event.OpLeave, err, time.Now())
		select {
		case <-ctx.Done():
			w.cfg.Log.Warn("could not end this worker's session in the store; other workers take over its leases after the failover time",
				"err", err)
			unsaved, held := append(w.unsaved, w.notSaved()...), w.held()
			w.dropAll()
			// Since the last answer, the leader may have assigned leases to this session.
			return w.stopError(StopError{Unsaved: unsaved, Held: held, Unheard: true, Err: err})
		case <-time.After(early(w.cfg.Times.Heartbeat / 4)):
		}
	}
}

var errSessionEnded = errors.New("the session ended before the worker stopped, and other workers have its leases")

// farewell ends the session. In an outage, or when the leases are no longer valid, it first sends a
// heartbeat. Without that heartbeat, Leave could succeed for a session that was ended during the
// outage, although the store rejects its progress.
func (w *worker) farewell(ctx context.Context, report lease.Report) error {
	if !w.first && (!w.outage.IsZero() || w.validity.context(nil).Err() != nil) {
		call, cancel := w.within(ctx)
		orders, err := w.cfg.Store.Heartbeat(call, w.cfg.App, report)
		cancel()
		if err != nil {
			return err
		}
		w.outage = time.Time{}
		w.given(orders.Held)
	}
	call, cancel := w.within(ctx)
	defer cancel()
	return w.cfg.Store.Leave(call, w.cfg.App, report)
}

// given stores the assigned leases that have no term. These include leases that other workers have
// just handed over.
func (w *worker) given(held []lease.Lease) {
	w.unread = nil
	for _, l := range held {
		if w.terms[l.Key] == nil {
			w.unread = append(w.unread, lease.Progress{Key: l.Key, Epoch: l.Epoch, Release: true})
		}
	}
}

// within returns a context for one call. Its timeout is half of the failover time.
func (w *worker) within(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, w.cfg.Times.Failover/2)
}

// notSaved returns the shards whose handled records may be ahead of the stored progress.
func (w *worker) notSaved() (keys []lease.Key) {
	for key, t := range w.terms {
		if t.unsaved() {
			keys = append(keys, key)
		}
	}
	return keys
}

// held returns the leases that this worker may still hold according to the store.
func (w *worker) held() (keys []lease.Key) {
	for key, t := range w.terms {
		if !t.state().lost {
			keys = append(keys, key)
		}
	}
	for _, p := range w.unread {
		keys = append(keys, p.Key)
	}
	return keys
}

// dropAll ends every term.
func (w *worker) dropAll() {
	for _, t := range w.sorted() {
		w.drop(t)
	}
}

// startAgain begins a new session after an orderly end of the previous one. Run continues.
func (w *worker) startAgain() {
	w.stopping, w.cancelled, w.again, w.unsaved = time.Time{}, false, false, nil
	w.endSession()
	w.notLeading = time.Now().Add(2 * w.cfg.Times.Failover)
}
