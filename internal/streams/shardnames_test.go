package streams_test

import (
	"fmt"
	"testing"

	"github.com/weir-go/weir/internal/streams"
	"github.com/weir-go/weir/shard"
)

func TestShardNames(t *testing.T) {
	var many []shard.Shard
	for i := range 12 {
		many = append(many, shard.Shard{ID: fmt.Sprintf("s%02d", i)})
	}
	for name, c := range map[string]struct {
		shards []shard.Shard
		want   string
	}{
		"none":                  {nil, "none"},
		"open ones come first":  {[]shard.Shard{{ID: "s0", Closed: true}, {ID: "s2"}, {ID: "s1"}}, "s1, s2, s0 (closed)"},
		"ten and how many more": {many, "s00, s01, s02, s03, s04, s05, s06, s07, s08, s09 and 2 more"},
	} {
		if got := streams.ShardNames(c.shards); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}
