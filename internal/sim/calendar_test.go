package sim

import (
	"slices"
	"testing"
)

func TestCalendarIsInOrder(t *testing.T) {
	var c calendar
	d := roll(1, "calendar")
	var due []int64
	last, left := int64(-1), 0
	for i := range 5000 {
		if at := int64(d.below(300)) + last + 1; left == 0 || i < 4000 && d.chance(.6) {
			due = append(due, at)
			c.add(at, func() {
				if i := slices.Index(due, at); i < 0 {
					t.Fatalf("%d happens twice", at)
				} else {
					due = slices.Delete(due, i, i+1)
				}
			})
			left++
			continue
		}
		at := c.next()
		if at != slices.Min(due) {
			t.Fatalf("%d comes before %d", at, slices.Min(due))
		}
		c.pop()()
		last, left = at, left-1
	}
	var order []int
	for i := range 20 {
		c.add(1e9, func() { order = append(order, i) })
	}
	for len(c.entries) > 0 {
		c.pop()()
	}
	if !slices.IsSorted(order) || len(order) != 20 || len(due) != 0 {
		t.Errorf("entries of one instant happen in the order %v, and %d of the others not at all", order, len(due))
	}
}
