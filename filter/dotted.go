package filter

import (
	"bytes"
	"cmp"
	"slices"
)

// A dotted name in a payload, such as a.b, is the field b of the object a. It can occur before or
// after the object a. If a is an array of objects, each of these objects has the field.
//
// The first walk through a payload ignores dotted names. It only reports whether one of them
// belongs to a field of the patterns. If so, a second walk first handles the dotted names of each
// object. Their results are the initial states for the other names.

// hit is a value of a payload whose name belongs to a node.
type hit struct {
	node int // ID of the node
	at   int // index where the value begins
}

// reaches reports whether a dotted name begins with the name of a child that has children.
func (n *node) reaches(name []byte) bool {
	if n.byName != nil {
		dot := bytes.IndexByte(name, '.')
		if dot < 0 {
			return false
		}
		c := n.byName[string(name[:dot])]
		return c != nil && len(c.children) > 0
	}
	for _, c := range n.deep {
		if len(name) > len(c.name) && name[len(c.name)] == '.' && string(name[:len(c.name)]) == c.name {
			return true
		}
	}
	return false
}

// target returns the node below n for a name, or nil if there is none.
func (n *node) target(name []byte) *node {
	for n != nil {
		dot := bytes.IndexByte(name, '.')
		if dot < 0 {
			return n.child(name)
		}
		n, name = n.child(name[:dot]), name[dot+1:]
	}
	return nil
}

// walkDotted walks through a payload and resolves dotted names. The payload must be valid JSON.
func (m *machine) walkDotted() {
	f := m.f
	m.dotted = true
	m.changed = append(m.changed[:0], f.init...)
	m.base = m.changed
	m.state = append(m.state[:0], f.init...)
	if m.slots = slices.Grow(m.slots[:0], len(f.nodes)); cap(m.slots) > 0 {
		m.slots = m.slots[:len(f.nodes)]
	}
	m.value(f.root, space(m.data, 0), 0)
}

// dots handles the dotted names of an object that begins at i. It writes their results into the
// base of the nodes below n. It returns where the former base is saved, or -1 if nothing changed.
func (m *machine) dots(n *node, i, depth int) (saved int) {
	first := len(m.hits)
	m.gather(n, i, false)
	if len(m.hits) == first {
		return -1
	}
	saved = len(m.saved)
	m.saved = append(m.saved, m.base[n.below:n.end]...)
	for k := first; k < len(m.hits); k++ { // gather appends to the hits
		t := m.f.nodes[m.hits[k].node]
		for up := t.up; up != n; up = up.up {
			m.base[up.pending] = 1
		}
		if at := m.hits[k].at; m.data[at] == '{' && len(t.children) > 0 {
			m.base[t.pending] = 1
			m.gather(t, at+1, true)
		}
	}
	// Handle the hits of descendants first. Their nodes have higher IDs. The elements of an array
	// start from the states that the dotted names below the array have set.
	end := len(m.hits)
	slices.SortFunc(m.hits[first:end], func(a, b hit) int { return cmp.Compare(b.node, a.node) })
	for k := first; k < end; k++ { // value may append hits, and then removes them
		h := m.hits[k]
		if m.data[h.at] == '{' {
			continue
		}
		t := m.f.nodes[h.node]
		m.reset(t.begin, t.end)
		m.value(t, h.at, depth)
		copy(m.base[t.begin:t.below], m.state[t.begin:t.below])
	}
	m.hits = m.hits[:first]
	m.reset(n.below, n.end)
	return saved
}

// restore undoes the changes that dots made to the base of the nodes below n.
func (m *machine) restore(n *node, saved int) {
	copy(m.base[n.below:n.end], m.saved[saved:])
	m.saved = m.saved[:saved]
}

// gather appends the fields of an object that belong to nodes below n. It appends only fields with
// dotted names, or all fields if all is set. Of several fields with the same name it appends the
// last one.
func (m *machine) gather(n *node, i int, all bool) {
	d := m.data
	first := len(m.hits)
	if i = space(d, i); d[i] == '}' {
		return
	}
	for {
		at, name, escaped := nameEnd(d, i)
		if escaped {
			name = m.unescape(name)
		}
		if all || n.reaches(name) {
			if t := n.target(name); t != nil {
				if s := m.slots[t.id]; s >= first && s < len(m.hits) && m.hits[s].node == t.id {
					m.hits[s].at = at
				} else {
					m.slots[t.id] = len(m.hits)
					m.hits = append(m.hits, hit{t.id, at})
				}
			}
		}
		if i = space(d, skip(d, at, 0)); d[i] == '}' {
			return
		}
		i = space(d, i+1)
	}
}

// settlePending settles the children of n whose fields all have dotted names.
func (m *machine) settlePending(n *node) {
	for _, c := range n.deep {
		if m.state[c.pending] != 0 {
			m.settle(c)
		}
	}
	m.state[n.pending] = 0
}
