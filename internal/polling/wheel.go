package polling

import "math/bits"

// wheel has the feeds that are due in the ticks to come. Most ticks have none: which have some
// stands in a bit each, so that looking for the next costs a few words and not a slot for each
// tick. The zero wheel is ready. It is guarded by the scheduler's lock.
type wheel struct {
	// by tick, the last one of each; its after is the first one. nil until a feed is placed
	slots  []*Feed
	due    [wheelTicks / 64]uint64
	placed int // feeds
}

// wheelTicks is more than twice as many as the longest interval has: the pacer sleeps for half of
// it at most.
const wheelTicks = 8192

// place has a feed be due at a tick, which is less than wheelTicks away from every other.
func (w *wheel) place(f *Feed, tick int) {
	if w.slots == nil {
		w.slots = make([]*Feed, wheelTicks)
	}
	i := tick % wheelTicks
	if last := w.slots[i]; last == nil {
		f.after = f
	} else {
		f.after, last.after = last.after, f
	}
	w.slots[i] = f
	w.due[i/64] |= 1 << (i % 64)
	w.placed++
}

// next is the first tick from one on in which a feed is due, before to; to if there is none.
func (w *wheel) next(from, to int) int {
	if w.placed == 0 {
		return to
	}
	for t := from; t < to; {
		i := t % wheelTicks
		if word := w.due[i/64] >> (i % 64); word != 0 {
			return min(t+bits.TrailingZeros64(word), to)
		}
		t += 64 - i%64
	}
	return to
}

// take calls each with the feeds of a tick in the order in which they were placed, and forgets
// them. each may use their after.
func (w *wheel) take(tick int, each func(*Feed)) {
	if w.placed == 0 {
		return
	}
	i := tick % wheelTicks
	last := w.slots[i]
	if last == nil {
		return
	}
	w.slots[i] = nil
	w.due[i/64] &^= 1 << (i % 64)
	for f, more := last.after, true; more; {
		after := f.after
		more = f != last
		w.placed--
		each(f)
		f = after
	}
}
