package source

import (
	"fmt"
	"testing"
)

// How many read at once follows from what is needed, not from how much there is to do.
func TestCrew(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		from crew
		look look
		want crew
	}{
		{"the least", crew{width: 4}, look{false, 0, 0}, crew{width: 4}},
		{"half are at work: no more than needed", crew{width: 16}, look{false, 4, 100}, crew{width: 12}},
		{"… step by step", crew{width: 12}, look{false, 4, 100}, crew{width: 9}},
		{"… with some to spare", crew{width: 9}, look{false, 4, 100}, crew{width: 8}},
		{"enough is not made more", crew{width: 8}, look{false, 7.9, 100}, crew{width: 8}},
		{"all hang, and nothing waits", crew{width: 100}, look{false, 100, 0}, crew{width: 100}},
		{"behind: twice as many, on trial", crew{width: 4}, look{true, 4, 50}, crew{width: 8, tried: 4, rate: 50}},
		{"… it paid", crew{width: 8, tried: 4, rate: 50}, look{true, 8, 70}, crew{width: 16, tried: 8, rate: 70}},
		{"… it did not: back, and left alone for a while", crew{width: 8, tried: 4, rate: 50}, look{true, 8, 60}, crew{width: 4, rate: 50, hold: 10, pause: 10}},
		{"… still left alone", crew{width: 4, hold: 10, pause: 10}, look{true, 4, 50}, crew{width: 4, hold: 9, pause: 10}},
		{"… tried again", crew{width: 4, pause: 10}, look{true, 4, 50}, crew{width: 8, tried: 4, rate: 50, pause: 10}},
		{"… left alone for longer", crew{width: 8, tried: 4, rate: 50, pause: 10}, look{true, 8, 50}, crew{width: 4, rate: 50, hold: 20, pause: 20}},
		{"… not for ever", crew{width: 8, tried: 4, rate: 50, pause: 80}, look{true, 8, 50}, crew{width: 4, rate: 50, hold: 80, pause: 80}},
		{"nothing waits any more: all is forgotten", crew{width: 8, tried: 4, rate: 50, hold: 3, pause: 80}, look{false, 8, 60}, crew{width: 8, rate: 50}},
		{"few are finished, because they take long", crew{width: 8}, look{true, 8, 15}, crew{width: 16}},
		{"… even if more did not pay before", crew{width: 8, hold: 5, pause: 10}, look{true, 8, 0}, crew{width: 16, hold: 5, pause: 10}},
		{"the most", crew{width: 200}, look{true, 200, 0}, crew{width: 256}},
		{"… is all there is", crew{width: 256}, look{true, 256, 5000}, crew{width: 256, rate: 5000}},
	} {
		got := c.from
		got.adjust(c.look)
		if got != c.want {
			t.Errorf("%s: %+v, want %+v", c.name, got, c.want)
		}
	}
}

// A service that takes its time gets as many as can be of use, within a second or two, and they are let go again.
func TestCrewFollowsTheNeed(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		seconds, due float64 // of a read; reads that become due in a second
		most         int     // that are finished in a second, however many are at it; 0 for no limit
		least, width int     // the width in the end
	}{
		{0.002, 10_000, 0, 20, 64},
		{0.02, 10_000, 0, 200, 256},
		{1, 10_000, 0, 256, 256},
		{30, 100, 0, 256, 256}, // they hang
		{0.002, 10_000, 5000, 4, 32},
		{0.001, 100, 0, 4, 4},
	} {
		t.Run(fmt.Sprint(c), func(t *testing.T) {
			t.Parallel()
			w, waiting, under := crew{width: leastWidth}, 0.0, 0.0
			const length = lookEvery * 0.025
			for range 40 {
				waiting += c.due * length
				finished := min(float64(w.width)*length/c.seconds, waiting)
				if c.most > 0 {
					finished = min(finished, float64(c.most)*length)
				}
				under = min(float64(w.width), finished*c.seconds/length)
				waiting -= finished
				if waiting > 0 {
					under = float64(w.width)
				}
				w.adjust(look{waiting > 0, under, int(finished)})
			}
			if w.width < c.least || w.width > c.width {
				t.Errorf("the width is %d in the end, want %d to %d", w.width, c.least, c.width)
			}
			for range 40 {
				w.adjust(look{})
			}
			if w.width != leastWidth {
				t.Errorf("the width is %d when there is nothing to do", w.width)
			}
		})
	}
}
