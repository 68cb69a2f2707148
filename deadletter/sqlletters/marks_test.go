package sqlletters

import "testing"

// A box that exists for a long time must not remember every dead letter that ever existed.
func TestMarksHaveNoEntriesForLettersThatAreUnmarkedOrGone(t *testing.T) {
	var m marks
	holds := func(id, want string, wantSeen bool, entries int) {
		t.Helper()
		if by, seen := m.from(id); by != want || seen != wantSeen || m.Len() != entries {
			t.Errorf("%s was marked by %q (%v), with %d entries; want %q, %v, %d", id, by, seen, m.Len(), want, wantSeen, entries)
		}
	}
	holds("a", "", false, 0)
	m.note("a", "me")
	holds("a", "me", true, 1)
	holds("b", "", false, 1)
	first := m.Begin()
	m.note("a", "other")
	m.note("b", "")
	m.note("c", "me")
	holds("b", "", true, 2)
	second := m.Begin() // while the first listing is running
	m.note("a", "")
	m.note("d", "me")
	m.End(first)
	holds("a", "", true, 2)
	m.End(second)
	holds("c", "", true, 1)
	holds("d", "me", true, 1)
}
