package shard_test

import (
	"fmt"
	"log"
	"time"

	"github.com/weir-go/weir/shard"
)

// A child is read when its parent is done.
func ExampleNewGraph() {
	g := shard.NewGraph([]shard.Shard{
		{ID: "shardId-000000000000"},
		{ID: "shardId-000000000001", Parents: []string{"shardId-000000000000"}},
		{ID: "shardId-000000000002", Parents: []string{"shardId-000000000000"}},
	})
	done := map[string]bool{}
	isDone := func(id string) bool { return done[id] }
	fmt.Println(g.Ready(isDone))
	done["shardId-000000000000"] = true
	fmt.Println(g.Ready(isDone))
	// Output:
	// [shardId-000000000000]
	// [shardId-000000000001 shardId-000000000002]
}

// The hash of a partition key selects the shard.
func ExampleHashOf() {
	lower, err := shard.ParseHashRange("0", "170141183460469231731687303715884105727")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(lower.Contains(shard.HashOf("customer-7")))
	middle, err := shard.ParseHashKey("170141183460469231731687303715884105728")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(lower.Contains(middle))
	// Output:
	// true
	// false
}

// The upper half of the hash keys has no shard.
func ExampleHoles() {
	lower, err := shard.ParseHashRange("0", "170141183460469231731687303715884105727")
	if err != nil {
		log.Fatal(err)
	}
	for _, hole := range shard.Holes([]shard.HashRange{lower}) {
		fmt.Println(hole)
	}
	// Output: 170141183460469231731687303715884105728-340282366920938463463374607431768211455
}

// Sequence numbers are numbers without a fixed width, so text order is wrong for them.
func ExampleCompareSequence() {
	fmt.Println(shard.CompareSequence("9", "10"))
	// Output: -1
}

// Positions are ordered, and their text can be stored.
func ExampleParse() {
	before, err := shard.Before("17")
	if err != nil {
		log.Fatal(err)
	}
	part, err := shard.Part("17", 2) // two records of the aggregate 17 are done
	if err != nil {
		log.Fatal(err)
	}
	after, err := shard.After("17")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(before.Compare(part), part.Compare(after))
	for _, p := range []shard.Position{before, part, after, shard.At(time.Unix(0, 0))} {
		again, err := shard.Parse(p.String())
		fmt.Println(p, again == p, err)
	}
	// Output:
	// -1 -1
	// 17+0 true <nil>
	// 17+2 true <nil>
	// 17 true <nil>
	// 1970-01-01T00:00:00.000Z true <nil>
}

func ExamplePartition() {
	fmt.Println(shard.Partition("k9", 16), shard.Partition("k10", 16))
	// Output: 11 9
}
