package filter

import (
	"unicode/utf16"
	"unicode/utf8"
)

// machine walks through one payload at a time and contains the states of its filter.
type machine struct {
	f       *Filter
	data    []byte
	state   []byte // 1 if an entry of a node matches
	base    []byte // the states that reset copies: those of the filter, or changed
	scratch []byte // memory for a string with escapes

	// The remaining fields are for dotted names; see dotted.go.
	reached bool   // a dotted name may belong to a node
	dotted  bool   // resolve dotted names
	changed []byte // a copy of the filter's states that dotted names have modified
	saved   []byte // saved parts of changed, as a stack
	hits    []hit  // used as a stack
	slots   []int  // index of the last hit of each node
}

// These limits apply to the memory that a machine keeps for the next payload.
const (
	keepScratch = 64 << 10
	keepHits    = 4 << 10
)

// release returns the machine to the pool.
func (m *machine) release() {
	m.forget()
	machines.Put(m)
}

// forget resets m, but keeps its memory.
func (m *machine) forget() {
	if cap(m.scratch) > keepScratch {
		m.scratch = nil
	}
	if cap(m.saved) > keepScratch {
		m.saved = nil
	}
	if cap(m.hits) > keepHits {
		m.hits = nil
	}
	*m = machine{
		state: m.state[:0], scratch: m.scratch[:0],
		changed: m.changed[:0], saved: m.saved[:0], hits: m.hits[:0], slots: m.slots[:0],
	}
}

// walk walks through a payload and reports whether it is JSON.
func (m *machine) walk(f *Filter, data []byte) bool {
	m.f, m.data, m.base = f, data, f.init
	m.state = append(m.state[:0], f.init...)
	i := m.value(f.root, space(data, 0), 0)
	if i < 0 || space(data, i) != len(data) {
		return false
	}
	if m.reached {
		m.walkDotted()
	}
	return true
}

// reset sets a range of states to their initial values.
func (m *machine) reset(from, to int) { copy(m.state[from:to], m.base[from:to]) }

// value handles the value of a node's field that begins at i. It returns the index after the value,
// or -1 for invalid JSON.
func (m *machine) value(n *node, i, depth int) int {
	d := m.data
	if uint(i) >= uint(len(d)) {
		return -1
	}
	switch c := d[i]; c {
	case '{':
		if len(n.inner) == 0 { // only leaf conditions
			return skip(d, i, depth)
		}
		if depth >= mostDepth {
			return -1
		}
		return m.object(n, i+1, depth+1)
	case '[':
		if depth >= mostDepth {
			return -1
		}
		return m.array(n, i+1, depth+1)
	case '"':
		end, escaped := stringEnd(d, i+1)
		if end >= 0 && len(n.leaves) > 0 {
			s := d[i+1 : end-1]
			if escaped {
				s = m.unescape(s)
			}
			m.leaf(n, value{kind: text, bytes: s})
		}
		return end
	default:
		end := scalarEnd(d, i)
		if end >= 0 && len(n.leaves) > 0 {
			v := value{kind: literal, bytes: d[i:end]}
			if c == '-' || c-'0' <= 9 {
				v.kind = number
			}
			m.leaf(n, v)
		}
		return end
	}
}

// leaf handles a value that is neither an array nor an object.
func (m *machine) leaf(n *node, v value) {
	for i := range n.leaves {
		l := &n.leaves[i]
		switch {
		case l.values == nil: // the field must be absent
			m.state[l.state] = 0
		case m.state[l.state] == 0 && l.values.match(v):
			m.state[l.state] = 1
		}
	}
}

// array handles the elements of an array that begins before i.
func (m *machine) array(n *node, i, depth int) int {
	d := m.data
	if i = space(d, i); i < len(d) && d[i] == ']' {
		return i + 1
	}
	for {
		if i = m.value(n, i, depth); i < 0 {
			return -1
		}
		if i = space(d, i); i >= len(d) {
			return -1
		}
		switch d[i] {
		case ']':
			return i + 1
		case ',':
			i = space(d, i+1)
		default:
			return -1
		}
	}
}

// object handles the fields of an object, and then evaluates the conditions below the node.
func (m *machine) object(n *node, i, depth int) int {
	d := m.data
	m.reset(n.below, n.end)
	if i = space(d, i); i < len(d) && d[i] == '}' {
		m.settle(n)
		return i + 1
	}
	saved := -1
	if m.dotted && len(n.deep) > 0 {
		saved = m.dots(n, i, depth)
	}
	for {
		at, name, escaped := nameEnd(d, i)
		if at < 0 {
			return -1
		}
		if escaped {
			name = m.unescape(name)
		}
		if child := n.child(name); child == nil {
			if len(n.deep) > 0 && !m.reached && n.reaches(name) {
				m.reached = true
			}
			i = skip(d, at, depth)
		} else {
			m.reset(child.begin, child.end) // of several with the same name, the last one counts
			i = m.value(child, at, depth)
		}
		if i < 0 {
			return -1
		}
		if i = space(d, i); i >= len(d) {
			return -1
		}
		switch d[i] {
		case '}':
			m.settle(n)
			if saved >= 0 {
				m.restore(n, saved)
			}
			return i + 1
		case ',':
			i = space(d, i+1)
		default:
			return -1
		}
	}
}

// settle evaluates an object after its end.
func (m *machine) settle(n *node) {
	if m.dotted {
		m.settlePending(n)
	}
	for i := range n.inner {
		in := &n.inner[i]
		all := byte(1)
		for _, s := range in.below {
			all &= m.state[s]
		}
		if in.absent { // in every element of an array
			m.state[in.state] &= all
		} else {
			m.state[in.state] |= all
		}
	}
}

// unescape returns the value of a string with valid escapes. The result is valid until the next
// call.
func (m *machine) unescape(s []byte) []byte {
	out := m.scratch[:0]
	for i := 0; i < len(s); {
		if s[i] != '\\' {
			out = append(out, s[i])
			i++
			continue
		}
		switch c := s[i+1]; c {
		case 'b':
			out = append(out, '\b')
		case 'f':
			out = append(out, '\f')
		case 'n':
			out = append(out, '\n')
		case 'r':
			out = append(out, '\r')
		case 't':
			out = append(out, '\t')
		case 'u':
			r := hex4(s[i+2:])
			i += 4
			if utf16.IsSurrogate(r) {
				low := rune(-1)
				if i+8 <= len(s) && s[i+2] == '\\' && s[i+3] == 'u' {
					low = hex4(s[i+4:])
				}
				if r = utf16.DecodeRune(r, low); r != utf8.RuneError {
					i += 6
				}
			}
			out = utf8.AppendRune(out, r)
		default:
			out = append(out, c)
		}
		i += 2
	}
	m.scratch = out
	return out
}

func hex4(s []byte) rune {
	return hexDigit(s[0])<<12 | hexDigit(s[1])<<8 | hexDigit(s[2])<<4 | hexDigit(s[3])
}
