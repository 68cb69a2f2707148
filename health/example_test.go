package health_test

import (
	"fmt"
	"slices"
	"time"

	"github.com/weir-go/weir/health"
)

// A shard is rated from observations. The application has the state of its worst shard.
func ExampleEvaluate() {
	now := time.Date(2026, time.January, 1, 12, 0, 0, 0, time.UTC)
	seen := []health.Observation{{At: now, Owner: "w1", Retention: 24 * time.Hour}}
	idle := []health.Observation{{At: now, Retention: 24 * time.Hour, HandledLag: time.Hour, SavedLag: time.Hour, ReadLag: time.Hour}}

	shards := []health.Named{
		{Stream: "orders", Name: "shardId-000000000000", Shard: health.Evaluate(seen, now, health.Options{})},
		{Stream: "orders", Name: "shardId-000000000001", Shard: health.Evaluate(idle, now, health.Options{})},
	}
	slices.SortFunc(shards, health.Compare) // the worst first
	for _, s := range shards {
		fmt.Println(s.Name, s.State)
	}
	fmt.Println(health.Sum(shards).State)
	// Output:
	// shardId-000000000001 unread
	// shardId-000000000000 ok
	// unread
}

// A program lists all states, for example as labels of a metric.
func ExampleStates() {
	for _, s := range health.States()[:2] { // the best first
		fmt.Println(s)
	}
	// Output:
	// ok
	// idle
}
