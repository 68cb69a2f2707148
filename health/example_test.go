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

// The verdict names the cause of a lag, and what to do about it.
func ExampleConclude() {
	rated := health.Shard{ // usually the result of Evaluate
		State: health.FallingBehind, Reason: health.LagGrows, Detail: "by 1 min in 3 min",
		ReadLag: health.Unknown, HandledLag: 5 * time.Minute, SavedLag: health.Unknown,
		Left: 23 * time.Hour, Caught: health.Unknown,
	}
	verdict := health.Conclude(health.Facts{
		App: "billing", Now: time.Now(), Workers: 1,
		Shards: []health.ShardFacts{{
			Named:  health.Named{Stream: "orders", Name: "shardId-000000000000", Shard: rated},
			Load:   -1,
			Recent: health.Recent{Minutes: 5, Busy: 97},
		}},
	})
	fmt.Println(verdict.Cause.Label())
	fmt.Print(verdict.Text(80))
	// Output:
	// handler_busy
	// falling behind: shardId-000000000000 of orders, 5 min behind, its lag grew by 1
	//   min in 3 min, since unknown.
	// Cause: the handler is busy. The handler was busy 97 % of the last 5 min.
	// Outlook: Unhandled records leave the stream in about 23 h 0 min.
	// Next steps:
	//   1. Handle the partition keys of each shard in parallel with
	//      Options.Concurrency.Keys (weir consume --parallel=16).
	//   2. Make the handler faster.
}

// A program lists all causes, for example to count them.
func ExampleCauses() {
	for _, c := range health.Causes()[:2] {
		fmt.Println(c.Label(), "-", c)
	}
	// Output:
	// store_silent - the store does not answer
	// no_worker - no worker is alive
}
