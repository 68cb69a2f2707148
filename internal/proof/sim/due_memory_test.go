package sim

import (
	"testing"
	"time"

	"github.com/weir-go/weir/lease"
	"github.com/weir-go/weir/shard"
)

// TestShardsOfAWorker checks which leases shardsOf counts.
func TestShardsOfAWorker(t *testing.T) {
	l := &life{session: "me"}
	w := &world{books: newBooks()}
	for id, held := range map[string]lease.Lease{
		"held":          {Owner: "me"},
		"revoked":       {Revoked: "me"},
		"handed on":     {Owner: "me", Heir: "other"},
		"free":          {},
		"another's":     {Owner: "other"},
		"finished":      {Owner: "me", Position: shard.End},
		"revoked, over": {Revoked: "me", Position: shard.End},
	} {
		held.Key = lease.Key{Stream: firstStream, Shard: id}
		w.books.last[held.Key] = held
	}
	if n := w.shardsOf(l); n != 3 {
		t.Errorf("%d shards wait, want 3", n)
	}
	if n := w.shardsOf(&life{}) + w.shardsOf(nil); n != 0 {
		t.Errorf("%d shards of workers without a session wait", n)
	}
}

// TestTheLineIsAsLongAsItWas checks that shards count even if they left the queue during the wait.
func TestTheLineIsAsLongAsItWas(t *testing.T) {
	var n line
	for _, step := range []struct {
		since  int64
		shards int
		waits  time.Duration
	}{
		{1, 3, 40 * time.Second},
		{1, 1, 40 * time.Second}, // two shards were handed off
		{1, 4, 50 * time.Second},
		{2, 1, 20 * time.Second}, // another wait
		{2, 0, 20 * time.Second},
	} {
		if got := n.inLine(step.since, step.shards); got != step.waits {
			t.Errorf("with %d shards, since %d: %v, want %v", step.shards, step.since, got, step.waits)
		}
	}
}
