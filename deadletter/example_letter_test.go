package deadletter_test

import (
	"encoding/json"
	"fmt"
	"log"

	"github.com/weir-go/weir/deadletter"
)

// A program reads dead letters from a queue, and recognizes repetitions by their IDs.
func ExampleParse() {
	text, err := json.Marshal(deadletter.Letter{
		Version: deadletter.Version,
		ID:      deadletter.ID("billing", "orders/shardId-000000000000/17"),
		Data:    []byte("two teas"),
	})
	if err != nil {
		log.Fatal(err)
	}

	l, err := deadletter.Parse(text)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%s: %s\n", l.ID, l.Data)
	// Output: billing/orders/shardId-000000000000/17: two teas
}
