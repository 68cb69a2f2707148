package group

import (
	"context"
	"errors"
	"time"

	"github.com/weir-go/weir/lease"
)

// stop begins an orderly end of Run.
func (w *worker) stop(err error) {
	w.fatal = err
	w.stopSession(false)
	w.cfg.Host.Stopping()
}

// stopSession begins an orderly end of the session, and of Run unless another session is to begin.
func (w *worker) stopSession(again bool) {
	w.stopping, w.again = time.Now(), again
	w.hurryUntil = w.stopping.Add(3 * w.cfg.Times.Beat)
}

// stopped carries an orderly stop forward and reports whether every term is over.
func (w *worker) stopped() bool {
	since := time.Since(w.stopping)
	alone := w.lead != nil && w.lead.aloneIn()
	// While the leader can name heirs, reading goes on: a lease that has an heir is silent for less
	// time. The last worker has none, and a leader that does not answer is not waited for.
	if w.fatal != nil || alone || w.first || since >= 2*w.cfg.Times.Beat || !w.outage.IsZero() {
		for _, t := range sorted(w.terms) {
			t.drain()
		}
	}
	if since >= w.cfg.Stop && !w.cancelled {
		w.cancelled = true
		w.trust.end(ErrStopping)
	}
	for _, t := range w.terms {
		if !t.state().returned {
			return false
		}
	}
	return true // what the readers did and the store does not know yet goes into the farewell
}

// leave tells the store that the session is over. It tries for the failover time at most: after
// that the others see a dead session, and nothing is lost but a little time.
func (w *worker) leave(ctx context.Context) {
	within := w.cfg.Times.Failover
	// the store never answered: there is no session, or one that would be given leases until it is
	// seen to be dead
	if w.first {
		within = w.cfg.Times.Beat
	}
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	for {
		report, _ := w.report()
		err := w.cfg.Store.Leave(ctx, w.cfg.App, report)
		if w.first || errors.Is(err, lease.ErrFormat) {
			return
		}
		if err == nil {
			for _, t := range sorted(w.terms) {
				w.drop(t)
			}
			return
		}
		w.cfg.Host.CallFailed("leave", err, time.Now())
		select {
		case <-ctx.Done():
			w.cfg.Log.Warn("could not say goodbye to the store; the leases are taken over after the failover time",
				"err", err)
			for _, t := range sorted(w.terms) { // over all the same
				w.drop(t)
			}
			return
		case <-time.After(early(w.cfg.Times.Beat / 4)):
		}
	}
}

// startAgain begins a new session after one that ended in order while Run goes on.
func (w *worker) startAgain() {
	w.stopping, w.cancelled, w.again = time.Time{}, false, false
	w.endSession()
	w.notLeading = time.Now().Add(2 * w.cfg.Times.Failover)
}
