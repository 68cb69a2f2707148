package guide

import (
	"context"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/kinesis"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/kinesistest"
	"github.com/weir-go/weir/lease"
	"github.com/weir-go/weir/producer"
	"github.com/weir-go/weir/store/memstore"
)

// numberedProducer returns a producer whose records have numbers.
func numberedProducer(client *kinesis.Client) (*producer.Producer, error) {
	return producer.New(client, producer.Options{Stream: "orders", Numbered: true})
}

// droppingWorker returns a worker that drops repeats.
func droppingWorker(client *kinesis.Client, store lease.Store) (*weir.Consumer, error) {
	return weir.New(client, store, weir.Options{
		Streams: []string{"orders"}, App: "billing",
		DropRepeats: true, Aggregates: weir.UnpackOwn,
	})
}

// A record whose answer was lost is in the stream twice, and is handled once.
func TestDroppingRepeats(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		before := slog.Default()
		slog.SetDefault(slog.New(slog.DiscardHandler))
		defer slog.SetDefault(before)
		srv := kinesistest.NewServer(t, kinesistest.Config{InMemory: true})
		srv.CreateStream("orders", 1)
		srv.Control("PutRecords", func(c *kinesistest.Call) kinesistest.Fault {
			return kinesistest.Fault{LoseAnswer: c.N == 1}
		})
		p, err := numberedProducer(srv.Client())
		if err != nil {
			t.Fatal(err)
		}
		pending, err := p.Put(t.Context(), producer.Record{PartitionKey: "customer-7", Data: []byte("one espresso")})
		if err != nil {
			t.Fatal(err)
		}
		if err := p.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		if r, err := pending.Wait(t.Context()); err != nil || !r.Repeated || r.Unnumbered || len(srv.Records("orders")) != 2 {
			t.Fatalf("%+v, %v, %d in the stream", r, err, len(srv.Records("orders")))
		}
		c, err := droppingWorker(srv.Client(), memstore.New())
		if err != nil {
			t.Fatal(err)
		}
		handled := 0
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		err = c.Run(ctx, weir.HandlerFunc(func(_ context.Context, b *weir.Batch) error {
			handled += len(b.Records)
			return nil
		}))
		if n := c.Counts(); err != nil || handled != 1 || n.RepeatsDropped != 1 {
			t.Errorf("%d handled, %d dropped, %v", handled, n.RepeatsDropped, err)
		}
	})
}
