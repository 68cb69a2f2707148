// Package memory limits the memory of records that were read and are not handled yet.
package memory

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/weir-go/weir/internal/lock"
)

// Budget limits the bytes of records that a process has read and not yet handled, for any number of
// shards.
//
// Half of the budget is common. Each shard can take up to 2 MiB of it. The other half is divided
// into equal guarantees, one for each shard that is read. A slow or hung handler therefore only
// stops its own shard. Each additional shard reduces the guarantee of all shards. If a shard then
// has more than its guarantee, it keeps these bytes until its handler returns them, and other
// shards wait.
//
// The reserve is additional room for one page of any size. A share without room for a page gets the
// reserve if the page is larger than the guarantee, or if the share has no bytes. One share at a
// time has the reserve, from before the read until the page is returned. Shares wait for the
// reserve in order, so every page is read in the end. The budget is exceeded by at most one page,
// unless a share keeps the reserve for longer than OverKept.
//
// If a share keeps the reserve for longer than OverKept, its handler is slow or hangs. Then the
// next share in line also gets the reserve. Further shares follow as long as all of them together
// use at most half of the budget.
//
// A Budget may be used concurrently.
type Budget struct {
	// mu guards the fields below and the fields of all Shares. It is not held while the ready
	// functions of waiting shares are called.
	mu       lock.Mutex[lock.Budget]
	half     int
	shares   int
	reserved int       // bytes in use in the guaranteed half
	common   int       // bytes in use in the common half
	over     int       // bytes in use beyond both
	overs    int       // number of shares that have the reserve or bytes of it
	overAt   time.Time // when a share last got the reserve
	served   time.Time // when a waiting share was last served
	waiting  []*waiter // in order of arrival
	again    *time.Timer
}

// OverKept is how long a share that keeps the reserve delays the next share. It must be shorter
// than all timeouts of waits for memory.
const OverKept = 5 * time.Second

const (
	// commonMost limits the bytes of one shard in the common half. It has room for two windows of
	// an answer (512 KiB each), and more.
	commonMost = 2 << 20
	// largestPage is the assumed size of a page of unknown size that is read with the reserve. It
	// is the size of the largest record in Kinesis.
	largestPage = 10 << 20
)

// ErrNoMemory is wrapped by errors if the budget has no room.
var ErrNoMemory = errors.New("no memory is free for more records")

var errShareClosed = errors.New("the share of the memory budget is closed")

// New returns a budget with the given number of bytes.
func New(bytes int) *Budget { return &Budget{half: bytes / 2} }

// InUse returns the number of bytes in use.
func (b *Budget) InUse() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.inUse()
}

func (b *Budget) inUse() int { return b.reserved + b.common + b.over }

// Lack returns an error that wraps [ErrNoMemory]. Its text contains how much of the budget is in
// use and how many reads wait. The text is made only when it is needed, because each look at a
// shard that waits for memory calls Lack.
func (b *Budget) Lack() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	return &lack{inUse: b.inUse(), size: 2 * b.half, waiting: len(b.waiting)}
}

// lack is the error of [Budget.Lack].
type lack struct{ inUse, size, waiting int }

func (l *lack) Error() string {
	return fmt.Sprintf("%v: %s of the %s of MaxMemory are in use, and %d shards wait in line",
		ErrNoMemory, inMiB(l.inUse), inMiB(l.size), l.waiting)
}

// inMiB formats a number of bytes in MiB, with a decimal unless it is whole.
func inMiB(bytes int) string {
	if bytes%(1<<20) == 0 {
		return fmt.Sprintf("%d MiB", bytes>>20)
	}
	return fmt.Sprintf("%.1f MiB", float64(bytes)/(1<<20))
}

func (l *lack) Unwrap() error { return ErrNoMemory }

// LastServed returns when a waiting share last got its memory. It returns zero if none has waited.
func (b *Budget) LastServed() time.Time {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.served
}

// Share is one shard's part of a budget. It may be used concurrently.
type Share struct {
	b                 *Budget
	own, common, over int32 // bytes in use
	reserve           bool  // the share may exceed the budget until Done
	closed            bool
}

// waiter is a share that waits for n bytes or for the reserve.
type waiter struct {
	s     *Share
	n     int
	open  bool // the reserve is requested for a page of unknown size
	ready func(Grant)
}

// Grant describes the memory that a share got.
type Grant struct {
	Bytes   int   // number of bytes that were taken
	Reserve bool  // the share has the reserve, and may exceed the budget until [Share.Done]
	Err     error // the share was closed
}

// Share opens a share. It takes no memory at first. It must be closed.
func (b *Budget) Share() *Share {
	s := new(Share)
	b.Open(s)
	return s
}

// Open initializes s as a share of the budget. The share must be closed.
func (b *Budget) Open(s *Share) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.shares++
	*s = Share{b: b}
}

