package seen

import "testing"

// A value exists as long as listings find its item. A listing does not remove items that were seen
// after it began, even if another listing began meanwhile.
func TestEntriesOfItemsThatAreGone(t *testing.T) {
	var s Items[string]
	has := func(name, want string, entries int) {
		t.Helper()
		if got, _ := s.Get(name); got != want || s.Len() != entries {
			t.Errorf("%s has %q, with %d entries; want %q, %d", name, got, s.Len(), want, entries)
		}
	}
	has("a", "", 0)
	s.Set("a", "1")
	s.Set("gone", "1")
	if s.Listed() {
		t.Error("it was listed before the first listing")
	}
	first := s.Begin()
	s.Set("a", "2")
	second := s.Begin()
	s.Set("b", "1")
	s.End(first)
	has("a", "2", 2)
	has("gone", "", 2)
	s.End(second)
	has("a", "", 1)
	has("b", "1", 1)
	s.Delete("b")
	has("b", "", 0)
	if !s.Listed() {
		t.Error("it was not listed")
	}
}
