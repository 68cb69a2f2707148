package weir_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"testing"
	"time"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/event"
	"github.com/weir-go/weir/kinesistest"
	"github.com/weir-go/weir/shard"
	"github.com/weir-go/weir/store/memstore"
)

// A worker runs without AWS: Kinesis is embedded, and the leases are in memory.
func ExampleConsumer_Run() {
	srv := kinesistest.NewServer(example{})
	defer srv.Close()
	srv.CreateStream("orders", 2)
	srv.Put("orders", "customer-7", []byte("one espresso"))

	c, err := weir.New(srv.Client(), memstore.New(), weir.Options{Streams: []string{"orders"}, App: "billing", Logger: quiet})
	if err != nil {
		log.Fatal(err)
	}
	err = c.Run(context.Background(), weir.HandlerFunc(func(_ context.Context, b *weir.Batch) error {
		for _, r := range b.Records {
			fmt.Printf("%s: %s\n", r.PartitionKey, r.Data)
		}
		return weir.Stop(nil) // a real handler returns nil
	}))
	if err != nil {
		log.Fatal(err)
	}
	// Output: customer-7: one espresso
}

// A Reader reads a stream without an application, from the beginning to its current tip.
func ExampleReader_Records() {
	srv := kinesistest.NewServer(example{})
	defer srv.Close()
	srv.CreateStream("orders", 2)
	srv.Put("orders", "customer-7", []byte("one espresso"))
	srv.Put("orders", "customer-7", []byte("one more"))

	r, err := weir.NewReader(srv.Client(), weir.ReaderOptions{Stream: "orders", UntilTip: true})
	if err != nil {
		log.Fatal(err)
	}
	for rec, err := range r.Records(context.Background()) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Printf("%s: %s\n", rec.PartitionKey, rec.Data)
	}
	// Output:
	// customer-7: one espresso
	// customer-7: one more
}

// A handler saves its progress in the middle of a batch, after each expensive record.
func ExampleBatch_Checkpoint() {
	srv := kinesistest.NewServer(example{})
	defer srv.Close()
	srv.CreateStream("orders", 1)
	srv.Put("orders", "customer-7", []byte("one espresso"))

	c, err := weir.New(srv.Client(), memstore.New(), weir.Options{Streams: []string{"orders"}, App: "billing", Logger: quiet})
	if err != nil {
		log.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	err = c.Run(ctx, weir.HandlerFunc(func(ctx context.Context, b *weir.Batch) error {
		for _, r := range b.Records {
			if err := charge(ctx, r.Data); err != nil {
				return err // the records after the last checkpoint are handled again
			}
			if err := b.Checkpoint(ctx, r); err != nil {
				return err
			}
			fmt.Printf("charged: %s\n", r.Data)
		}
		stop()
		return nil
	}))
	if err != nil {
		log.Fatal(err)
	}
	// Output: charged: one espresso
}

// A function handles one record at a time. A record is done when the function returns nil, and is
// tried again after an error.
func ExampleRecordFunc() {
	srv := kinesistest.NewServer(example{})
	defer srv.Close()
	srv.CreateStream("orders", 1)
	srv.Put("orders", "customer-7", []byte("one espresso"))
	srv.Put("orders", "customer-7", []byte("a croissant"))

	c, err := weir.New(srv.Client(), memstore.New(), weir.Options{Streams: []string{"orders"}, App: "billing", Retry: weir.Retry{MinBackoff: time.Millisecond}, Logger: quiet})
	if err != nil {
		log.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	tries := 0
	err = c.Run(ctx, weir.RecordFunc(func(_ context.Context, r weir.Record) error {
		if tries++; tries == 2 {
			return errors.New("the till is busy")
		}
		fmt.Printf("try %d: %s\n", tries, r.Data)
		if tries == 3 {
			stop()
		}
		return nil
	}))
	if err != nil {
		log.Fatal(err)
	}
	// Output:
	// try 1: one espresso
	// try 3: a croissant
}

// A sink stores its position. Reading begins there, and not at the checkpoint.
func ExampleConsumer_RunShards() {
	srv := kinesistest.NewServer(example{})
	defer srv.Close()
	srv.CreateStream("orders", 1)
	for _, order := range []string{"one espresso", "a croissant", "two teas"} {
		srv.Put("orders", "customer-7", []byte(order))
	}
	// The position that a database would store in the transaction of the effect.
	applied, _ := shard.After(srv.Records("orders")[0].SequenceNumber)

	c, err := weir.New(srv.Client(), memstore.New(), weir.Options{Streams: []string{"orders"}, App: "billing", Logger: quiet})
	if err != nil {
		log.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	err = c.RunShards(ctx, weir.ShardHandlers{
		Position: func(context.Context, string, string) (weir.Position, error) { return applied, nil },
		Open: func(context.Context, weir.Term) (weir.ShardHandler, error) {
			return &till{stop: stop}, nil
		},
	})
	if err != nil {
		log.Fatal(err)
	}
	// Output:
	// a croissant
	// two teas
	// closed: stopped
}

// till handles one shard.
type till struct{ stop func() }

func (t *till) Handle(_ context.Context, b *weir.Batch) error {
	for _, r := range b.Records {
		fmt.Printf("%s\n", r.Data)
	}
	t.stop()
	return nil
}

func (*till) Close(_ context.Context, why event.EndReason) { fmt.Println("closed:", why) }

// A function with its own loop pulls the batches of a shard, and marks the records that are done.
func ExampleConsumer_RunPull() {
	srv := kinesistest.NewServer(example{})
	defer srv.Close()
	srv.CreateStream("orders", 1)
	srv.Put("orders", "customer-7", []byte("one espresso"))

	c, err := weir.New(srv.Client(), memstore.New(), weir.Options{Streams: []string{"orders"}, App: "billing", Logger: quiet})
	if err != nil {
		log.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	err = c.RunPull(ctx, weir.PullHandler{Pull: func(_ context.Context, p *weir.Puller) error {
		for b, err := range p.Batches() {
			if err != nil {
				return err // the term is over
			}
			for _, r := range b.Records {
				fmt.Printf("%s\n", r.Data)
				if err := b.Done(r); err != nil {
					return err
				}
			}
			stop()
		}
		return nil
	}})
	if err != nil {
		log.Fatal(err)
	}
	// Output: one espresso
}

func charge(context.Context, []byte) error { return nil }

// example takes the place of the *testing.T that a test would pass.
type example struct{ testing.TB }

func (example) Helper()                      {}
func (example) Cleanup(func())               {}
func (example) Fatalf(f string, args ...any) { log.Fatalf(f, args...) }
func (example) Fatal(args ...any)            { log.Fatal(args...) }
