package weir_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/deadletter"
	"github.com/weir-go/weir/kinesistest"
	"github.com/weir-go/weir/store/memstore"
)

// One order can never be served, and is dead-lettered at once. Another order is dead-lettered after
// three failed attempts.
func ExampleFailurePolicy() {
	srv := kinesistest.NewServer(example{})
	defer srv.Close()
	srv.CreateStream("orders", 1)
	for _, order := range []string{"one espresso", "???", "a moon", "two teas"} {
		srv.Put("orders", "customer-7", []byte(order))
	}

	c, err := weir.New(srv.Client(), memstore.New(), weir.Options{
		Streams: []string{"orders"}, App: "billing", Logger: quiet, Retry: weir.Retry{MinBackoff: time.Millisecond},
		OnFailure: weir.FailurePolicy{
			MaxAttempts: 3,
			OutageGrace: -1, // so that the example does not wait for other records
			Destination: deadletter.Func(func(_ context.Context, letters []deadletter.Letter) error { // better: deadletter.File
				for _, l := range letters {
					fmt.Printf("given up: %s (%s, %d attempts: %s)\n", l.Data, l.Reason, l.Attempts, l.Error)
				}
				return nil
			}),
		},
	})
	if err != nil {
		log.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	err = c.Run(ctx, weir.RecordFunc(func(_ context.Context, r weir.Record) error {
		switch order := string(r.Data); order {
		case "???":
			return weir.Reject(errors.New("not an order"))
		case "a moon":
			return errors.New("not in stock")
		case "two teas":
			stop()
			fallthrough
		default:
			fmt.Println("served:", order)
			return nil
		}
	}))
	if err != nil {
		log.Fatal(err)
	}
	// Output:
	// served: one espresso
	// given up: ??? (rejected, 1 attempts: not an order)
	// given up: a moon (attempts, 3 attempts: not in stock)
	// served: two teas
}

// A batch handler returns the record at which it failed. The records before it are done.
func ExampleFailedAt() {
	handler := weir.HandlerFunc(func(ctx context.Context, b *weir.Batch) error {
		for _, r := range b.Records {
			if err := serve(ctx, r); err != nil {
				return weir.FailedAt(r, err)
			}
		}
		return nil
	})

	// weir calls the handler like this.
	batch := &weir.Batch{Records: []weir.Record{{Data: []byte("two teas")}, {Data: []byte("a moon")}}}
	failed, named := weir.FailedRecord(handler.Handle(context.Background(), batch))
	fmt.Printf("%s %v\n", failed.Data, named)
	// Output: a moon true
}

// A record that can never succeed is dead-lettered at its first failure.
func ExampleRejectAt() {
	handler := weir.HandlerFunc(func(ctx context.Context, b *weir.Batch) error {
		for _, r := range b.Records {
			if !json.Valid(r.Data) {
				return weir.RejectAt(r, errors.New("the record is not JSON"))
			}
		}
		return nil
	})

	// weir calls the handler like this.
	batch := &weir.Batch{Records: []weir.Record{{Data: []byte("{}")}, {Data: []byte("a moon")}}}
	err := handler.Handle(context.Background(), batch)
	failed, named := weir.FailedRecord(err)
	fmt.Printf("%s %v: %v\n", failed.Data, named, err)
	// Output: a moon true: the record is not JSON
}

func serve(_ context.Context, r weir.Record) error {
	if string(r.Data) == "a moon" {
		return errors.New("not in stock")
	}
	return nil
}
