package weir_test

import (
	"context"
	"fmt"
	"log"
	"sync/atomic"

	"github.com/aws/aws-sdk-go-v2/service/kinesis"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/kinesistest"
)

// counter counts the reads of a client and the records that they return. All other methods are
// those of the client.
type counter struct {
	*kinesis.Client
	reads, records atomic.Int64
}

func (c *counter) GetRecords(
	ctx context.Context, in *kinesis.GetRecordsInput, opts ...func(*kinesis.Options),
) (*kinesis.GetRecordsOutput, error) {
	c.reads.Add(1)
	out, err := c.Client.GetRecords(ctx, in, opts...)
	if err == nil {
		c.records.Add(int64(len(out.Records)))
	}
	return out, err
}

// A wrapper around a client counts the reads that weir makes.
func ExampleKinesis() {
	srv := kinesistest.NewServer(example{})
	defer srv.Close()
	srv.CreateStream("orders", 1)
	srv.Put("orders", "customer-7", []byte("one espresso"))
	srv.Put("orders", "customer-7", []byte("one more"))

	client := &counter{Client: srv.Client()}
	r, err := weir.NewReader(client, weir.ReaderOptions{Stream: "orders", UntilTip: true})
	if err != nil {
		log.Fatal(err)
	}
	for _, err := range r.Records(context.Background()) {
		if err != nil {
			log.Fatal(err)
		}
	}
	fmt.Println("records:", client.records.Load(), "reads:", client.reads.Load() > 0)
	// Output: records: 2 reads: true
}