// Budget returns the budget to which s belongs.
func (s *Share) Budget() *Budget { return s.b }

// Close returns all bytes of the share and ends its waits.
func (s *Share) Close() {
	b := s.b
	b.mu.Lock()
	if s.closed {
		b.mu.Unlock()
		return
	}
	s.done()
	s.give(int(s.own) + int(s.common) + int(s.over))
	s.closed = true
	b.shares--
	b.unlock()
}

// TryTake takes between least and most bytes, as many as are available, without waiting and without
// the reserve. It returns the number of bytes. It returns 0 if less than least bytes are available.
func (s *Share) TryTake(least, most int) int {
	s.b.mu.Lock()
	defer s.b.mu.Unlock()
	return s.take(least, most)
}

// Most returns the maximum number of bytes that the share can have without the reserve. This
// maximum is available if no other shard uses the common half.
func (s *Share) Most() int {
	s.b.mu.Lock()
	defer s.b.mu.Unlock()
	return s.most()
}

// Take takes n bytes, and waits for them until ctx ends. It may use the reserve, see [Budget]. Its
// errors wrap [ErrNoMemory] and the cause of ctx.
func (s *Share) Take(ctx context.Context, n int) error {
	_, err := s.wait(ctx, n, false)
	return err
}

// AwaitRead is like Await, but waits until ctx ends. It returns the same errors as Take.
func (s *Share) AwaitRead(ctx context.Context, n int) (Grant, error) { return s.wait(ctx, n, true) }

// Await takes n bytes, or the reserve, for a page whose exact size is unknown. It reports whether
// it succeeded. If not, the share waits in line, and ready is called once with the Grant. The
// caller of ready is a goroutine that returns memory, Close, or a timer. ready must not block. A
// share with the reserve must call Done after the read.
func (s *Share) Await(n int, ready func(Grant)) (Grant, bool) {
	b := s.b
	b.mu.Lock()
	defer b.mu.Unlock()
	if g := s.grant(n, true); g != (Grant{}) {
		return g, true
	}
	b.waiting = append(b.waiting, &waiter{s, n, true, ready})
	b.wakeLater()
	return Grant{}, false
}

func (s *Share) wait(ctx context.Context, n int, open bool) (Grant, error) {
	if n <= 0 {
		return Grant{}, nil
	}
	b := s.b
	b.mu.Lock()
	if g := s.grant(n, open); g != (Grant{}) || s.closed {
		b.mu.Unlock()
		if s.closed {
			return Grant{}, errShareClosed
		}
		return g, nil
	}
	done := make(chan Grant, 1)
	w := &waiter{s, n, open, func(g Grant) { done <- g }}
	b.waiting = append(b.waiting, w)
	b.wakeLater()
	b.mu.Unlock()
	select {
	case g := <-done:
		return g, g.Err
	case <-ctx.Done():
	}
	b.mu.Lock()
	i := slices.Index(b.waiting, w)
	if i >= 0 {
		b.waiting = slices.Delete(b.waiting, i, i+1)
	}
	b.mu.Unlock()
	if i < 0 { // it was served at the same moment
		g := <-done
		if g.Err != nil {
			return g, g.Err
		}
		s.Give(g.Bytes)
		s.Done()
	}
	return Grant{}, fmt.Errorf("%w: %d bytes: %w", ErrNoMemory, n, context.Cause(ctx))
}

// HasReserve reports whether the share may exceed the budget.
func (s *Share) HasReserve() bool {
	s.b.mu.Lock()
	defer s.b.mu.Unlock()
	return s.reserve
}

// Exceed takes n bytes beyond the budget if the share has the reserve. It reports whether it did.
func (s *Share) Exceed(n int) bool {
	s.b.mu.Lock()
	defer s.b.mu.Unlock()
	if !s.reserve || s.closed || n > math.MaxInt32-int(s.over) {
		return false
	}
	s.exceed(n)
	return true
}

// Done ends the permission to exceed the budget. The reserve is released when the last byte of it
// is returned. If no byte was taken, the reserve is released now.
func (s *Share) Done() {
	b := s.b
	b.mu.Lock()
	if !s.reserve {
		b.mu.Unlock()
		return
	}
	s.done()
	b.unlock()
}

// TakeExcess accounts for n bytes that are already in memory. Bytes beyond the share's room count
// as taken from the reserve.
func (s *Share) TakeExcess(n int) {
	s.b.mu.Lock()
	defer s.b.mu.Unlock()
	if n > 0 && !s.closed && s.take(n, n) == 0 {
		s.exceed(n)
	}
}

// Keep takes n bytes for records that are already in memory. Another share of the same shard still
// holds these bytes, and the caller returns them to that share after Keep. Keep waits like Take,
// with one exception: if n is more than this share can have, the other share has the reserve, and
// this share takes over the reserve at once.
func (s *Share) Keep(ctx context.Context, n int) error {
	if n > s.Most() {
		s.TakeExcess(n)
		return nil
	}
	return s.Take(ctx, n)
}

