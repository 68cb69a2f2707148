package lease_test

import (
	"testing"
	"time"

	"github.com/weir-go/weir/lease"
	"github.com/weir-go/weir/shard"
)

// A watch drops the loads of finished and deleted leases, even if the same number of new leases was
// created.
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
	if f = see(of("3"), of("4")); len(f.Cooling) != 1 || f.Cooling[key("4")] != 2 {
		t.Errorf("cooling are %v, of which one is no more", f.Cooling)
	}
}

// A lease that changes owner twice cools down from the second change on. A lease without load needs
// no memory for loads.
func TestAWatchCoolsFromTheLastMove(t *testing.T) {
	w := lease.NewWatch(lease.DefaultTimes, lease.Leader{})
	began := time.Unix(1000, 0)
	see := func(after time.Duration, first, second uint64) lease.Facts {
		now := began.Add(after)
		return w.See(lease.View{Leases: []lease.Lease{
			{Key: lease.Key{Stream: "s", Shard: "1"}, Epoch: first, Position: shard.Oldest, Load: 1},
			{Key: lease.Key{Stream: "s", Shard: "2"}, Epoch: second, Position: shard.Oldest},
		}}, now, now)
	}
	one, two := lease.Key{Stream: "s", Shard: "1"}, lease.Key{Stream: "s", Shard: "2"}
	see(0, 1, 1)
	if f := see(time.Minute, 2, 2); f.Cooling[one] != 2 || f.Cooling[two] != 2 || len(f.Recent) != 2 || len(f.Loads) != 1 {
		t.Errorf("after both moved: %+v", f)
	}
	if f := see(2*time.Minute, 3, 2); f.Cooling[one] != 3 || f.Cooling[two] != 2 || len(f.Recent) != 1 || f.Recent[one] != 3 {
		t.Errorf("after one moved again: %+v", f)
	}
	if f := see(4*time.Minute, 3, 2); f.Cooling[one] != 3 || len(f.Cooling) != 1 || len(f.Recent) != 0 {
		t.Errorf("when the other one has cooled down: %+v", f)
	}
	if f := see(5*time.Minute, 3, 2); len(f.Cooling) != 0 {
		t.Errorf("when both have: %+v", f)
	}
}
