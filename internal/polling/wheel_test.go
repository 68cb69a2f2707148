package polling

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// A wheel behaves like a list of all ticks with their feeds.
func TestWheelHasWhatWasPlaced(t *testing.T) {
	for seed := range uint64(50) {
		r := rand.New(rand.NewPCG(seed, 1))
		var w wheel
		cursor := r.IntN(3 * wheelTicks)
		want, placed := map[int][]*Feed{}, 0
		for range 300 {
			for range r.IntN(4) {
				tick := cursor + 1 + r.IntN([]int{3, 70, wheelTicks - 1}[r.IntN(3)])
				f := new(Feed)
				w.place(f, tick)
				want[tick], placed = append(want[tick], f), placed+1
			}
			far := cursor + 1 + r.IntN(wheelTicks)
			first := far
			for tick := range want {
				first = min(first, tick)
			}
			if got := w.next(cursor+1, far); got != first {
				t.Fatalf("seed %d: the first tick after %d and before %d is %d, want %d", seed, cursor, far, got, first)
			}
			if first == far {
				continue // other feeds may be due later
			}
			var got []*Feed
			w.take(first, func(f *Feed) {
				f.after = nil
				got = append(got, f)
			})
			if !slices.Equal(got, want[first]) {
				t.Fatalf("seed %d: %d feeds at tick %d, want %d, in their order", seed, len(got), first, len(want[first]))
			}
			placed -= len(got)
			delete(want, first)
			if w.take(first, func(*Feed) { t.Error("a feed is there twice") }); w.placed != placed {
				t.Fatalf("seed %d: %d are placed, want %d", seed, w.placed, placed)
			}
			cursor = first
		}
	}
}

func TestLookingForTheNextTickMakesNothing(t *testing.T) {
	var w wheel
	f := new(Feed)
	if w.take(5, func(*Feed) { t.Error("there is a feed") }); w.next(0, 10) != 10 {
		t.Error("there is something in an empty wheel")
	}
	w.place(f, 100)
	if n := testing.AllocsPerRun(100, func() {
		at := w.next(1, wheelTicks)
		w.take(at, func(f *Feed) { w.place(f, at) })
	}); n > 0 {
		t.Errorf("%v allocations", n)
	}
}
