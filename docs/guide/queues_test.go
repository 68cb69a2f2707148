package guide

import (
	"context"
	"database/sql"
	"encoding/json"
	"log"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/deadletter"
	"github.com/weir-go/weir/filter"
	"github.com/weir-go/weir/kinesistest"
	"github.com/weir-go/weir/payload"
	"github.com/weir-go/weir/queue"
	"github.com/weir-go/weir/sink/sqlsink"
)

// createQueue creates a queue that begins with the oldest record of a stream.
func createQueue(ctx context.Context, cfg aws.Config, streamARN string) error {
	client, err := queue.NewClient(cfg)
	if err != nil {
		return err
	}
	_, err = client.CreateQueue(ctx, queue.CreateInput{
		Name: "orders", StreamARN: streamARN,
		Start:      queue.Start{Type: "TRIM_HORIZON"},
		Attributes: queue.Attributes{DeadLetters: "BUILT_IN", MaxReceiveCount: 50},
	})
	return err
}

// orderConsumer returns a consumer with dead letters in a file.
func orderConsumer(cfg aws.Config) (*queue.Consumer, error) {
	return queue.New(cfg, queue.Options{
		Queue:       "orders",
		Concurrency: 50,
		OnFailure:   queue.FailurePolicy{Destination: deadletter.File("dead.ndjson"), MaxAttempts: 10},
	})
}

// decodeOrder rejects records that are not JSON.
func decodeOrder(_ context.Context, r queue.Record) error {
	var order struct{ Customer string }
	if err := json.Unmarshal(r.Data, &order); err != nil {
		return weir.Reject(err)
	}
	return nil
}

// bookOnce books the orders of a queue.
func bookOnce(ctx context.Context, db *sql.DB, c *queue.Consumer) error {
	sink, err := sqlsink.NewQueue(db, sqlsink.QueueOptions{Dialect: sqlsink.Postgres, App: "billing"})
	if err != nil {
		return err
	}
	if err := sink.Migrate(ctx); err != nil { // creates the table of handled records
		return err
	}
	return c.Run(ctx, sink.Handler(bookQueued))
}

// bookQueued books the records that are not booked yet. It writes only through tx.
func bookQueued(ctx context.Context, tx *sql.Tx, records []queue.Record) error {
	for _, r := range records {
		var order struct{ ID string }
		if err := json.Unmarshal(r.Data, &order); err != nil {
			return queue.Failed(r, weir.Reject(err))
		}
		_, err := tx.ExecContext(ctx,
			`insert into bookings (id, customer) values ($1, $2)`, order.ID, r.PartitionKey)
		if err != nil {
			return err
		}
	}
	return nil
}

// compressedOrders returns a consumer of the orders in a queue, which a producer compresses.
func compressedOrders(cfg aws.Config) (*queue.Consumer, error) {
	orders := filter.MustCompile(`{"data": {"kind": ["order"]}}`)
	return queue.New(cfg, queue.Options{
		Queue:  "orders",
		Filter: weir.Filter{By: payload.Matching(orders, payload.Gzip{})},
	})
}

// bookCompressed decodes a record.
func bookCompressed(ctx context.Context, r queue.Record) error {
	data, err := payload.Decode(ctx, r.Data, payload.Gzip{})
	if err != nil {
		return err // the failure policy applies
	}
	log.Printf("%s: %s", r.Key(), data)
	return nil
}

// A queue hands over the compressed orders, and acknowledges the other records.
func TestFilteredRecordsOfAQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := kinesistest.NewServer(t, kinesistest.Config{InMemory: true})
		srv.CreateOnDemandStream("shop")
		for _, kind := range []string{"offer", "order"} {
			data, err := payload.Gzip{}.Encode(t.Context(), []byte(`{"kind":"`+kind+`","text":"`+strings.Repeat("tea ", 100)+`"}`))
			if err != nil {
				t.Fatal(err)
			}
			srv.Put("shop", "k", data)
		}
		cfg := srv.AWSConfig()
		if err := createQueue(t.Context(), cfg, srv.StreamARN("shop")); err != nil {
			t.Fatal(err)
		}
		c, err := compressedOrders(cfg)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		err = c.Run(ctx, queue.RecordFunc(bookCompressed))
		if n := c.Counts(); err != nil || n.Handled != 1 || n.Filtered != 1 || n.Acknowledged != 2 {
			t.Errorf("%v, %+v", err, n)
		}
	})
}

// A record that is no order is named. The database of the page is not started here.
func TestOrdersThatAreNotBooked(t *testing.T) {
	_ = bookOnce
	records := []queue.Record{{ID: "r1", Data: []byte("tea")}}
	if err := bookQueued(t.Context(), nil, records); !weir.IsRejected(err) || len(queue.FailedRecords(err, records)) != 1 {
		t.Errorf("%v", err)
	}
}

// The page's consumer acknowledges orders and writes dead letters of other records.
func TestTheQueueOfThePage(t *testing.T) {
	t.Chdir(t.TempDir())
	synctest.Test(t, func(t *testing.T) {
		srv := kinesistest.NewServer(t, kinesistest.Config{InMemory: true})
		srv.CreateOnDemandStream("shop")
		srv.Put("shop", "7", []byte(`{"customer":"7"}`))
		srv.Put("shop", "8", []byte("tea"))
		cfg := srv.AWSConfig()
		if err := createQueue(t.Context(), cfg, srv.StreamARN("shop")); err != nil {
			t.Fatal(err)
		}
		c, err := orderConsumer(cfg)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if err := c.Run(ctx, queue.RecordFunc(decodeOrder)); err != nil {
			t.Error(err)
		}
		text, err := os.ReadFile("dead.ndjson")
		if err != nil {
			t.Fatal(err)
		}
		letter, err := deadletter.Parse(text)
		if n := c.Counts(); err != nil || string(letter.Data) != "tea" || letter.Reason != deadletter.Rejected || n.Acknowledged != 2 || n.Handled != 1 {
			t.Errorf("%v, %+v, %+v", err, letter, n)
		}
	})
}
