package shardrun

import "github.com/weir-go/weir/internal/group"

// NewTestLoop returns a loop that reads from the given pages, for tests of other packages.
func NewTestLoop(in *Shared, t *group.Term, from Pages) *Loop {
	return &Loop{in: in, term: t, source: from, begun: true}
}
