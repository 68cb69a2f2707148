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

// Unseen events happen in the order of all events. They do not wake the driver, but happen when it
// is next awake.
func TestUnseenEntriesComeInBetween(t *testing.T) {
	var c calendar
	var order []int
	for _, at := range []int64{30, 10, 20} {
		c.add(at, func() { order = append(order, int(at)) })
	}
	for _, at := range []int64{25, 5, 10, 40} {
		c.addUnseen(at, func() { order = append(order, -int(at)) })
	}
	if c.next() != 10 {
		t.Errorf("the driver has to be awake at %d, want 10", c.next())
	}
	if _, late := c.late(4); late {
		t.Error("something happens before its time")
	}
	if _, late := c.late(5); !late {
		t.Error("something does not happen at its time")
	}
	for range 3 {
		now := c.next()
		for {
			at, late := c.late(now)
			if !late {
				break
			}
			if at > now {
				t.Fatalf("what is due at %d happens at %d", at, now)
			}
			c.unseen.pop()()
		}
		if len(order) == 5 { // the last event; a calendar is never empty
			c.add(50, nil)
		}
		c.pop()()
	}
	if want := []int{-5, 10, -10, 20, -25, 30}; !slices.Equal(order, want) {
		t.Errorf("entries happen in the order %v, want %v", order, want)
	}
	if at, late := c.late(45); at != 40 || !late {
		t.Errorf("at 45 what is due at 40 is late: %v (%d)", late, at)
	}
}
