package weir_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/filter"
	"github.com/weir-go/weir/kinesistest"
	"github.com/weir-go/weir/store/memstore"
)

// The options of a worker that starts a day back, reads rarely, and handles up to 50 keys of a
// shard at the same time.
func ExampleOptions() {
	srv := kinesistest.NewServer(example{})
	defer srv.Close()
	c, err := weir.New(srv.Client(), memstore.New(), weir.Options{
		Streams: []string{"orders"},
		App:     "billing",
		Start:   weir.At(time.Now().Add(-24 * time.Hour)),
		Polling: weir.Polling{IdleInterval: 5 * time.Second},
		Batching: weir.Batching{
			MaxRecords: 500,
			MaxBytes:   1 << 20,
		},
		Concurrency: weir.Concurrency{Keys: 50},
		Timing: weir.Timing{
			HandlerTimeout: time.Minute,
			FailoverAfter:  10 * time.Second,
		},
	})
	fmt.Println(c != nil, err)
	// Output: true <nil>
}

// The error of a handler can name the record at which it failed, or which it rejects.
func ExampleFailedRecord() {
	r := weir.Record{SequenceNumber: "17"}
	for _, err := range []error{
		weir.FailedAt(r, errors.New("not in stock")),
		weir.RejectAt(r, errors.New("not an order")),            // dead-lettered without a retry
		weir.RejectOld(r, 1, errors.New("the shop has closed")), // dead-lettered without an attempt
		errors.New("no database"),                               // concerns the whole batch
	} {
		failed, named := weir.FailedRecord(err)
		fmt.Println(failed.SequenceNumber, named, weir.RejectedOld(err))
	}
	// Output:
	// 17 true 0
	// 17 true 0
	// 17 true 1
	//  false 0
}

// A worker handles the records that a filter selects, and drops the others.
func ExampleFilter() {
	large, err := filter.Compile(`{"data": {"cents": [{"numeric": [">", 1000]}]}}`)
	if err != nil {
		log.Fatal(err)
	}
	options := weir.Options{Streams: []string{"orders"}, App: "billing", Filter: weir.Filter{By: large, NotJSON: weir.DropNotJSON}}
	fmt.Println(options.Filter.By != nil)
	// Output: true
}

// The service pushes records to a fan-out consumer that is deregistered when no worker runs, so
// that it costs nothing.
func ExampleFanOut() {
	srv := kinesistest.NewServer(example{})
	defer srv.Close()
	srv.CreateStream("orders", 1)
	srv.Put("orders", "customer-7", []byte("two teas"))

	c, err := weir.New(srv.Client(), memstore.New(), weir.Options{
		Streams: []string{"orders"}, App: "billing", Logger: quiet,
		FanOut: weir.FanOut{Mode: weir.FanOutTemporary},
	})
	if err != nil {
		log.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	err = c.Run(ctx, weir.RecordFunc(func(_ context.Context, r weir.Record) error {
		fmt.Printf("served: %s\n", r.Data)
		stop()
		return nil
	}))
	if err != nil {
		log.Fatal(err)
	}
	// Output: served: two teas
}
