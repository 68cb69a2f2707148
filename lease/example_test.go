package lease_test

import (
	"fmt"
	"time"

	"github.com/weir-go/weir/lease"
	"github.com/weir-go/weir/shard"
)

// A second worker joins a worker that reads four shards. Two of the shards are handed on. Shard 5
// has a parent that is not finished, so it must wait.
func ExamplePlan() {
	var v lease.View
	for _, id := range []string{"1", "2", "3", "4"} {
		v.Leases = append(v.Leases, lease.Lease{
			Key: lease.Key{Stream: "orders", Shard: id}, Epoch: 7, Owner: "ann", Last: "ann", Position: shard.Oldest,
		})
	}
	v.Leases = append(v.Leases, lease.Lease{
		Key: lease.Key{Stream: "orders", Shard: "5"}, Parents: []string{"2"}, Epoch: 1, Position: shard.Oldest,
	})
	v.Workers = []lease.Worker{{Session: "ann", Heartbeats: 120}, {Session: "bea", Heartbeats: 1}}

	for _, action := range lease.Plan(v, lease.Facts{}, lease.Limits{}) {
		fmt.Println(action)
	}
	// Output:
	// handoff orders/1 epoch=7 to bea
	// handoff orders/3 epoch=7 to bea
}

// A worker reports a throughput together with its class, which plans use.
func ExampleMeasured() {
	rate, load := lease.Measured(40_243.7)
	l := lease.Lease{Rate: rate, Load: load}
	fmt.Println(l.Throughput())
	l.Load = lease.LoadOf(1 << 20) // by an older worker, which keeps the rate
	fmt.Println(l.Throughput())
	// Output:
	// 40243 true
	// 1.048576e+06 false
}

// The note of a pause is for people.
func ExampleParsePauseNote() {
	text := lease.PauseNote{By: "ada@laptop", At: time.UnixMilli(1767323045006)}.String()
	note := lease.ParsePauseNote(text)
	fmt.Println(note.By, note.At.UTC())
	// Output: ada@laptop 2026-01-02 03:04:05.006 +0000 UTC
}
