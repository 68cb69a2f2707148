package sink_test

import (
	"context"
	"fmt"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/sink"
	"github.com/weir-go/weir/sink/sinktest"
)

// A program for a database that package sqlsink does not know implements [sink.Rows]. Here a
// database in memory takes its place.
func ExampleNew() {
	db := new(sinktest.Memory)
	s, err := sink.New(db, sink.Options{Partitions: 16})
	if err != nil {
		fmt.Println(err)
		return
	}
	handlers := s.Handlers(func(_ context.Context, tx *sinktest.Tx, b *weir.Batch) error {
		for _, r := range b.Records {
			tx.Add(string(r.Data))
		}
		return nil
	})
	// Pass the handlers to Consumer.RunShards. It calls them like this:
	ctx := context.Background()
	h, err := handlers.Open(ctx, weir.Term{Stream: "orders", Shard: "shardId-000000000000", Epoch: 1, From: weir.Oldest})
	if err != nil {
		fmt.Println(err)
		return
	}
	b := &weir.Batch{Stream: "orders", Shard: "shardId-000000000000", Epoch: 1, Records: []weir.Record{
		{SequenceNumber: "1", PartitionKey: "customer-1", Data: []byte("a booking")},
	}}
	for range 2 { // the record comes twice
		if err := h.Handle(ctx, b); err != nil {
			fmt.Println(err)
		}
	}
	fmt.Println(db.Effects())
	// Output: [a booking]
}
