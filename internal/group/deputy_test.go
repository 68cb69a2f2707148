package group

import (
	"log/slog"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weir-go/weir/lease"
	"github.com/weir-go/weir/shard"
)

// A deputy may list a recreated stream before a split gives a new shard the name of an old one. The
// lease of the old shard must not count as the finished lease of the new shard.
func TestADeputyDoesNotFinishShardsOfANewStream(t *testing.T) {
	key := lease.Key{Stream: "s", Shard: "4"}
	old := lease.Lease{Key: key, Epoch: 3, Born: 8, Owner: "a", Position: shard.Oldest}
	workers := []lease.Worker{{Session: "a"}}
	act := func(listing Listing, l lease.Lease) []lease.Action {
		renewed, _ := Renew(listing, []lease.Lease{l}, workers, nil)
		return atOnce(renewed, []lease.Lease{l}, listing)
	}
	did := act(Listing{Born: 9, Shards: []shard.Shard{{ID: "0"}}}, old)
	if len(did) != 2 || did[0].Kind != lease.Revoke || did[1].Kind != lease.Replace {
		t.Fatalf("without the shard it does %v", did)
	}
	waiting := did[1].Lease
	if waiting.Position != shard.End || waiting.Born != 8 || waiting.Revoked != "a" || waiting.Epoch != 5 {
		t.Fatalf("without the shard the lease becomes %+v", waiting)
	}
	if did := act(Listing{Born: 9, Shards: []shard.Shard{{ID: "0"}}}, waiting); len(did) != 0 {
		t.Errorf("while the shard does not exist it does %v", did)
	}
	did = act(Listing{Born: 9, Shards: []shard.Shard{{ID: "0"}, {ID: "4", Parents: []string{"0"}}}}, waiting)
	if len(did) != 1 || did[0].Kind != lease.Replace || did[0].Epoch != 5 {
		t.Fatalf("with the shard it does %v", did)
	}
	if l := did[0].Lease; l.Position != shard.Oldest || l.Born != 9 || l.Revoked != "a" || l.Epoch != 6 || len(l.Parents) != 1 {
		t.Errorf("with the shard the lease becomes %+v", l)
	}
}

// A worker that listed a stream before it was deleted and created again must not replace the leases
// that another worker has already made for the new stream. It lists the stream again.
func TestAListingOfADeletedStreamChangesNoLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newListings([]string{"s"})
		l := s.streams["s"]
		l.latest = &Listing{Born: 8, Shards: []shard.Shard{{ID: "0"}, {ID: "1"}}}
		l.began = time.Now()
		view := lease.View{Leases: []lease.Lease{{Key: lease.Key{Stream: "s", Shard: "0"}, Epoch: 3, Born: 9, Owner: "a"}}}
		cfg := Config{Times: lease.DefaultTimes, ListInterval: time.Minute, Log: slog.New(slog.DiscardHandler)}
		for range 2 {
			if got := s.actions(view, lease.Facts{}, cfg); len(got) != 0 {
				t.Fatalf("it does %v", got)
			}
		}
		if !l.again.After(l.began) || l.outdated != 1 || !l.retry.Equal(time.Now().Add(time.Second)) {
			t.Errorf("it lists again after %v and %v, for the %d. time", l.again.Sub(l.began), time.Until(l.retry), l.outdated)
		}
		// The next listing is of the new stream. Departed parents of the old one do not count.
		parent := lease.Key{Stream: "s", Shard: "p"}
		s.gone[parent] = true
		if err := s.take(result{stream: "s", Listing: Listing{Born: 9, Shards: l.latest.Shards}, began: time.Now().Add(time.Second)}, cfg); err != nil {
			t.Fatal(err)
		}
		if got := s.actions(view, lease.Facts{}, cfg); s.gone[parent] || l.outdated != 0 || slices.ContainsFunc(got, func(a lease.Action) bool { return a.Kind != lease.Create }) {
			t.Errorf("with the new listing it does %v, gone %v", got, s.gone)
		}
	})
}
