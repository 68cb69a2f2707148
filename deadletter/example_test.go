package deadletter_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/weir-go/weir/deadletter"
)

// Retry passes dead letters to a function, and marks each dead letter before and after the call.
func ExampleRetry() {
	dir, err := os.MkdirTemp("", "letters")
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	box := deadletter.File(filepath.Join(dir, "orders.dead.ndjson"))
	ctx := context.Background()
	if err := box.Put(ctx, []deadletter.Letter{{Version: deadletter.Version, ID: "orders/shardId-000000000000/17", Data: []byte("two teas")}}); err != nil {
		log.Fatal(err)
	}

	kept := deadletter.Selection{States: []deadletter.State{deadletter.Kept}}
	var letters []deadletter.Item
	for letter, err := range box.Items(ctx) {
		if err != nil {
			log.Fatal(err)
		}
		if kept.Matches(&letter) {
			letters = append(letters, letter)
		}
	}
	outcome, err := deadletter.Retry(ctx, box, letters, func(_ context.Context, l deadletter.Item) error {
		fmt.Printf("served: %s\n", l.Data)
		return nil
	})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("done:", outcome.Done)
	// Output:
	// served: two teas
	// done: 1
}
