package filter

import (
	"maps"
	"slices"
)

// node is a field of the payload that patterns contain. It has at least one entry for each
// conjunction that contains it, and each entry has a state. The states of a node and its
// descendants are adjacent.
type node struct {
	id       int // its index in Filter.nodes; descendants have higher IDs
	up       *node
	children []*node
	deep     []*node // the children that have children
	name     string
	byName   map[string]*node // the children by name, if there are many
	leaves   []leafEntry
	inner    []innerEntry

	begin, below, end int // indexes of the states: its own, those of its children, after both

	// pending is a state of a node with children. It is 1 if dotted names gave fields to the node,
	// and these fields were not combined with a nested object yet.
	pending int
}

// leafEntry is a set of values, one of which the field must have. If values is nil, the field must
// be absent.
type leafEntry struct {
	values *values
	state  int
}

// innerEntry is a set of fields below a node that must all match.
type innerEntry struct {
	state  int
	below  []int // the states of the fields
	absent bool  // all of the fields must be absent
}

const fewChildren = 8

// child returns the child with the given name, or nil if no pattern contains it.
func (n *node) child(name []byte) *node {
	if n.byName != nil {
		return n.byName[string(name)]
	}
	for _, c := range n.children {
		if c.name == string(name) {
			return c
		}
	}
	return nil
}

// part is the part of one conjunction that concerns a node.
type part struct {
	of       int // index of the conjunction
	leaves   []*values
	isAbsent bool // the field must be absent
	fields   map[string]*part
}

// build creates the nodes of all clauses.
func (f *Filter) build(all []clause) {
	var parts []*part
	for _, c := range all {
		made := conjunction{key: c.key, arrival: c.arrival, data: -1}
		if len(c.data) > 0 {
			made.data = 0
			parts = append(parts, partOf(len(f.any), c.data))
		}
		f.any = append(f.any, made)
	}
	if len(parts) == 0 {
		return
	}
	f.root = &node{}
	f.nodes = []*node{f.root}
	for _, s := range f.entries(f.root, parts) {
		f.any[s.of].data = s.state
	}
}

// partOf returns the fields of a conjunction as a tree.
func partOf(of int, fields []condition) *part {
	root := &part{of: of}
	for _, c := range fields {
		p := root
		for _, name := range c.path {
			if p.fields == nil {
				p.fields = map[string]*part{}
			}
			if p.fields[name] == nil {
				p.fields[name] = &part{of: of}
			}
			p = p.fields[name]
		}
		if c.values == nil {
			p.isAbsent = true
		} else {
			p.leaves = append(p.leaves, c.values)
		}
	}
	return root
}

// stateOf is the state of an entry of a conjunction.
type stateOf struct{ of, state int }

// entries creates the entries of a node and of its descendants. It returns the states of the node's
// entries.
func (f *Filter) entries(n *node, parts []*part) (made []stateOf) {
	n.begin = len(f.init)
	entry := func(p *part, absent bool) int {
		state := len(f.init)
		f.init = append(f.init, 0)
		if absent {
			f.init[state] = 1
		}
		made = append(made, stateOf{p.of, state})
		return state
	}
	index := map[int]int{} // the inner entry of each conjunction
	for _, p := range parts {
		for _, v := range p.leaves {
			n.leaves = append(n.leaves, leafEntry{v, entry(p, false)})
		}
		if p.isAbsent {
			n.leaves = append(n.leaves, leafEntry{nil, entry(p, true)})
		}
		if len(p.fields) > 0 {
			index[p.of] = len(n.inner)
			n.inner = append(n.inner, innerEntry{state: entry(p, p.absent()), absent: p.absent()})
		}
	}
	if len(n.inner) > 0 {
		n.pending = len(f.init)
		f.init = append(f.init, 0)
	}
	n.below = len(f.init)
	for _, name := range names(parts) {
		child := &node{id: len(f.nodes), up: n, name: name}
		f.nodes = append(f.nodes, child)
		n.children = append(n.children, child)
		var of []*part
		for _, p := range parts {
			if c := p.fields[name]; c != nil {
				of = append(of, c)
			}
		}
		for _, s := range f.entries(child, of) {
			in := &n.inner[index[s.of]]
			in.below = append(in.below, s.state)
		}
		if len(child.children) > 0 {
			n.deep = append(n.deep, child)
		}
	}
	n.end = len(f.init)
	if len(n.children) > fewChildren {
		n.byName = map[string]*node{}
		for _, c := range n.children {
			n.byName[c.name] = c
		}
	}
	return made
}

// absent reports whether all fields below the part must be absent.
func (p *part) absent() bool {
	for _, c := range p.fields {
		if len(c.leaves) > 0 || len(c.fields) > 0 && !c.absent() {
			return false
		}
	}
	return true
}

// names returns the field names of all parts.
func names(parts []*part) []string {
	seen := map[string]bool{}
	for _, p := range parts {
		for name := range p.fields {
			seen[name] = true
		}
	}
	return slices.Sorted(maps.Keys(seen))
}
