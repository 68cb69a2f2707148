package otelweir

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/weir-go/weir/aggregate"
	"github.com/weir-go/weir/kinesistest"
	"github.com/weir-go/weir/queue"
)

// A consumer of a queue has metrics, and a span for each call, with links to the producer's spans.
func TestTelemetryOfAQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := kinesistest.NewServer(t, kinesistest.Config{InMemory: true})
		srv.CreateOnDemandStream("s")
		srv.CreateQueue(kinesistest.Queue{Stream: "s", Name: "orders", MaxReceiveCount: 50})
		for i := range 10 {
			srv.Put("s", fmt.Sprint(i), fmt.Append(nil, i))
		}
		var b aggregate.Builder
		const parent = "4bf92f3577b34da6a3ce929d0e0e4736"
		tags := aggregate.Tags{}.With("traceparent", "00-"+parent+"-00f067aa0ba902b7-01")
		if err := b.AddTagged("k", "", []byte("traced"), tags); err != nil {
			t.Fatal(err)
		}
		srv.Put("s", "k", b.Append(nil))

		reader, spans := metric.NewManualReader(), tracetest.NewSpanRecorder()
		o := queue.Options{Queue: "orders", App: "billing", Logger: slog.New(slog.DiscardHandler)}
		telemetry, err := NewQueue(&o, QueueOptions{
			MeterProvider:  metric.NewMeterProvider(metric.WithReader(reader)),
			TracerProvider: sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(spans)), Carrier: QueueTags,
		})
		if err != nil {
			t.Fatal(err)
		}
		c, err := queue.New(srv.AWSConfig(), o)
		if err != nil {
			t.Fatal(err)
		}
		stop, err := telemetry.Observe(c)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		err = c.Run(ctx, telemetry.Records(func(_ context.Context, r queue.Record) error {
			if string(r.Data) == "7" && r.Attempt == 1 {
				return errors.New("secret")
			}
			return nil
		}))
		if err != nil {
			t.Fatal(err)
		}
		var collected metricdata.ResourceMetrics
		if err := reader.Collect(t.Context(), &collected); err != nil {
			t.Fatal(err)
		}
		page, err := os.ReadFile("../docs/guide/opentelemetry.md")
		if err != nil {
			t.Skip("the guide is not part of the module:", err)
		}
		known := map[string]bool{}
		for _, m := range collected.ScopeMetrics[0].Metrics {
			known[m.Name] = true
			if !strings.Contains(string(page), "`"+m.Name+"`") {
				t.Errorf("the guide does not name %s", m.Name)
			}
			sum, _ := m.Data.(metricdata.Sum[int64])
			if m.Name == "weir.queue.handled.records" && (len(sum.DataPoints) != 1 || sum.DataPoints[0].Value != 11) {
				t.Errorf("%+v", m)
			}
		}
		for _, name := range regexp.MustCompile("`(weir\\.queue\\.[a-z_.]+)`").FindAllStringSubmatch(string(page), -1) {
			if !known[name[1]] {
				t.Errorf("the guide names %s, which does not exist", name[1])
			}
		}
		failed, linked := 0, 0
		for _, s := range spans.Ended() {
			if s.Name() != "process orders" || strings.Contains(fmt.Sprint(s.Attributes(), s.Status()), "secret") {
				t.Errorf("%s %v", s.Name(), s.Attributes())
			}
			if s.Status().Code == codes.Error {
				failed++
			}
			for _, l := range s.Links() {
				if l.SpanContext.TraceID().String() == parent {
					linked++
				}
			}
		}
		if len(spans.Ended()) != 12 || failed != 1 || linked != 1 {
			t.Errorf("%d spans, %d failed, %d linked", len(spans.Ended()), failed, linked)
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}

func TestOptionsOfAQueueThatMakeNoSense(t *testing.T) {
	for text, f := range map[string]func() error{
		"needs the options":   func() error { _, err := NewQueue(nil, QueueOptions{}); return err },
		"Queue is empty":      func() error { _, err := NewQueue(&queue.Options{}, QueueOptions{}); return err },
		"QueueOptions.MaxLin": func() error { _, err := NewQueue(&queue.Options{Queue: "q"}, QueueOptions{MaxLinks: -1}); return err },
	} {
		if err := f(); err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("%v, want %s", err, text)
		}
	}
}
