package group

import (
	"testing"

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
