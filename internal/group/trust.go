package group

import (
	"context"
	"maps"
	"slices"
	"sync/atomic"
	"time"

	"github.com/weir-go/weir/internal/lock"
)

// trust limits the time for which this worker may rely on the store's last answer. Each successful
// heartbeat extends trust, counted from just before the heartbeat was sent. When trust runs out,
// all contexts of the period end with [ErrLeaseLost], even if the heartbeat loop is blocked. The
// next successful heartbeat begins a new period.
type trust struct {
	limit time.Duration
	// sent is the time just before the last successful heartbeat was sent, or nil before the first
	// one. Writers hold the lock. Readers need no lock, so that handlers can check it for each
	// record.
	sent atomic.Pointer[time.Time]

	mu     lock.Mutex[lock.Trust]
	timer  *time.Timer
	ctx    context.Context
	cancel context.CancelCauseFunc
	terms  map[*Term]struct{} // terms whose readers must be woken when trust ends
}

func newTrust(failover time.Duration) *trust {
	// The margin covers clocks whose rates differ by up to 10%, and late scheduling.
	t := &trust{limit: failover - failover/10, terms: map[*Term]struct{}{}}
	t.ctx, t.cancel = context.WithCancelCause(context.Background())
	t.cancel(ErrLeaseLost)
	return t
}

// context returns the context of the current period of trust. The context has already ended if
// there is no trust. The argument may be nil. Otherwise it is a term that the end of the period
// wakes.
func (t *trust) context(of *Term) context.Context {
	t.mu.Lock()
	defer t.mu.Unlock()
	if of != nil {
		t.terms[of] = struct{}{}
	}
	return t.ctx
}

// forget removes a term whose reader has returned.
func (t *trust) forget(of *Term) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.terms, of)
}

// extend evaluates a successful heartbeat that was sent at the given time. It reports whether there
// is trust now. An answer that took longer than the limit does not extend trust.
func (t *trust) extend(sent time.Time) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !within(sent, time.Now(), t.limit) {
		return t.ctx.Err() == nil
	}
	t.sent.Store(&sent)
	if t.ctx.Err() != nil {
		t.ctx, t.cancel = context.WithCancelCause(context.Background())
	}
	if left := time.Until(sent.Add(t.limit)); t.timer == nil {
		t.timer = time.AfterFunc(left, func() { t.check(time.Now()) })
	} else {
		t.timer.Reset(left) // if check runs now, it sees the new trust
	}
	return true
}

// check ends trust if it has run out at now. It takes the lock, which all shards share, only in
// that case.
func (t *trust) check(now time.Time) {
	if sent := t.sent.Load(); sent != nil && within(*sent, now, t.limit) {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.ctx.Err() == nil && !within(*t.sent.Load(), time.Now(), t.limit) {
		t.over(ErrLeaseLost)
	}
}

// end ends trust immediately with the given cause.
func (t *trust) end(cause error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.timer != nil {
		t.timer.Stop()
	}
	t.over(cause)
}

// over ends the period and wakes its terms. The caller holds the lock.
func (t *trust) over(cause error) {
	t.cancel(cause)
	all := slices.Collect(maps.Keys(t.terms))
	sortTerms(all)
	for _, term := range all {
		term.Wake()
	}
}

// within reports whether less than limit has passed from sent to now, on the monotonic clock and on
// the wall clock. The monotonic clock stops while a machine is suspended or migrated, but then the
// wall clock ends trust. A wall clock that is set back cannot prolong trust.
func within(sent, now time.Time, limit time.Duration) bool {
	return now.Sub(sent) < limit && time.Duration(now.UnixNano()-sent.UnixNano()) < limit
}
