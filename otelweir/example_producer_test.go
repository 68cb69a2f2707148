package otelweir_test

import (
	"context"
	"errors"
	"fmt"
	"log"

	"go.opentelemetry.io/otel"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/kinesistest"
	"github.com/weir-go/weir/otelweir"
	"github.com/weir-go/weir/producer"
	"github.com/weir-go/weir/store/memstore"
)

// publish puts a record with its trace context.
func publish(ctx context.Context, client producer.Client, key string, data []byte) error {
	to, err := producer.New(client, producer.Options{Stream: "orders"})
	if err != nil {
		return err
	}
	p, err := otelweir.NewProducer(to, otelweir.ProducerOptions{})
	if err != nil {
		return err
	}
	_, err = p.Put(ctx, producer.Record{PartitionKey: key, Data: data})
	return errors.Join(err, to.Close(ctx)) // usually once, at the end of the program
}

func ExampleNewProducer() {
	srv := kinesistest.NewServer(example{})
	defer srv.Close()
	srv.CreateStream("orders", 1)
	spans := tracetest.NewSpanRecorder()
	otel.SetTracerProvider(sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(spans)))

	ctx := context.Background()
	if err := publish(ctx, srv.Client(), "customer-7", []byte("any data")); err != nil {
		log.Fatal(err)
	}
	handled, stop := context.WithCancel(ctx)
	err := run(handled, srv.Client(), memstore.New(), otelweir.Options{Carrier: otelweir.Tags},
		weir.HandlerFunc(func(context.Context, *weir.Batch) error {
			stop()
			return nil
		}))
	if err != nil {
		log.Fatal(err)
	}
	send, process := spans.Ended()[0], spans.Ended()[1]
	fmt.Println(send.Name())
	fmt.Println(process.Name(), process.Links()[0].SpanContext.SpanID() == send.SpanContext().SpanID())
	// Output:
	// send orders
	// process orders true
}
