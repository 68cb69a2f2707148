package event_test

import (
	"context"
	"fmt"

	"github.com/weir-go/weir/event"
)

// Join lets metrics and a function of the program get the same events, as Options.OnEvent.
func ExampleJoin() {
	count := 0
	metrics := func(context.Context, event.Event) { count++ }
	onEvent := event.Join(metrics, func(_ context.Context, e event.Event) {
		switch e := e.(type) {
		case event.LeaseTaken:
			fmt.Println("reading", e.Shard)
		case event.LeaseEnded:
			fmt.Println("not reading", e.Shard, "any more:", e.Reason)
		}
	})

	onEvent(context.Background(), event.LeaseTaken{Stream: "orders", Shard: "shard-1"})
	onEvent(context.Background(), event.Read{Stream: "orders", Shard: "shard-1", Records: 5})
	fmt.Println(count, "events")
	// Output:
	// reading shard-1
	// 2 events
}

// On selects the events of one type.
func ExampleOn() {
	onEvent := event.On(func(_ context.Context, e event.DeadLettered) {
		fmt.Println(e.Records, "dead letter:", e.Reason)
	})

	onEvent(context.Background(), event.Read{Records: 5})
	onEvent(context.Background(), event.DeadLettered{Records: 1, Reason: "rejected"})
	// Output: 1 dead letter: rejected
}
