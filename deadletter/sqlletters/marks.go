package sqlletters

import "crypto/sha256"

// marks is what a box remembers: by whom letters were marked when it yielded or marked them. It has
// no entry for a letter without a mark, which most letters are.
type marks struct {
	passes int // how often the letters were listed, begun listings included
	by     map[[sha256.Size]byte]markedBy
}

type markedBy struct {
	by   string
	pass int // the newest that had begun when the letter was seen
}

// from returns by whom a letter was marked when the box saw it, "" for nobody. After the first
// listing the box takes each letter that it has no entry for as seen without a mark.
func (m *marks) from(id string) (by string, seen bool) {
	is, ok := m.by[sha256.Sum256([]byte(id))]
	return is.by, ok || m.passes > 0
}

func (m *marks) note(id, by string) {
	key := sha256.Sum256([]byte(id))
	if by == "" {
		delete(m.by, key)
		return
	}
	if m.by == nil {
		m.by = map[[sha256.Size]byte]markedBy{}
	}
	m.by[key] = markedBy{by, m.passes}
}

// begin begins a listing.
func (m *marks) begin() (pass int) {
	m.passes++
	return m.passes
}

// end ends a listing that went through all letters. It removes the entries of letters that the
// table does not have any more.
func (m *marks) end(pass int) {
	for key, is := range m.by {
		if is.pass < pass {
			delete(m.by, key)
		}
	}
}
