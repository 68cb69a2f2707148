package kinesisletters_test

import (
	"context"
	"fmt"
	"log"

	"github.com/weir-go/weir/deadletter"
	"github.com/weir-go/weir/deadletter/kinesisletters"
	"github.com/weir-go/weir/kinesistest"
)

// Dead letters become records of another stream.
func ExampleNew() {
	srv, err := kinesistest.Start(kinesistest.Config{})
	if err != nil {
		log.Fatal(err)
	}
	defer srv.Close()
	srv.CreateStream("orders-dead", 1)

	letters, err := kinesisletters.New(srv.Client(), "orders-dead")
	if err != nil {
		log.Fatal(err)
	}
	// A program passes letters as the Destination of weir.FailurePolicy, and does not call Put.
	l := deadletter.Letter{Version: deadletter.Version, ID: "billing/orders/shardId-000000000000/17", PartitionKey: "customer-7"}
	if err := letters.Put(context.Background(), []deadletter.Letter{l}); err != nil {
		log.Fatal(err)
	}
	fmt.Println(len(srv.Records("orders-dead")), "record")
	// Output: 1 record
}
