package group

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/weir-go/weir/lease"
	"github.com/weir-go/weir/shard"
)

// A tombstone goes when two listings did not name its shard, and only those count that began when it was there.
func TestWhenTombstonesGo(t *testing.T) {
	over := lease.Lease{Key: lease.Key{Stream: "s", Shard: "shardId-000000000001"}, Epoch: 3, Position: shard.End}
	named, unnamed := []shard.Shard{{ID: over.Shard}}, []shard.Shard{{ID: "shardId-000000000002"}}
	type look struct {
		began  time.Duration // of the latest listing
		shards []shard.Shard
		gone   bool
	}
	for name, looks := range map[string][]look{ // one a second
		"never listed":                     {{0, unnamed, false}, {1500 * time.Millisecond, unnamed, false}, {2500 * time.Millisecond, unnamed, true}},
		"the same listing again":           {{0, unnamed, false}, {1500 * time.Millisecond, unnamed, false}, {1500 * time.Millisecond, unnamed, false}},
		"a listing that was slow to come":  {{0, unnamed, false}, {500 * time.Millisecond, unnamed, false}, {700 * time.Millisecond, unnamed, false}},
		"slow, and then in time":           {{0, unnamed, false}, {500 * time.Millisecond, unnamed, false}, {2500 * time.Millisecond, unnamed, false}, {3500 * time.Millisecond, unnamed, true}},
		"named in between, and begun anew": {{0, unnamed, false}, {1500 * time.Millisecond, unnamed, false}, {2500 * time.Millisecond, named, false}, {3500 * time.Millisecond, unnamed, false}},
	} {
		synctest.Test(t, func(t *testing.T) {
			start := time.Now()
			l := &listed{absent: map[string]absence{}}
			for i, c := range looks {
				time.Sleep(time.Second)
				l.began, l.latest = start.Add(c.began), &Listing{Shards: c.shards}
				if gone := len(l.tombstones([]lease.Lease{over})) > 0; gone != c.gone {
					t.Errorf("%s: look %d: removed %t", name, i, gone)
				}
			}
		})
	}
	l := &listed{absent: map[string]absence{}, latest: &Listing{}}
	open := over
	open.Position = shard.Oldest
	for range 5 {
		l.began = time.Now().Add(time.Hour)
		if len(l.tombstones([]lease.Lease{open})) > 0 {
			t.Error("a lease that is not finished is removed")
		}
	}
}
