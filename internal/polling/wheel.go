package polling

import "math/bits"

// wheel holds the feeds that are due in the coming ticks. Most ticks have none. A bitmap marks the
// ticks that have some, so that the search for the next one reads a few words instead of a slot for
// each tick. The zero wheel is ready to use. It is guarded by the scheduler's lock.
type wheel struct {
	// by tick, the last feed of a circular list; its after is the first. nil until a feed is placed
	slots  []*Feed
	due    [wheelTicks / 64]uint64
	placed int // feeds
}

// wheelTicks is more than twice the longest interval: the pacer sleeps for half of it at most.
const wheelTicks = 8192

// place makes a feed due at a tick, which must be less than wheelTicks away from every other.
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

// next returns the first tick in [from, to) in which a feed is due, or to if there is none.
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

// take removes the feeds of a tick and calls each for them in the order in which they were placed.
// each may use their after.
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
