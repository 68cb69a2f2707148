package group

import (
	"testing"

	"github.com/weir-go/weir/lease"
	"github.com/weir-go/weir/shard"
)

func TestWhichStreamsWait(t *testing.T) {
	of := func(stream, id, owner string, at shard.Position) lease.Lease {
		return lease.Lease{Key: lease.Key{Stream: stream, Shard: id}, Owner: owner, Position: at}
	}
	for _, tt := range []struct {
		name   string
		leases []lease.Lease
		want   bool
	}{
		{"no lease", nil, true},
		{"no lease of this stream", []lease.Lease{of("b", "1", "w", shard.Oldest)}, true},
		{"a shard has an owner", []lease.Lease{of("a", "1", "", shard.Oldest), of("a", "2", "w", shard.Oldest)}, false},
		{"no shard has an owner", []lease.Lease{of("a", "1", "", shard.Oldest), of("a", "2", "", shard.End)}, true},
		{"all are read to their end", []lease.Lease{of("a", "1", "", shard.End)}, false},
	} {
		if got := waits("a", tt.leases); got != tt.want {
			t.Errorf("%s: %v, want %v", tt.name, got, tt.want)
		}
	}
}
