package weir_test

import (
	"context"
	"fmt"
	"log"
	"testing"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/kinesistest"
	"github.com/weir-go/weir/store/memstore"
)

// A worker without AWS: an embedded Kinesis, and leases in memory.
func ExampleConsumer_Run() {
	srv := kinesistest.NewServer(example{})
	defer srv.Close()
	srv.CreateStream("orders", 2)
	srv.Put("orders", "customer-7", []byte("one espresso"))

	c, err := weir.New(srv.Client(), memstore.New(), weir.Options{Stream: "orders", App: "billing", Logger: quiet})
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

// Reading a stream without an application, from the beginning to where its tip is now.
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

// A handler that saves its progress in the middle of a batch, after each record that was expensive.
func ExampleBatch_Checkpoint() {
	_ = weir.HandlerFunc(func(ctx context.Context, b *weir.Batch) error {
		for _, r := range b.Records {
			if err := charge(ctx, r.Data); err != nil {
				return err // the records after the last checkpoint are handled again
			}
			if err := b.Checkpoint(ctx, r); err != nil {
				return err
			}
		}
		return nil
	})
}

func charge(context.Context, []byte) error { return nil }

// example stands for the *testing.T that a test would give.
type example struct{ testing.TB }

func (example) Helper()                      {}
func (example) Cleanup(func())               {}
func (example) Fatalf(f string, args ...any) { log.Fatalf(f, args...) }
func (example) Fatal(args ...any)            { log.Fatal(args...) }