// Give returns n bytes. If n is more than the share has, it returns all bytes.
func (s *Share) Give(n int) {
	b := s.b
	b.mu.Lock()
	if n <= 0 || s.closed {
		b.mu.Unlock()
		return
	}
	s.give(n)
	b.unlock()
}

// The caller of the functions below holds the lock.

// guarantee returns the number of bytes that each share is guaranteed.
func (b *Budget) guarantee() int { return b.half / max(b.shares, 1) }

func (s *Share) most() int { return s.b.guarantee() + min(commonMost, s.b.half) }

func (s *Share) take(least, most int) int {
	b := s.b
	if s.closed || most <= 0 {
		return 0
	}
	own := max(0, min(b.guarantee()-int(s.own), b.half-b.reserved, math.MaxInt32-int(s.own)))
	common := max(0, min(commonMost-int(s.common), b.half-b.common))
	n := min(most, own+common)
	if n < max(least, 1) {
		return 0
	}
	own = min(own, n)
	s.own, b.reserved = s.own+int32(own), b.reserved+own
	s.common, b.common = s.common+int32(n-own), b.common+n-own
	return n
}

// grant serves a share that requests n bytes: from the share's own room, or else with the reserve.
// It returns the zero Grant if neither has room.
func (s *Share) grant(n int, open bool) Grant {
	if n > 0 && s.take(n, n) > 0 {
		return Grant{Bytes: n}
	}
	b := s.b
	large := n
	if open {
		large = max(n, largestPage)
	}
	switch {
	case s.closed, s.reserve, s.over > 0, n > math.MaxInt32:
		return Grant{}
	case n <= b.guarantee() && s.own+s.common > 0: // wait until the shard's handler returns bytes
		return Grant{}
	case !mayExceed(b.overs, b.over+large, b.half, time.Since(b.overAt)):
		return Grant{}
	}
	if open {
		s.reserve = true
		b.overs, b.overAt = b.overs+1, time.Now()
		return Grant{Reserve: true}
	}
	s.exceed(n)
	return Grant{Bytes: n}
}

// mayExceed decides whether another share may have the reserve. overs is the number of shares that
// have the reserve now. together is the number of bytes that all of them would then hold. ago is
// how long ago a share last got the reserve.
func mayExceed(overs, together, half int, ago time.Duration) bool {
	switch {
	case overs == 0:
		return true
	case ago < OverKept:
		return false
	}
	return overs == 1 || together <= half
}

// exceed takes n bytes from the reserve.
func (s *Share) exceed(n int) {
	if s.over == 0 && !s.reserve {
		s.b.overs++
		s.b.overAt = time.Now()
	}
	s.over, s.b.over = s.over+int32(n), s.b.over+n
}

// done ends the permission to exceed the budget.
func (s *Share) done() {
	if s.reserve && s.over == 0 {
		s.b.overs--
	}
	s.reserve = false
}

func (s *Share) give(n int) {
	b := s.b
	common := min(n, int(s.common))
	own := min(n-common, int(s.own))
	over := min(n-common-own, int(s.over))
	s.common, b.common = s.common-int32(common), b.common-common
	s.own, b.reserved = s.own-int32(own), b.reserved-own
	s.over, b.over = s.over-int32(over), b.over-over
	if over > 0 && s.over == 0 && !s.reserve {
		b.overs--
	}
}

// unlock unlocks the budget and serves the waiting shares that can be served now.
func (b *Budget) unlock() {
	if len(b.waiting) == 0 {
		b.mu.Unlock()
		return
	}
	type served struct {
		*waiter
		Grant
	}
	var all []served
	kept := b.waiting[:0]
	for _, w := range b.waiting {
		switch g := w.s.grant(w.n, w.open); {
		case w.s.closed:
			all = append(all, served{w, Grant{Err: errShareClosed}})
		case g != (Grant{}):
			b.served = time.Now()
			all = append(all, served{w, g})
		default:
			kept = append(kept, w)
		}
	}
	clear(b.waiting[len(kept):])
	b.waiting = kept
	b.wakeLater()
	b.mu.Unlock()
	for _, w := range all {
		w.ready(w.Grant)
	}
}

// wakeLater sets a timer that serves waiting shares when the reserve has been kept for OverKept.
func (b *Budget) wakeLater() {
	left := time.Until(b.overAt.Add(OverKept))
	if len(b.waiting) == 0 || b.overs == 0 || left <= 0 {
		return
	}
	if b.again != nil {
		b.again.Reset(left)
		return
	}
	b.again = time.AfterFunc(left, func() {
		b.mu.Lock()
		b.unlock()
	})
}
