package emfweir_test

import (
	"fmt"
	"log"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/emfweir"
	"github.com/weir-go/weir/kinesistest"
	"github.com/weir-go/weir/queue"
	"github.com/weir-go/weir/store/memstore"
)

// The metrics observe the consumer through its options, so they are created first. The method Run
// of the metrics then writes lines for CloudWatch.
func ExampleNew() {
	srv, err := kinesistest.Start(kinesistest.Config{})
	if err != nil {
		log.Fatal(err)
	}
	defer srv.Close()
	options := weir.Options{Streams: []string{"orders"}, App: "billing"}
	metrics, err := emfweir.New(&options, emfweir.Config{ByShard: true})
	if err != nil {
		log.Fatal(err)
	}
	consumer, err := weir.New(srv.Client(), memstore.New(), options)
	if err != nil {
		log.Fatal(err)
	}
	metrics.Watch(consumer)
	fmt.Println("watched")
	// Output: watched
}

// For a consumer of a queue, NewQueue takes the place of New.
func ExampleNewQueue() {
	srv, err := kinesistest.Start(kinesistest.Config{})
	if err != nil {
		log.Fatal(err)
	}
	defer srv.Close()
	cfg := srv.AWSConfig() // as config.LoadDefaultConfig returns it
	options := queue.Options{Queue: "orders", App: "billing"}
	metrics, err := emfweir.NewQueue(&options, emfweir.Config{Namespace: "shop"})
	if err != nil {
		log.Fatal(err)
	}
	consumer, err := queue.New(cfg, options)
	if err != nil {
		log.Fatal(err)
	}
	metrics.Watch(consumer)
	fmt.Println("watched")
	// Output: watched
}
