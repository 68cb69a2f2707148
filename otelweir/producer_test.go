package otelweir

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/kinesistest"
	"github.com/weir-go/weir/producer"
	"github.com/weir-go/weir/weirtest"
)

// traced returns a producer for a stream of w, and the spans of its records.
func (w *watched) traced(o producer.Options) (*producer.Producer, *Producer, *tracetest.SpanRecorder) {
	w.t.Helper()
	o.Stream, o.Logger = "orders", slog.New(slog.DiscardHandler)
	to, err := producer.New(w.srv.Client(), o)
	if err != nil {
		w.t.Fatal(err)
	}
	spans := tracetest.NewSpanRecorder()
	p, err := NewProducer(to, ProducerOptions{TracerProvider: sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(spans))})
	if err != nil {
		w.t.Fatal(err)
	}
	return to, p, spans
}

func attributeOf(s sdktrace.ReadOnlySpan, key attribute.Key) string {
	for _, a := range s.Attributes() {
		if a.Key == key {
			return a.Value.String()
		}
	}
	return ""
}

// The span that handles a record links to the span that put it, whether the record is alone in the
// stream's record or not.
func TestHandlersLinkToTheSpansOfProducers(t *testing.T) {
	watch(t, 2, Options{Carrier: Tags}, func(w *watched) {
		t := w.t // that of the bubble
		to, p, sent := w.traced(producer.Options{})
		var mu sync.Mutex              // guards handled
		handled := map[string]string{} // span that put a record, by its data
		w.start(w.telemetry.Records(func(ctx context.Context, r weir.Record) error {
			links := trace.SpanFromContext(ctx).(sdktrace.ReadOnlySpan).Links()
			if len(links) != 1 {
				t.Errorf("%s has %d links", r.Data, len(links))
				return nil
			}
			mu.Lock()
			defer mu.Unlock()
			handled[string(r.Data)] = links[0].SpanContext.SpanID().String()
			return nil
		}))
		put := map[string]string{}
		for _, count := range []int{1, 100} { // the first one is alone
			for i := range count {
				data, called := fmt.Sprint(i, " of ", count), false
				_, err := p.Put(t.Context(), producer.Record{
					PartitionKey: fmt.Sprint(i % 7), Data: []byte(data), Done: func(producer.Result, error) { called = true },
				})
				if err != nil {
					t.Fatal(err)
				}
				defer func() {
					if !called {
						t.Errorf("Done of %s was not called", data)
					}
				}()
				put[data] = "" // its span is known below
			}
			if err := to.Flush(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		w.worker.Until(weirtest.AtTip(w.srv, "orders", w.worker))
		w.worker.Stop()
		if err := to.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		var spans []string
		for _, s := range sent.Ended() {
			spans = append(spans, s.SpanContext().SpanID().String())
			if s.Name() != "send orders" || s.SpanKind() != trace.SpanKindProducer || s.Status().Code != codes.Unset ||
				!strings.HasPrefix(attributeOf(s, partition), "shardId-") || attributeOf(s, contextDropped) != "" {
				t.Errorf("%s %s %v %v", s.Name(), s.SpanKind(), s.Status(), s.Attributes())
			}
		}
		if len(handled) != len(put) || len(spans) != len(put) {
			t.Errorf("%d records, %d spans, %d handled with a link", len(put), len(spans), len(handled))
		}
		for data, span := range handled {
			i := slices.Index(spans, span)
			if i < 0 {
				t.Errorf("%s links to an unknown span", data)
				continue
			}
			spans = slices.Delete(spans, i, i+1)
		}
	})
}

// A record without tags loses its trace context, and its span says so. A record that is not
// accepted has a span with an error.
func TestSpansOfRecordsWithoutContext(t *testing.T) {
	watch(t, 1, Options{Carrier: Tags}, func(w *watched) {
		t := w.t // that of the bubble
		to, p, sent := w.traced(producer.Options{NoAggregation: true})
		if _, err := p.TryPut(t.Context(), producer.Record{PartitionKey: "k", Data: []byte("x")}); err != nil {
			t.Fatal(err)
		}
		if err := to.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		if _, err := p.TryPut(t.Context(), producer.Record{PartitionKey: "k"}); !errors.Is(err, producer.ErrClosed) {
			t.Errorf("%v", err)
		}
		spans := sent.Ended()
		if len(spans) != 2 || attributeOf(spans[0], contextDropped) != "true" || spans[0].Status().Code != codes.Unset {
			t.Fatalf("%v", tracetest.SpanStubsFromReadOnlySpans(spans))
		}
		if spans[1].Status().Code != codes.Error || attributeOf(spans[1], errorType) != "closed" {
			t.Errorf("%+v", tracetest.SpanStubFromReadOnlySpan(spans[1]))
		}
	})
}

// Without a tracer, records get the context of the caller's span.
func TestRecordsGetTheCallersContext(t *testing.T) {
	watch(t, 1, Options{Carrier: Tags}, func(w *watched) {
		t := w.t // that of the bubble
		to, _, _ := w.traced(producer.Options{})
		p, err := NewProducer(to, ProducerOptions{TracerProvider: noop.NewTracerProvider()})
		if err != nil {
			t.Fatal(err)
		}
		ctx := propagation.TraceContext{}.Extract(t.Context(), propagation.MapCarrier{"traceparent": parent})
		if _, err := p.Put(ctx, producer.Record{PartitionKey: "k", Data: []byte("x")}); err != nil {
			t.Fatal(err)
		}
		if err := to.Close(ctx); err != nil {
			t.Fatal(err)
		}
		var got string
		w.start(weir.RecordFunc(func(_ context.Context, r weir.Record) error {
			got, _ = r.Tags().Get("traceparent")
			return nil
		}))
		w.worker.Until(weirtest.AtTip(w.srv, "orders", w.worker))
		w.worker.Stop()
		if got != parent {
			t.Errorf("the record has %q, want %q", got, parent)
		}
	})
}

func TestTypesOfPutErrors(t *testing.T) {
	if _, err := NewProducer(nil, ProducerOptions{}); err == nil {
		t.Error("no error without a producer")
	}
	watch(t, 1, Options{}, func(w *watched) {
		t := w.t // that of the bubble
		to, p, sent := w.traced(producer.Options{MaxAge: 5 * time.Second})
		puts := func(data []byte) {
			if pending, err := p.Put(t.Context(), producer.Record{PartitionKey: "k", Data: data}); err == nil {
				_, _ = pending.Wait(t.Context())
			}
		}
		code := "InternalFailure"
		w.srv.Control("PutRecords", func(*kinesistest.Call) kinesistest.Fault {
			return kinesistest.Fault{PartialFailure: func(int) string { return code }}
		})
		puts([]byte("x"))
		code = "KMSDisabledException"
		puts([]byte("x"))
		puts(make([]byte, 11<<20))
		if err := to.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, s := range sent.Ended() {
			got = append(got, attributeOf(s, errorType))
		}
		slices.Sort(got) // callbacks may run after Wait has returned
		if want := []string{"InternalFailure", "KMSDisabledException", "too_large"}; !slices.Equal(got, want) {
			t.Errorf("%q, want %q", got, want)
		}
	})
}
