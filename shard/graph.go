package shard

import (
	"maps"
	"slices"
)

// Shard is one shard of a stream, as a listing or the end of its parent describes it.
type Shard struct {
	ID string
	// none, one (after a split) or two (after a merge); they may have left the stream
	Parents []string
	Range   HashRange
	// it takes no more records; a child reported by its parent's end is not known to be closed
	Closed bool
}

// Graph is the lineage of one stream's shards as of one listing. It is immutable.
type Graph struct {
	shards   map[string]Shard
	children map[string][]string
	order    []string
}

// NewGraph builds the graph of a listing. A shard that is named twice counts once, the last one.
// Shards whose lineage runs in a circle, which no stream has, come last in the order and are never
// ready.
func NewGraph(shards []Shard) *Graph {
	g := &Graph{shards: make(map[string]Shard, len(shards)), children: map[string][]string{}}
	for _, s := range shards {
		g.shards[s.ID] = s
	}
	ids := slices.Sorted(maps.Keys(g.shards))
	waitsFor := make(map[string]int, len(ids)) // parents not yet in the order
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

// Len is the number of shards.
func (g *Graph) Len() int { return len(g.shards) }

// Shard returns the shard id, false when the listing does not name it.
func (g *Graph) Shard(id string) (Shard, bool) {
	s, ok := g.shards[id]
	return s, ok
}

// Parents returns the parents of id that the listing still names. One that it does not name has
// left the stream.
func (g *Graph) Parents(id string) []string {
	var here []string
	for _, p := range g.shards[id].Parents {
		if _, ok := g.shards[p]; ok && !slices.Contains(here, p) {
			here = append(here, p)
		}
	}
	return here
}

// Children returns the shards that name id as a parent, sorted. The caller must not change the
// slice.
func (g *Graph) Children(id string) []string { return g.children[id] }

// Ordered returns all shard IDs generation by generation, so ancestors before descendants, and
// sorted inside each: a shard belongs to the generation after the latest of its parents. The caller
// must not change the slice.
func (g *Graph) Ordered() []string { return g.order }

// Ready returns, in order, the shards that are not done and whose parents all are (or have left the
// stream).
func (g *Graph) Ready(done func(id string) bool) []string {
	var ready []string
	for _, id := range g.order {
		if !done(id) && !slices.ContainsFunc(g.Parents(id), func(p string) bool { return !done(p) }) {
			ready = append(ready, id)
		}
	}
	return ready
}
