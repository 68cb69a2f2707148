package sqlletters

import "github.com/weir-go/weir/internal/seen"

// marks stores, for each marked dead letter, the box whose mark was in the table when this box last
// yielded or marked the dead letter. Dead letters without a mark, which most are, have no entry.
type marks struct{ seen.Items[string] }

// from returns the box whose mark a dead letter had when this box saw the dead letter. It returns
// "" if there was no mark. Once a listing has begun, every dead letter without an entry counts as
// seen without a mark.
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
