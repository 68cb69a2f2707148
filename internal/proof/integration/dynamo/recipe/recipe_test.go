package recipe_test

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/internal/proof/integration/dynamo/recipe"
	"github.com/weir-go/weir/internal/proof/integration/servers"
	"github.com/weir-go/weir/internal/proof/leaktest"
	"github.com/weir-go/weir/kinesistest"
	"github.com/weir-go/weir/store/memstore"
)

func TestMain(m *testing.M) { os.Exit(leaktest.Run(m)) }

const keys, records = 150, 1500

func start(t *testing.T) *recipe.Counter {
	t.Helper()
	c := &recipe.Counter{Client: servers.DynamoDBLocal(t).DynamoDB(), Table: "counts"}
	_, err := c.Client.CreateTable(t.Context(), &dynamodb.CreateTableInput{
		TableName: &c.Table, BillingMode: types.BillingModePayPerRequest,
		AttributeDefinitions: []types.AttributeDefinition{{AttributeName: aws.String("id"), AttributeType: types.ScalarAttributeTypeS}},
		KeySchema:            []types.KeySchemaElement{{AttributeName: aws.String("id"), KeyType: types.KeyTypeHash}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// count returns the sum of all effects.
func count(t *testing.T, c *recipe.Counter) (sum int) {
	t.Helper()
	out, err := c.Client.Scan(t.Context(), &dynamodb.ScanInput{TableName: &c.Table, ConsistentRead: aws.Bool(true)})
	if err != nil {
		t.Fatal(err)
	}
	for _, item := range out.Items {
		if n, is := item["n"].(*types.AttributeValueMemberN); is {
			i, err := strconv.Atoi(n.Value)
			if err != nil {
				t.Fatal(err)
			}
			sum += i
		}
	}
	return sum
}

// Independent owners with different batches handle every record again. Two of them run
// concurrently.
func TestEachEffectIsThereOnceWhoeverRepeats(t *testing.T) {
	c := start(t)
	srv := kinesistest.NewServer(t, kinesistest.Config{NoLimits: true})
	srv.CreateStream("orders", 2)
	put := func() {
		for i := range records {
			srv.Put("orders", fmt.Sprint("key-", i%keys), []byte("x"))
		}
	}
	own := func(batch, all int) { // handles all records from the first one on
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		w, err := weir.New(srv.Client(), memstore.New(), weir.Options{
			App: "counts", Streams: []string{"orders"}, Worker: fmt.Sprint("cuts-", batch), Batching: weir.Batching{MaxRecords: batch}, Retry: weir.Retry{MinBackoff: time.Millisecond}, Polling: weir.Polling{IdleInterval: 200 * time.Millisecond},
		})
		if err != nil {
			t.Error(err)
			return
		}
		var mu sync.Mutex
		done := 0
		err = w.Run(ctx, weir.HandlerFunc(func(ctx context.Context, b *weir.Batch) error {
			if err := c.Handle(ctx, b); err != nil {
				return err
			}
			mu.Lock()
			defer mu.Unlock()
			if done += len(b.Records); done >= all {
				cancel()
			}
			return nil
		}))
		if err != nil || done != all {
			t.Errorf("%d of %d handled in batches of %d: %v", done, all, batch, err)
		}
	}
	put()
	own(170, records)
	if n := count(t, c); n != records {
		t.Fatalf("%d effects of %d records", n, records)
	}
	put()
	var both sync.WaitGroup
	for _, batch := range []int{70, 330} {
		both.Go(func() { own(batch, 2*records) })
	}
	both.Wait()
	if n := count(t, c); n != 2*records {
		t.Errorf("%d effects of %d records", n, 2*records)
	}
}

// If weir's checkpoints are lost, reading begins at the position in the table.
func TestReadingBeginsWhereTheTableSays(t *testing.T) {
	c := start(t)
	srv := kinesistest.NewServer(t, kinesistest.Config{NoLimits: true})
	srv.CreateStream("orders", 1)
	for round := 1; round <= 2; round++ {
		for i := range 10 {
			srv.Put("orders", fmt.Sprint(i), []byte("x"))
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		handlers, handled := c.Handlers(), 0
		open := handlers.Open
		handlers.Open = func(ctx context.Context, of weir.Term) (weir.ShardHandler, error) {
			h, err := open(ctx, of)
			return counting{h, func(b *weir.Batch) {
				if handled += len(b.Records); handled >= 10 {
					cancel()
				}
			}}, err
		}
		w, err := weir.New(srv.Client(), memstore.New(), weir.Options{App: "counts", Streams: []string{"orders"}})
		if err != nil {
			t.Fatal(err)
		}
		if err := w.RunShards(ctx, handlers); err != nil || handled != 10 {
			t.Errorf("round %d: %d handled: %v", round, handled, err)
		}
		if n := count(t, c); n != 10*round {
			t.Errorf("round %d: %d effects", round, n)
		}
	}
}

// counting is a handler that counts handled records.
type counting struct {
	weir.ShardHandler
	done func(*weir.Batch)
}

func (h counting) Handle(ctx context.Context, b *weir.Batch) error {
	err := h.ShardHandler.Handle(ctx, b)
	if err == nil {
		h.done(b)
	}
	return err
}
