package weir_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/event"
	"github.com/weir-go/weir/kinesistest"
	"github.com/weir-go/weir/store/memstore"
)

// A record is put aside at its third attempt, and the shard continues after it.
func ExampleBatch_Done() {
	srv := kinesistest.NewServer(example{})
	defer srv.Close()
	srv.CreateStream("orders", 1)
	for _, order := range []string{"one espresso", "???", "two teas"} {
		srv.Put("orders", "customer-7", []byte(order))
	}

	c, err := weir.New(srv.Client(), memstore.New(), weir.Options{Streams: []string{"orders"}, App: "billing", Retry: weir.Retry{MinBackoff: time.Millisecond}, Logger: quiet})
	if err != nil {
		log.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	err = c.Run(ctx, weir.HandlerFunc(func(_ context.Context, b *weir.Batch) error {
		for i, r := range b.Records {
			if string(r.Data) == "???" {
				if i > 0 || b.Attempt < 3 { // Attempt is of the first record
					return errors.New("not an order")
				}
				fmt.Printf("put aside after %d attempts: %s\n", b.Attempt, r.Data)
			} else {
				fmt.Printf("served: %s\n", r.Data)
			}
			if err := b.Done(r); err != nil { // a failure later in the batch does not repeat it
				return err
			}
			if string(r.Data) == "two teas" {
				stop()
			}
		}
		return nil
	}))
	if err != nil {
		log.Fatal(err)
	}
	// Output:
	// served: one espresso
	// put aside after 3 attempts: ???
	// served: two teas
}

// A sink that gets a record twice recognizes the record by its ID.
func ExampleRecord_ID() {
	srv := kinesistest.NewServer(example{})
	defer srv.Close()
	srv.CreateStream("orders", 1)
	srv.Put("orders", "customer-7", []byte("one espresso"))

	table := map[string]string{} // for example rows whose primary key is the ID
	for range 2 {                // every record is read twice
		r, err := weir.NewReader(srv.Client(), weir.ReaderOptions{Stream: "orders", UntilTip: true})
		if err != nil {
			log.Fatal(err)
		}
		for rec, err := range r.Records(context.Background()) {
			if err != nil {
				log.Fatal(err)
			}
			table[rec.ID()] = string(rec.Data)
		}
	}
	fmt.Println(len(table), "row")
	// Output: 1 row
}

// OnEvent gets the events, and Counts has exact totals.
func ExampleConsumer_Counts() {
	srv := kinesistest.NewServer(example{})
	defer srv.Close()
	srv.CreateStream("orders", 1)
	srv.Put("orders", "customer-7", []byte("one espresso"))

	c, err := weir.New(srv.Client(), memstore.New(), weir.Options{
		Streams: []string{"orders"}, App: "billing", Logger: quiet,
		OnEvent: func(_ context.Context, e event.Event) {
			switch e := e.(type) {
			case event.LeaseTaken:
				fmt.Println("taken:", e.Shard)
			case event.LeaseEnded:
				fmt.Println("ended:", e.Shard, e.Reason)
			}
		},
	})
	if err != nil {
		log.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	err = c.Run(ctx, weir.HandlerFunc(func(context.Context, *weir.Batch) error {
		stop()
		return nil
	}))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("handled:", c.Counts().RecordsHandled)
	// Output:
	// taken: shardId-000000000000
	// ended: shardId-000000000000 stopped
	// handled: 1
}
