package emfweir_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/kinesis"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/emfweir"
	"github.com/weir-go/weir/kinesistest"
	"github.com/weir-go/weir/lease"
	"github.com/weir-go/weir/store/memstore"
)

// consumeWithLines runs a worker, and writes its metrics to logs.
func consumeWithLines(ctx context.Context, client *kinesis.Client, store lease.Store, logs io.Writer, h weir.Handler) error {
	options := weir.Options{Streams: []string{"orders"}, App: "billing"}
	metrics, err := emfweir.New(&options, emfweir.Config{ByShard: true})
	if err != nil {
		return err
	}
	consumer, err := weir.New(client, store, options)
	if err != nil {
		return err
	}
	metrics.Watch(consumer)
	telling, stop := context.WithCancel(context.WithoutCancel(ctx)) // until the consumer has ended
	told := make(chan error)
	go func() { told <- metrics.Run(telling, logs) }()
	err = consumer.Run(ctx, h)
	stop()
	return errors.Join(err, <-told)
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
	var logs bytes.Buffer
	err = consumeWithLines(ctx, srv.Client(), memstore.New(), &logs, weir.HandlerFunc(func(context.Context, *weir.Batch) error {
		cancel()
		return nil
	}))
	if err != nil || !strings.Contains(logs.String(), `"RecordsProcessed":1`) {
		t.Errorf("%v: %s", err, &logs)
	}
}
