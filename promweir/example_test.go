package promweir_test

import (
	"context"
	"net/http"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/kinesis"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/kinesistest"
	"github.com/weir-go/weir/lease"
	"github.com/weir-go/weir/promweir"
	"github.com/weir-go/weir/store/memstore"
)

// consumeWithMetrics runs a worker, and serves its metrics on mux.
func consumeWithMetrics(ctx context.Context, client *kinesis.Client, store lease.Store, mux *http.ServeMux, h weir.Handler) error {
	options := weir.Options{Streams: []string{"orders"}, App: "billing"}
	metrics := promweir.New(&options, promweir.Config{ShardLabel: true})
	consumer, err := weir.New(client, store, options)
	if err != nil {
		return err
	}
	metrics.Watch(consumer)
	mux.Handle("/metrics", promweir.Handler(metrics))
	return consumer.Run(ctx, h)
}

func TestTheCodeOfTheGuideRuns(t *testing.T) {
	srv, err := kinesistest.Start(kinesistest.Config{InMemory: true})
	if err != nil {
		t.Fatal(err)
	}
	defer srv.Close()
	srv.CreateStream("orders", 1)
	srv.Put("orders", "k", []byte("x"))
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	handled := false
	err = consumeWithMetrics(ctx, srv.Client(), memstore.New(), http.NewServeMux(), weir.HandlerFunc(func(context.Context, *weir.Batch) error {
		handled = true
		cancel()
		return nil
	}))
	if err != nil || !handled {
		t.Errorf("handled: %v, %v", handled, err)
	}
}
