package producer_test

import (
	"context"
	"fmt"
	"log"

	"github.com/weir-go/weir/kinesistest"
	"github.com/weir-go/weir/producer"
)

// A producer packs records into aggregates. Close waits until all records are in the stream.
func ExampleNew() {
	srv, err := kinesistest.Start(kinesistest.Config{})
	if err != nil {
		log.Fatal(err)
	}
	defer srv.Close()
	srv.CreateStream("orders", 1)

	p, err := producer.New(srv.Client(), producer.Options{Stream: "orders"})
	if err != nil {
		log.Fatal(err)
	}
	ctx := context.Background()
	for _, order := range []string{"two teas", "a croissant"} {
		if _, err := p.Put(ctx, producer.Record{PartitionKey: "customer-7", Data: []byte(order)}); err != nil {
			log.Fatal(err)
		}
	}
	if err := p.Close(ctx); err != nil {
		log.Fatal(err)
	}
	fmt.Println(len(srv.Records("orders")), "aggregate")
	// Output: 1 aggregate
}
