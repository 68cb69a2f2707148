package queue_test

import (
	"context"
	"errors"
	"fmt"
	"log"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/deadletter"
	"github.com/weir-go/weir/kinesistest"
	"github.com/weir-go/weir/queue"
)

// start starts a Kinesis with a queue in this process. A program uses config.LoadDefaultConfig
// instead.
func start() (srv *kinesistest.Server, cfg aws.Config) {
	srv, err := kinesistest.Start(kinesistest.Config{})
	if err != nil {
		log.Fatal(err)
	}
	srv.CreateOnDemandStream("shop")
	srv.CreateQueue(kinesistest.Queue{Stream: "shop", Name: "orders"})
	return srv, srv.AWSConfig()
}

// A consumer handles the records of a queue until its context ends.
func ExampleNew() {
	srv, cfg := start()
	defer srv.Close()
	srv.Put("shop", "customer-7", []byte("two teas"))

	c, err := queue.New(cfg, queue.Options{Queue: "orders"})
	if err != nil {
		log.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	err = c.Run(ctx, queue.RecordFunc(func(_ context.Context, r queue.Record) error {
		fmt.Printf("%s ordered %s\n", r.PartitionKey, r.Data)
		stop()
		return nil
	}))
	fmt.Println(err, c.Counts().Acknowledged)
	// Output:
	// customer-7 ordered two teas
	// <nil> 1
}

// A handler of batches says which records failed. The others are acknowledged.
func ExampleFailed() {
	handle := queue.BatchFunc(func(_ context.Context, records []queue.Record) error {
		var failed error
		for _, r := range records {
			if len(r.Data) == 0 {
				failed = errors.Join(failed, queue.Failed(r, weir.Reject(errors.New("the order is empty"))))
			}
		}
		return failed
	})
	fmt.Println(handle(context.Background(), []queue.Record{{ID: "1", Data: []byte("tea")}, {ID: "2"}}))
	// Output: the order is empty
}

// A handler that passes records on to another one finds out which of them failed.
func ExampleFailedRecords() {
	records := []queue.Record{{ID: "1"}, {ID: "2"}}
	err := queue.Failed(records[1], errors.New("out of tea"))
	for _, r := range queue.FailedRecords(err, records) {
		fmt.Println(r.Key(), "failed:", err)
	}
	// Output: 2 failed: out of tea
}

// A program adds its own events to those of a package that measures.
func ExampleJoinEvents() {
	measured := queue.Events{SetAside: func(context.Context, queue.SetAside) { fmt.Println("counted") }}
	own := queue.Events{SetAside: func(_ context.Context, e queue.SetAside) { fmt.Println(e.Record, "was set aside") }}
	queue.JoinEvents(measured, own).SetAside(context.Background(), queue.SetAside{Record: "r1"})
	// Output:
	// counted
	// r1 was set aside
}

// A client makes single calls. Here it creates a queue that begins with the oldest record.
func ExampleNewClient() {
	srv, cfg := start()
	defer srv.Close()

	c, err := queue.NewClient(cfg)
	if err != nil {
		log.Fatal(err)
	}
	d, err := c.CreateQueue(context.Background(), queue.CreateInput{
		Name: "invoices", StreamARN: srv.StreamARN("shop"), Start: queue.Start{Type: "TRIM_HORIZON"},
		Attributes: queue.Attributes{DeadLetters: "BUILT_IN", MaxReceiveCount: 50},
	})
	fmt.Println(d.Name, d.Attributes.MaxReceiveCount, err)
	// Output: invoices 50 <nil>
}

// A program passes dead letters to its handler again.
func ExampleFromLetter() {
	letter := deadletter.Letter{
		Stream: "arn:aws:kinesis:eu-west-1:111122223333:queue/q-1", Shard: deadletter.QueueShard, Position: "r1+2", Data: []byte("two teas"),
	}
	handle := func(_ context.Context, r queue.Record) error {
		fmt.Printf("%s: %s\n", r.Key(), r.Data)
		return nil
	}
	// deadletter.Retry calls a function like this one with the items of a box, and marks them.
	again := func(ctx context.Context, i deadletter.Item) error {
		r, ok := queue.FromLetter(&i.Letter)
		if !ok {
			return errors.New("the dead letter is not about a record of a queue")
		}
		return handle(ctx, r)
	}
	fmt.Println(again(context.Background(), deadletter.Item{Letter: letter}))
	// Output:
	// r1+2: two teas
	// <nil>
}
