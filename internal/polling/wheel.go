package polling

import "math/bits"

// wheel contains the feeds that are due in the coming ticks. Most ticks have no feed. A bitmap
// marks the ticks with feeds, so that the search for the next one only reads a few words. The zero
// wheel is ready to use. The scheduler's lock guards it.
type wheel struct {
	// slots contains, for each tick, the last feed of a circular list. Its after field is the first
	// feed. slots is nil until a feed is placed.
	slots  []*Feed
	due    [wheelTicks / 64]uint64
	placed int // number of feeds in the wheel
}

// wheelTicks is the number of slots. The pacer sleeps for at most half of them. That is longer than
// the longest usual interval between two reads, so a due read usually wakes the pacer first.
const wheelTicks = 8192

// place makes a feed due at a tick. The ticks of all feeds in the wheel must differ by less than
// wheelTicks.
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

// next returns the first tick in [from, to) with a due feed, or to if there is none.
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

// take removes the feeds of a tick and calls each for them, in the order of placement. each may use
// their after field.
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
