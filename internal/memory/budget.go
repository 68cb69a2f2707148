// Package memory bounds how much of it records take that were read and not yet handled.
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

// Budget bounds the bytes of records that a process has read and not yet handled, whatever the
// number of shards.
//
// Half of it is common: whoever is fast takes from it, 2 MiB a shard at most. The other half is
// guaranteed in equal shares, one for each shard that is read, so that handlers that are slow or
// hang stop their own shards only, however many they are. A single record may be larger than a
// share and what is left in common: one shard at a time may take such a record all the same, so
// that the budget is exceeded by one page at most. Whoever keeps that for longer than OverKept,
// with a handler that hangs perhaps, does not hold the others up: another shard may take such a
// record then, and more as long as they are no more together than the common half. While shares are
// opened the guarantee of each becomes less; what a shard holds beyond it is not taken away, but
// waited for.
//
// It may be used concurrently.
type Budget struct {
	mu       lock.Mutex[lock.Budget]
	half     int
	shares   int
	reserved int       // in use, of the guaranteed half
	common   int       // in use, of the common half
	over     int       // in use beyond both
	overs    int       // shares that have some of that
	overAt   time.Time // when the last of them got it
	waiting  []*taker
	again    *time.Timer // wakes those who wait when OverKept has passed; nil until it is needed
}

// OverKept is how long a record that exceeds the budget keeps others like it waiting. It has to be
// less than what anybody waits for memory before trying something else.
const OverKept = 5 * time.Second

// commonMost is how much of the common half one shard may have: two windows and some room.
const commonMost = 2 << 20

// ErrNoMemory is wrapped when the budget does not allow to take more.
var ErrNoMemory = errors.New("no memory is free for more records")

var errShareClosed = errors.New("the share of the memory budget is closed")

// New makes a budget of so many bytes.
func New(bytes int) *Budget { return &Budget{half: bytes / 2} }

// InUse is how many bytes are taken.
func (b *Budget) InUse() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.reserved + b.common + b.over
}

// Share is what one shard takes from a budget. Several goroutines may use it.
type Share struct {
	b                 *Budget
	own, common, over int32 // in use
	closed            bool
}

// taker waits for n bytes.
type taker struct {
	s    *Share
	n    int
	done chan error
}

// Share opens a share, which costs nothing until something is taken. It has to be closed.
func (b *Budget) Share() *Share {
	s := new(Share)
	b.Open(s)
	return s
}

// Open makes s a share, which has to be closed.
func (b *Budget) Open(s *Share) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.shares++
	*s = Share{b: b}
}

// Close gives back all that the share still holds, and fails who waits for it.
func (s *Share) Close() {
	b := s.b
	b.mu.Lock()
	defer b.mu.Unlock()
	if s.closed {
		return
	}
	s.give(int(s.own) + int(s.common) + int(s.over))
	s.closed = true
	b.shares--
	b.wake()
}

// TryTake takes as much as there is without waiting, between least and most bytes, and returns how
// much; 0 if there is not as much as least, or if that needs what only [Share.Take] may do: exceed
// the budget.
func (s *Share) TryTake(least, most int) int {
	s.b.mu.Lock()
	defer s.b.mu.Unlock()
	return s.take(least, most)
}

// Take takes n bytes and waits for them as long as ctx lasts. Those who wait are served in order,
// as far as what they wait for allows. Its errors wrap [ErrNoMemory] and ctx's cause.
func (s *Share) Take(ctx context.Context, n int) error {
	if n <= 0 {
		return nil
	}
	b := s.b
	b.mu.Lock()
	t := &taker{s: s, n: n}
	if s.grant(n) || s.closed {
		defer b.mu.Unlock()
		if s.closed {
			return errShareClosed
		}
		return nil
	}
	t.done = make(chan error, 1)
	b.waiting = append(b.waiting, t)
	b.wakeLater()
	b.mu.Unlock()
	select {
	case err := <-t.done:
		return err
	case <-ctx.Done():
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	i := slices.Index(b.waiting, t)
	if i < 0 { // served in the same moment
		if err := <-t.done; err != nil {
			return err
		}
		s.give(n)
		b.wake()
	} else {
		b.waiting = slices.Delete(b.waiting, i, i+1)
	}
	return fmt.Errorf("%w: %d bytes: %w", ErrNoMemory, n, context.Cause(ctx))
}

// TakeExcess counts n bytes that are there already, in excess of the budget if it must be.
func (s *Share) TakeExcess(n int) {
	s.b.mu.Lock()
	defer s.b.mu.Unlock()
	if n <= 0 || s.closed {
		return
	}
	if s.take(n, n) == 0 {
		s.common += int32(n)
		s.b.common += n
	}
}

// Give gives n bytes back. More than was taken counts as all.
func (s *Share) Give(n int) {
	b := s.b
	b.mu.Lock()
	defer b.mu.Unlock()
	if n > 0 && !s.closed {
		s.give(n)
		b.wake()
	}
}

// What follows is called with the lock held.

// guarantee is what each share may have whatever the others do.
func (b *Budget) guarantee() int { return b.half / max(b.shares, 1) }

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

// grant takes n bytes, in excess of the budget if they are more than a share can have and nobody
// else is in the way.
func (s *Share) grant(n int) bool {
	if s.take(n, n) > 0 {
		return true
	}
	b := s.b
	if s.closed || s.over > 0 || n > math.MaxInt32 || !b.mayExceed(n, time.Now()) || (n <= b.guarantee() && s.own+s.common > 0) {
		return false
	}
	s.over = int32(n)
	b.over, b.overs, b.overAt = b.over+n, b.overs+1, time.Now()
	return true
}

// mayExceed reports whether n bytes may be taken beyond what there is.
func (b *Budget) mayExceed(n int, now time.Time) bool {
	switch {
	case b.overs == 0:
		return true
	case now.Sub(b.overAt) < OverKept:
		return false
	}
	return b.overs == 1 || b.over+n <= b.half
}

func (s *Share) give(n int) {
	b := s.b
	common := min(n, int(s.common))
	own := min(n-common, int(s.own))
	over := min(n-common-own, int(s.over))
	s.common, b.common = s.common-int32(common), b.common-common
	s.own, b.reserved = s.own-int32(own), b.reserved-own
	s.over, b.over = s.over-int32(over), b.over-over
	if over > 0 && s.over == 0 {
		b.overs--
	}
}

// wake serves those who wait and can be served now.
func (b *Budget) wake() {
	if len(b.waiting) == 0 {
		return
	}
	kept := b.waiting[:0]
	for _, t := range b.waiting {
		switch {
		case t.s.closed:
			t.done <- errShareClosed
		case t.s.grant(t.n):
			t.done <- nil
		default:
			kept = append(kept, t)
		}
	}
	clear(b.waiting[len(kept):])
	b.waiting = kept
	b.wakeLater()
}

// wakeLater has those who wait for somebody who exceeds the budget looked at when that has been so
// for long.
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
		defer b.mu.Unlock()
		b.wake()
	})
}
