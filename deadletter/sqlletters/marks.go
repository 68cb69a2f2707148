package sqlletters

import "github.com/weir-go/weir/internal/seen"

// marks notes by whom letters were marked when the box yielded or marked them. It has no entry for
// a letter without a mark, which most letters are.
type marks struct{ seen.Items[string] }

// from returns by whom a letter was marked when the box saw it, "" if it had no mark. After the
// first listing the box takes each letter that it has no entry for as seen without a mark.
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
