package shard

import (
	"maps"
	"slices"
)

// Shard is one shard of a stream, from a listing or from the end of its parent.
type Shard struct {
	ID string
	// Parents contains the IDs of the parents: one after a split, and two after a merge. Otherwise
	// it is empty. The parents may have left the stream.
	Parents []string
	Range   HashRange
	// Closed is set if the shard takes no more records. It is not set for a child from the end of
	// its parent, because Kinesis does not report there whether a child is closed.
	Closed bool
}

// Graph is the lineage of the shards in one listing of a stream. It is immutable.
type Graph struct {
	shards   map[string]Shard
	children map[string][]string
	order    []string
}

// NewGraph returns the graph of a listing. If a shard occurs twice, the last entry counts. Shards
// in a cycle, which no stream has, come last in the order and are never ready.
func NewGraph(shards []Shard) *Graph {
	g := &Graph{shards: make(map[string]Shard, len(shards)), children: map[string][]string{}}
	for _, s := range shards {
		g.shards[s.ID] = s
	}
	ids := slices.Sorted(maps.Keys(g.shards))
	waitsFor := make(map[string]int, len(ids)) // number of parents that are not in the order yet
	for _, id := range ids {
		parents := g.Parents(id)
		waitsFor[id] = len(parents)
		for _, p := range parents {
			g.children[p] = append(g.children[p], id)
		}
		if len(parents) == 0 {
			g.order = append(g.order, id)
		}
	}
	for next := 0; next < len(g.order); {
		generation := g.order[next:]
		next = len(g.order)
		for _, id := range generation {
			for _, child := range g.children[id] {
				if waitsFor[child]--; waitsFor[child] == 0 {
					g.order = append(g.order, child)
				}
			}
		}
		slices.Sort(g.order[next:])
	}
	for _, id := range ids {
		if waitsFor[id] > 0 {
			g.order = append(g.order, id)
		}
	}
	return g
}

// Len returns the number of shards.
func (g *Graph) Len() int { return len(g.shards) }

// Shard returns the shard with this ID. It returns false if the listing does not contain it.
func (g *Graph) Shard(id string) (Shard, bool) {
	s, ok := g.shards[id]
	return s, ok
}

// Parents returns the parents of id that are in the listing. Other parents have left the stream.
func (g *Graph) Parents(id string) []string {
	var here []string
	for _, p := range g.shards[id].Parents {
		if _, ok := g.shards[p]; ok && !slices.Contains(here, p) {
			here = append(here, p)
		}
	}
	return here
}

// Children returns the shards that have id as a parent, sorted. The caller must not modify the
// slice.
func (g *Graph) Children(id string) []string { return g.children[id] }

// Ordered returns all shard IDs by generation, sorted within each generation. The generation of a
// shard follows that of its latest parent, so ancestors come before descendants. The caller must
// not modify the slice.
func (g *Graph) Ordered() []string { return g.order }

// Ready returns the unfinished shards that can be read, in order. All parents of such a shard are
// finished or have left the stream.
func (g *Graph) Ready(done func(id string) bool) []string {
	var ready []string
	for _, id := range g.order {
		if !done(id) && !slices.ContainsFunc(g.Parents(id), func(p string) bool { return !done(p) }) {
			ready = append(ready, id)
		}
	}
	return ready
}
