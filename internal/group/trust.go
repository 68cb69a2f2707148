package group

import (
	"context"
	"maps"
	"slices"
	"sync/atomic"
	"time"

	"github.com/weir-go/weir/internal/lock"
)

// trust limits how long this worker may act on the store's last answer. Each successful heartbeat
// extends it, counted from the moment before that heartbeat was sent. When it runs out, every
// context made from it ends with [ErrLeaseLost], even if the beat loop is blocked. The next
// successful heartbeat begins a new period.
type trust struct {
	limit time.Duration
	// before the last successful heartbeat was sent; nil before the first. Written with the lock
	// held, and read without it right before records are handled.
	sent atomic.Pointer[time.Time]

	mu     lock.Mutex[lock.Trust]
	timer  *time.Timer
	ctx    context.Context
	cancel context.CancelCauseFunc
	terms  map[*Term]struct{} // their readers must be notified of the end
}

func newTrust(failover time.Duration) *trust {
	// The margin covers clocks whose rates differ by up to a tenth, and a late scheduler.
	t := &trust{limit: failover - failover/10, terms: map[*Term]struct{}{}}
	t.ctx, t.cancel = context.WithCancelCause(context.Background())
	t.cancel(ErrLeaseLost)
	return t
}

// context returns the present period of trust. The context has already ended if there is no trust.
// If of is set, that term is woken when the period ends.
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

// extend evaluates a heartbeat that was sent at sent and succeeded. It reports whether there is
// trust now: an answer that took too long proves nothing.
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
		t.timer.Reset(left) // a concurrent check sees that there is trust again
	}
	return true
}

// check ends trust that has run out by now. It takes a lock, which all shards share, only when
// trust has run out.
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

// end ends trust now, with its cause.
func (t *trust) end(cause error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.timer != nil {
		t.timer.Stop()
	}
	t.over(cause)
}

// over ends the period. The caller holds the lock.
func (t *trust) over(cause error) {
	t.cancel(cause)
	all := slices.Collect(maps.Keys(t.terms))
	sortTerms(all)
	for _, term := range all {
		term.Wake()
	}
}

// within reports whether less than limit has passed from sent to now, on both the monotonic clock
// and the wall clock. The monotonic clock stands still while a machine is suspended or migrated, so
// a wall clock that is ahead of it ends trust. A wall clock that was set back cannot prolong it.
func within(sent, now time.Time, limit time.Duration) bool {
	return now.Sub(sent) < limit && time.Duration(now.UnixNano()-sent.UnixNano()) < limit
}
