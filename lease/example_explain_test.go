package lease_test

import (
	"fmt"

	"github.com/weir-go/weir/lease"
	"github.com/weir-go/weir/shard"
)

// One worker is alive, and one lease has no owner. Explain returns a sentence about the assignment.
func ExampleExplain() {
	v := lease.View{
		Leases:  []lease.Lease{{Key: lease.Key{Stream: "orders", Shard: "1"}, Epoch: 1, Position: shard.Oldest}},
		Workers: []lease.Worker{{Session: "ann", Heartbeats: 1}},
	}
	for _, sentence := range lease.Explain(v, lease.Facts{}, lease.Limits{}) {
		fmt.Println(sentence)
	}
	// Output: give orders/1 to ann: no other worker is further below its share (it has 0 of 1)
}
