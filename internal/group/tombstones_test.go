package group

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weir-go/weir/lease"
	"github.com/weir-go/weir/shard"
)

// A tombstone is deleted after two listings without its shard. Only listings that began after the
// tombstone existed count.
func TestWhenTombstonesGo(t *testing.T) {
	over := lease.Lease{Key: lease.Key{Stream: "s", Shard: "shardId-000000000001"}, Epoch: 3, Position: shard.End}
	named, unnamed := []shard.Shard{{ID: over.Shard}}, []shard.Shard{{ID: "shardId-000000000002"}}
	type look struct {
		began  time.Duration // start of the latest listing
		shards []shard.Shard
		gone   bool
	}
	for name, looks := range map[string][]look{ // one a second
		"never listed":                        {{0, unnamed, false}, {1500 * time.Millisecond, unnamed, false}, {2500 * time.Millisecond, unnamed, true}},
		"the same listing again":              {{0, unnamed, false}, {1500 * time.Millisecond, unnamed, false}, {1500 * time.Millisecond, unnamed, false}},
		"a listing that was slow to come":     {{0, unnamed, false}, {500 * time.Millisecond, unnamed, false}, {700 * time.Millisecond, unnamed, false}},
		"slow, and then in time":              {{0, unnamed, false}, {500 * time.Millisecond, unnamed, false}, {2500 * time.Millisecond, unnamed, false}, {3500 * time.Millisecond, unnamed, true}},
		"named in between, and started again": {{0, unnamed, false}, {1500 * time.Millisecond, unnamed, false}, {2500 * time.Millisecond, named, false}, {3500 * time.Millisecond, unnamed, false}},
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
	l.latest.Born, over.Born, over.Revoked = 9, 8, "a"
	for range 5 {
		l.began = l.began.Add(time.Hour)
		if len(l.tombstones([]lease.Lease{over})) > 0 {
			t.Error("a lease of a deleted stream is removed while it may be valid for a session")
		}
	}
}

// A leader only keeps state about existing shards, however many shards come and go.
func TestALeaderRemembersOnlyWhatThereIs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newListings([]string{"s"})
		cfg := Config{Host: new(HostFuncs), Start: shard.Oldest, Times: lease.Times{Heartbeat: time.Second, Failover: 5 * time.Second}}
		name := func(i int) string { return fmt.Sprintf("shardId-%012d", i) }
		of := func(i int, at shard.Position) lease.Lease {
			l := lease.Lease{Key: lease.Key{Stream: "s", Shard: name(i)}, Epoch: 2, Position: at}
			if i > 0 {
				l.Parents = []string{name(i - 1)}
			}
			return l
		}
		most := 0
		for i := range 500 {
			time.Sleep(time.Minute)
			// One shard is read, and its parent has ended and left the stream.
			view := lease.View{Leases: []lease.Lease{of(i+1, shard.Oldest)}}
			if i%3 > 0 {
				view.Leases = append(view.Leases, of(i, shard.End))
			}
			s.know(view, time.Now())
			now := time.Now()
			if err := s.take(result{stream: "s", Listing: Listing{Shards: []shard.Shard{{ID: name(i + 1), Parents: []string{name(i)}}}}, began: now}, cfg); err != nil {
				t.Fatal(err)
			}
			s.streams["s"].tombstones(view.Leases)
			if !s.gone[lease.Key{Stream: "s", Shard: name(i)}] {
				t.Fatal("a parent that has left is not known to have")
			}
			most = max(most, len(s.gone)+len(s.streams["s"].absent)+len(s.unknown))
		}
		if most > 6 {
			t.Errorf("up to %d entries are kept", most)
		}
	})
}
