package streams

import (
	"fmt"
	"slices"
	"strings"

	"github.com/weir-go/weir/shard"
)

// ShardNames returns a text that lists shards, for an error about an unknown shard. It contains up
// to ten shards, open ones first, and the number of the others.
func ShardNames(shards []shard.Shard) string {
	const most = 10
	var open, closed []string
	for _, s := range shards {
		if s.Closed {
			closed = append(closed, s.ID+" (closed)")
		} else {
			open = append(open, s.ID)
		}
	}
	slices.Sort(open)
	slices.Sort(closed)
	names := append(open, closed...)
	if len(names) == 0 {
		return "none"
	}
	if len(names) > most {
		return strings.Join(names[:most], ", ") + fmt.Sprintf(" and %d more", len(names)-most)
	}
	return strings.Join(names, ", ")
}
