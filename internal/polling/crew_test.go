package polling

import (
	"fmt"
	"testing"
)

// The width depends on the read rate and the latency, not on the number of shards.
func TestCrew(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		from crew
		look look
		want crew
	}{
		{"the first", firstWidth, look{false, 0}, 16},
		{"the least", 16, look{false, 0}, 16},
		{"a quarter is at work: no more than needed", 64, look{false, 16}, 48},
		{"a smaller step when closer", 48, look{false, 16}, 36},
		{"some are left to spare", 30, look{false, 16}, 26},
		{"enough is not made more", 26, look{false, 25.9}, 26},
		{"many hang, and nothing waits", 100, look{false, 90}, 100},
		{"behind", 4, look{true, 4}, 6},
		{"behind, though few are at work", 16, look{true, 1}, 24},
		{"the most", 200, look{true, 200}, 256},
		{"behind at the maximum", 256, look{true, 256}, 256},
	} {
		if got := c.from.adjust(c.look); got != c.want {
			t.Errorf("%s: %d, want %d", c.name, got, c.want)
		}
	}
}

// With a slow service, the width grows within one or two seconds as far as that helps. It shrinks
// afterwards.
func TestCrewFollowsTheNeed(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		seconds, due float64 // duration of a read in seconds; reads that become due per second
		least, most  crew    // range of the width at the end
	}{
		{0.002, 10_000, 20, 64},
		{0.02, 10_000, 200, 256},
		{1, 10_000, 256, 256},
		{30, 100, 256, 256}, // calls hang
		{0.001, 100, 16, 16},
	} {
		t.Run(fmt.Sprint(c), func(t *testing.T) {
			t.Parallel()
			width, waiting := leastWidth, 0.0
			const length = lookEvery * 0.025
			step := func() {
				waiting += c.due * length
				finished := min(float64(width)*length/c.seconds, waiting)
				waiting -= finished
				busy := finished * c.seconds / length
				width = width.adjust(look{waiting > 0, busy})
			}
			for i := range 100 {
				step()
				if i >= 15 && (width < c.least || width > c.most) {
					t.Fatalf("the width is %d after %d looks, want %d to %d", width, i+1, c.least, c.most)
				}
			}
			for range 20 {
				width = width.adjust(look{})
			}
			if width != leastWidth {
				t.Errorf("the width is %d when there is nothing to do", width)
			}
		})
	}
}
