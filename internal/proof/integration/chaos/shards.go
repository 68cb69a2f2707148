package main

import "fmt"

// splitOrMerge splits or merges shards, and describes the change. If there are few shards it
// splits, and if there are many it merges, whatever was requested.
func (s *stage) splitOrMerge(wish string, pick uint64) string {
	open := s.server.OpenShards(stream)
	few, many := len(open) <= max(2, s.Shards/2), len(open) >= 2*s.Shards
	if few || wish == split && !many {
		shard := open[pick%uint64(len(open))]
		s.server.Split(stream, shard)
		return "split of " + shard
	}
	i := pick % uint64(len(open)-1)
	s.server.Merge(stream, open[i], open[i+1])
	return fmt.Sprintf("merge of %s and %s", open[i], open[i+1])
}
