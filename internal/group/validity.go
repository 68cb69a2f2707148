package group

import (
	"context"
	"maps"
	"slices"
	"sync/atomic"
	"time"

	"github.com/weir-go/weir/internal/lock"
)

// validity limits the time for which the leases of this worker are valid. Each successful heartbeat
// extends that time, counted from just before the heartbeat was sent. When the leases expire, all
// contexts of the period end with [ErrLeaseLost], even if the heartbeat loop is blocked. The
// next successful heartbeat begins a new period.
type validity struct {
	limit time.Duration
	// sent is the time just before the last successful heartbeat was sent, or nil before the first
	// one. Writers hold the lock. Readers need no lock, so that handlers can check it for each
	// record.
	sent atomic.Pointer[time.Time]

	mu     lock.Mutex[lock.Validity]
	timer  *time.Timer
	ctx    context.Context
	cancel context.CancelCauseFunc
	terms  map[*Term]struct{} // terms whose readers must be woken when leases expire
}

func newValidity(failover time.Duration) *validity {
	// The margin covers clocks whose rates differ by up to 10%, and late scheduling.
	v := &validity{limit: failover - failover/10, terms: map[*Term]struct{}{}}
	v.ctx, v.cancel = context.WithCancelCause(context.Background())
	v.cancel(ErrLeaseLost)
	return v
}

// context returns the context of the current period of validity. The context has already ended if
// the leases are not valid. The argument may be nil. Otherwise it is a term that the end of the
// period wakes.
func (v *validity) context(of *Term) context.Context {
	v.mu.Lock()
	defer v.mu.Unlock()
	if of != nil {
		v.terms[of] = struct{}{}
	}
	return v.ctx
}

// forget removes a term whose reader has returned.
func (v *validity) forget(of *Term) {
	v.mu.Lock()
	defer v.mu.Unlock()
	delete(v.terms, of)
}

// extend evaluates a successful heartbeat that was sent at the given time. It reports whether the
// leases are valid now. An answer that took longer than the limit does not extend the validity.
func (v *validity) extend(sent time.Time) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	if !within(sent, time.Now(), v.limit) {
		return v.ctx.Err() == nil
	}
	v.sent.Store(&sent)
	if v.ctx.Err() != nil {
		v.ctx, v.cancel = context.WithCancelCause(context.Background())
	}
	if left := time.Until(sent.Add(v.limit)); v.timer == nil {
		v.timer = time.AfterFunc(left, func() { v.check(time.Now()) })
	} else {
		v.timer.Reset(left) // if check runs now, it sees the new heartbeat
	}
	return true
}

// check ends the period if the limit has passed at now. It takes the lock, which all shards share,
// only in that case.
func (v *validity) check(now time.Time) {
	if sent := v.sent.Load(); sent != nil && within(*sent, now, v.limit) {
		return
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.ctx.Err() == nil && !within(*v.sent.Load(), time.Now(), v.limit) {
		v.over(ErrLeaseLost)
	}
}

// end ends the period immediately with the given cause.
func (v *validity) end(cause error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.timer != nil {
		v.timer.Stop()
	}
	v.over(cause)
}

// over ends the period and wakes its terms. The caller holds the lock.
func (v *validity) over(cause error) {
	v.cancel(cause)
	all := slices.Collect(maps.Keys(v.terms))
	sortTerms(all)
	for _, term := range all {
		term.Wake()
	}
}

// within reports whether less than limit has passed from sent to now, on the monotonic clock and on
// the wall clock. The monotonic clock stops while a machine is suspended or migrated, but then the
// wall clock ends the validity. A wall clock that is set back cannot prolong the validity.
func within(sent, now time.Time, limit time.Duration) bool {
	return now.Sub(sent) < limit && time.Duration(now.UnixNano()-sent.UnixNano()) < limit
}
