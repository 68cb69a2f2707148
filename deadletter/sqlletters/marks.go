package sqlletters

import "github.com/weir-go/weir/internal/seen"

// marks records which box had marked a letter when this box yielded or marked it. It has no entry
// for a letter without a mark, and most letters have none.
type marks struct{ seen.Items[string] }

// from returns the box that had marked a letter when this box saw it, "" if it had no mark. After
// the first listing the box treats each letter without an entry as seen without a mark.
func (m *marks) from(id string) (by string, seen bool) {
	by, ok := m.Get(id)
	return by, ok || m.Listed()
}

func (m *marks) note(id, by string) {
	if by == "" {
		m.Delete(id)
		return
	}
	m.Set(id, by)
}
