package lease_test

import (
	"testing"
	"time"

	"github.com/weir-go/weir/lease"
	"github.com/weir-go/weir/shard"
)

// A watch keeps no loads of leases that are finished or no more, also when as many others came meanwhile.
func TestAWatchForgetsLeases(t *testing.T) {
	key := func(id string) lease.Key { return lease.Key{Stream: "s", Shard: id} }
	of := func(id string) lease.Lease {
		return lease.Lease{Key: key(id), Epoch: 2, Load: 9, Position: shard.Oldest}
	}
	done := of("2")
	done.Position = shard.End
	w := lease.NewWatch(lease.DefaultTimes, lease.Leader{})
	now := time.Unix(1000, 0)
	see := func(leases ...lease.Lease) lease.Facts {
		now = now.Add(time.Second)
		return w.See(lease.View{Leases: leases}, now, now)
	}
	if f := see(of("1"), of("2"), of("3")); len(f.Loads) != 3 || len(f.Cooling) != 0 {
		t.Fatalf("at first %v, %v", f.Loads, f.Cooling)
	}
	f := see(done, of("3"), of("4"))
	if len(f.Loads) != 2 || f.Loads[key("3")] == 0 || f.Loads[key("4")] == 0 {
		t.Errorf("loads of %v", f.Loads)
	}
	if f = see(of("1"), of("3"), of("4")); f.Cooling[key("1")] != 2 {
		t.Errorf("one that is back is not among those that moved: %v", f.Cooling)
	}
}
