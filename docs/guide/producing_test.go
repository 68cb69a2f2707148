package guide

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/kinesis"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/kinesistest"
	"github.com/weir-go/weir/producer"
	"github.com/weir-go/weir/store/memstore"
	"github.com/weir-go/weir/weirtest"
)

type purchase struct {
	customer string
	data     []byte
}

// publish puts purchases and returns when all of them are stored.
func publish(ctx context.Context, client *kinesis.Client, purchases []purchase) error {
	p, err := producer.New(client, producer.Options{Stream: "orders"})
	if err != nil {
		return err
	}
	var all []*producer.Pending
	for _, o := range purchases {
		pending, err := p.Put(ctx, producer.Record{PartitionKey: o.customer, Data: o.data})
		if err != nil {
			return errors.Join(err, p.Close(ctx))
		}
		all = append(all, pending)
	}
	err = p.Close(ctx) // sends what is left, and waits for the answers
	for _, pending := range all {
		_, failed := pending.Wait(ctx)
		err = errors.Join(err, failed)
	}
	return err
}

// forward puts a record, and deletes it from the outbox when it is stored.
func forward(ctx context.Context, p *producer.Producer, id int, o purchase, outbox func(id int)) error {
	_, err := p.Put(ctx, producer.Record{PartitionKey: o.customer, Data: o.data, Done: func(r producer.Result, err error) {
		if err != nil {
			slog.Error("an order was not published", "order", id, "err", err)
			return // it stays in the outbox
		}
		outbox(id)
	}})
	return err
}

// sample drops a record if the buffer is full.
func sample(p *producer.Producer, key string, data []byte) (kept bool) {
	_, err := p.TryPut(producer.Record{PartitionKey: key, Data: data})
	return !errors.Is(err, producer.ErrFull)
}

// explain describes the outcome of a failed record.
func explain(err error) string {
	var failed *producer.Error
	switch {
	case !errors.As(err, &failed):
		return "it was not accepted"
	case failed.MaybeStored:
		return "it may be in the stream"
	default:
		return fmt.Sprintf("it is not in the stream: %s after %d attempts", failed.Code, failed.Attempts)
	}
}

// A consumer receives the records of the page's code in order.
func TestPurchasesArePublished(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := shop(t, 2)
		var purchases []purchase
		var want []string
		for i := range 20 {
			purchases = append(purchases, purchase{"customer-7", fmt.Append(nil, i)})
			want = append(want, fmt.Sprint(i))
		}
		if err := publish(t.Context(), srv.Client(), purchases); err != nil {
			t.Fatal(err)
		}

		p, err := producer.New(srv.Client(), producer.Options{Stream: "orders", Logger: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		var done []int
		for i, o := range purchases[:5] {
			if err := forward(t.Context(), p, i, o, func(id int) { done = append(done, id) }); err != nil {
				t.Fatal(err)
			}
		}
		if !sample(p, "k", []byte("sampled")) {
			t.Error("there was no room")
		}
		if err := p.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(done, []int{0, 1, 2, 3, 4}) {
			t.Errorf("the outbox let go of %v", done)
		}

		// If a call is refused, the error of each of its records contains the reason.
		srv.Control("PutRecords", func(*kinesistest.Call) kinesistest.Fault {
			return kinesistest.Fault{Err: &kinesistest.Error{Code: "AccessDeniedException"}}
		})
		pending, err := p.Put(t.Context(), producer.Record{PartitionKey: "k"})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := pending.Wait(t.Context()); explain(err) != "it is not in the stream: AccessDeniedException after 1 attempts" {
			t.Errorf("%s: %v", explain(err), err)
		}
		if _, err := p.Put(t.Context(), producer.Record{}); explain(err) != "it was not accepted" {
			t.Errorf("%v", err)
		}
		if err := p.Close(t.Context()); err != nil {
			t.Error(err)
		}

		var got []string
		worker := weirtest.Start(t, srv.Client(), memstore.New(), weir.Options{Streams: []string{"orders"}, App: "audit"}, weir.RecordFunc(func(_ context.Context, r weir.Record) error {
			if r.PartitionKey == "customer-7" {
				got = append(got, string(r.Data))
			}
			return nil
		}))
		worker.Until(weirtest.AtTip(srv, "orders", worker))
		worker.Stop()
		if !slices.Equal(got, append(want, want[:5]...)) {
			t.Errorf("the consumer got %q", got)
		}
	})
}

// If Close reaches its deadline, its error contains the number of records that are left.
func TestClosingInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := shop(t, 1)
		srv.Control("PutRecords", func(*kinesistest.Call) kinesistest.Fault {
			return kinesistest.Fault{Err: &kinesistest.Error{Code: "InternalFailure"}}
		})
		p, err := producer.New(srv.Client(), producer.Options{Stream: "orders", Logger: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := p.Put(t.Context(), producer.Record{PartitionKey: "k", Data: []byte("x")}); err != nil {
			t.Fatal(err)
		}
		err = shutDown(p)
		var left *producer.RemainingError
		if !errors.As(err, &left) || left.Records != 1 {
			t.Errorf("Close returns %v", err)
		}
	})
}

// shutDown sends the remaining records for at most 20 seconds.
func shutDown(p *producer.Producer) error {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	return p.Close(ctx) // a *producer.RemainingError says how many records are left
}
