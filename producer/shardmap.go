package producer

import (
	"errors"
	"fmt"
	"slices"

	"github.com/weir-go/weir/shard"
)

// shardMap maps hash keys to open shards. The ranges of the shards cover the whole key space. A
// shardMap is immutable.
type shardMap struct {
	shards []shard.Shard
	ends   []shard.HashKey // of their ranges
}

// unmapped is the map of a stream whose shards are unknown. It has one shard without an ID.
var unmapped = &shardMap{
	[]shard.Shard{{Range: shard.HashRange{End: shard.MaxHashKey}}}, []shard.HashKey{shard.MaxHashKey},
}

// known reports whether the shards are known.
func (m *shardMap) known() bool { return m != unmapped }

var errGaps = errors.New("the listed shards do not cover each hash key once")

// newShardMap returns the map of a listing. It omits parents of listed shards: a listing takes
// several calls, and a shard may be split between two of them.
func newShardMap(listed []shard.Shard) (*shardMap, error) {
	parents := map[string]bool{}
	for _, s := range listed {
		for _, p := range s.Parents {
			parents[p] = true
		}
	}
	var open []shard.Shard
	for _, s := range listed {
		if !s.Closed && !parents[s.ID] {
			open = append(open, s)
		}
	}
	slices.SortFunc(open, func(a, b shard.Shard) int { return a.Range.Start.Compare(b.Range.Start) })
	next, ends := shard.HashKey{}, make([]shard.HashKey, len(open))
	for i, s := range open {
		if s.Range.Start != next || (s.Range.End == shard.MaxHashKey) != (i == len(open)-1) {
			return nil, fmt.Errorf("%w: shard %s begins at %s", errGaps, s.ID, s.Range.Start)
		}
		next, ends[i] = s.Range.End.Next(), s.Range.End
	}
	if len(open) == 0 {
		return nil, fmt.Errorf("%w: no shard is open", errGaps)
	}
	return &shardMap{open, ends}, nil
}

// find returns the index of the shard that has a hash key.
func (m *shardMap) find(k shard.HashKey) int {
	low, high := 0, len(m.ends)-1
	for low < high {
		mid := (low + high) / 2
		if m.ends[mid].Compare(k) < 0 {
			low = mid + 1
		} else {
			high = mid
		}
	}
	return low
}

// has reports whether a shard is one of the open ones.
func (m *shardMap) has(id string) bool {
	return slices.ContainsFunc(m.shards, func(s shard.Shard) bool { return s.ID == id })
}

// ranges stores the hash ranges of open and closed shards, which never change.
type ranges map[string]shard.HashRange

// learn adds the shards of a listing. If there are many, it removes shards that are not in the
// listing.
func (r ranges) learn(listed []shard.Shard) {
	if len(r) > 2*len(listed)+1000 {
		clear(r)
	}
	for _, s := range listed {
		r[s.ID] = s.Range
	}
}

// overlap reports whether two ranges have a hash key in common.
func overlap(a, b shard.HashRange) bool {
	return a.Start.Compare(b.End) <= 0 && b.Start.Compare(a.End) <= 0
}
