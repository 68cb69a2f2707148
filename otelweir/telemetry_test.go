package otelweir

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/aggregate"
	"github.com/weir-go/weir/event"
	"github.com/weir-go/weir/kinesistest"
	"github.com/weir-go/weir/store/memstore"
	"github.com/weir-go/weir/weirtest"
)

// watched is a consumer whose telemetry is kept in memory.
type watched struct {
	t         *testing.T
	srv       *kinesistest.Server
	reader    *metric.ManualReader
	spans     *tracetest.SpanRecorder
	telemetry *Telemetry
	options   weir.Options
	worker    *weirtest.Worker
}

// watch calls f in a bubble with a watched consumer.
func watch(t *testing.T, shards int, o Options, f func(w *watched)) {
	synctest.Test(t, func(t *testing.T) {
		srv, err := kinesistest.Start(kinesistest.Config{InMemory: true})
		if err != nil {
			t.Fatal(err)
		}
		defer srv.Close()
		srv.CreateStream("orders", shards)
		w := &watched{t: t, srv: srv, reader: metric.NewManualReader(), spans: tracetest.NewSpanRecorder()}
		o.MeterProvider = metric.NewMeterProvider(metric.WithReader(w.reader))
		o.TracerProvider = sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(w.spans))
		w.options = weir.Options{Streams: []string{"orders"}, App: "billing", Worker: "w1"}
		if w.telemetry, err = New(&w.options, o); err != nil {
			t.Fatal(err)
		}
		f(w)
	})
}

func (w *watched) start(h weir.Handler) {
	w.t.Helper()
	w.worker = weirtest.Start(w.t, w.srv.Client(), memstore.New(), w.options, h)
	stop, err := w.telemetry.Observe(w.worker.Consumer)
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() {
		if err := stop(); err != nil {
			w.t.Error(err)
		}
	})
}

func (w *watched) collect() (all metricdata.ResourceMetrics) {
	w.t.Helper()
	if err := w.reader.Collect(w.t.Context(), &all); err != nil {
		w.t.Fatal(err)
	}
	return all
}

// values returns the collected values of a metric. The keys are the attributes, for example
// "app=billing stream=orders". For histograms, the value is the count.
func values(all metricdata.ResourceMetrics, name string) map[string]float64 {
	found := map[string]float64{}
	key := func(attributes interface{ MarshalJSON() ([]byte, error) }) string {
		var list []struct {
			Key   string
			Value struct{ Value any }
		}
		text, _ := attributes.MarshalJSON()
		_ = json.Unmarshal(text, &list)
		var parts []string
		for _, a := range list {
			parts = append(parts, fmt.Sprintf("%s=%v", a.Key, a.Value.Value))
		}
		return strings.Join(parts, " ")
	}
	for _, s := range all.ScopeMetrics {
		for _, m := range s.Metrics {
			if m.Name != name {
				continue
			}
			switch data := m.Data.(type) {
			case metricdata.Sum[int64]:
				for _, p := range data.DataPoints {
					found[key(&p.Attributes)] = float64(p.Value)
				}
			case metricdata.Gauge[int64]:
				for _, p := range data.DataPoints {
					found[key(&p.Attributes)] = float64(p.Value)
				}
			case metricdata.Gauge[float64]:
				for _, p := range data.DataPoints {
					found[key(&p.Attributes)] = p.Value
				}
			case metricdata.Histogram[float64]:
				for _, p := range data.DataPoints {
					found[key(&p.Attributes)] = float64(p.Count)
				}
			}
		}
	}
	return found
}

func (w *watched) wants(all metricdata.ResourceMetrics, name, attributes string, want float64) {
	w.t.Helper()
	if got, some := values(all, name)[attributes]; !some || got != want {
		w.t.Errorf("%s{%s} = %v, want %v; there is %v", name, attributes, got, want, values(all, name))
	}
}

// exported returns everything that was exported, as text.
func (w *watched) exported() string {
	text, err := json.Marshal(w.collect())
	if err != nil {
		w.t.Fatal(err)
	}
	var all strings.Builder
	all.Write(text)
	for _, s := range tracetest.SpanStubsFromReadOnlySpans(w.spans.Ended()) {
		fmt.Fprintf(&all, "%+v\n", s)
	}
	return all.String()
}

const (
	traceOfOrder = "0af7651916cd43dd8448eb211c80319c"
	order        = `{"item": "ristretto", "traceparent": "00-` + traceOfOrder + `-b7ad6b7169203331-01"}`
	ofOrders     = "app=billing stream=orders"
	processing   = "aws.kinesis.stream_name=orders messaging.consumer.group.name=billing messaging.destination.name=orders messaging.operation.name=process messaging.operation.type=process messaging.system=aws.kinesis"
)

func TestAConsumerIsSeen(t *testing.T) {
	watch(t, 1, Options{Carrier: JSON, ReadSpans: true}, func(w *watched) {
		w.srv.Control("GetRecords", func(*kinesistest.Call) kinesistest.Fault { return kinesistest.Fault{Delay: 20 * time.Millisecond} })
		shard, seq := w.srv.Put("orders", "customer-4711", []byte(order))
		_, second := w.srv.Put("orders", "customer-4712", []byte(`plain text of a customer`))
		var inside []trace.SpanContext
		calls := 0
		w.start(w.telemetry.Handler(weir.HandlerFunc(func(ctx context.Context, b *weir.Batch) error {
			inside = append(inside, trace.SpanContextFromContext(ctx))
			if calls++; calls == 1 {
				return fmt.Errorf("refused %s of %s", b.Records[0].SequenceNumber, b.Records[0].PartitionKey)
			}
			return nil
		})))
		w.worker.Until(weirtest.Handled(2, w.worker))
		time.Sleep(time.Minute) // a heartbeat saves the progress, and the lag is reported
		all, n := w.collect(), w.worker.Consumer.Counts()

		for name, want := range map[string]uint64{
			"weir.handled.records": n.RecordsHandled, "weir.handled.bytes": n.BytesHandled,
			"weir.reads": n.Reads, "weir.read.records": n.RecordsRead, "weir.read.bytes": n.BytesRead,
			"weir.handler.failures": n.HandlerFailures, "weir.handler.duration": n.BatchesHandled + n.HandlerFailures,
			"weir.read.duration": n.Reads, "weir.leases": 1,
		} {
			if want == 0 {
				t.Errorf("%s: nothing is to be counted", name)
			}
			w.wants(all, name, ofOrders, float64(want))
		}
		w.wants(all, "messaging.client.consumed.messages", strings.ReplaceAll(strings.Replace(processing, "name=process", "name=poll", 1), "type=process", "type=receive"), 2)
		w.wants(all, "messaging.process.duration", processing, float64(n.BatchesHandled))
		w.wants(all, "messaging.process.duration", "aws.kinesis.stream_name=orders error.type=_OTHER "+strings.TrimPrefix(processing, "aws.kinesis.stream_name=orders "), 1)
		w.wants(all, "weir.lease.changes", "app=billing reason=taken stream=orders", 1)
		w.wants(all, "weir.leader", "app=billing", 1)
		w.wants(all, "weir.leader.epoch", "app=billing", 1)
		w.wants(all, "weir.events.dropped", "app=billing", 0)
		for _, lag := range []string{"weir.lag", "weir.handled.lag", "weir.checkpoint.lag"} {
			// All records are handled and saved. The lag may be 20 ms, because a read in progress
			// could still return records.
			if got, some := values(all, lag)[ofOrders]; !some || got > 0.02 {
				t.Errorf("%s = %v, want at most 0.02; there is %v", lag, got, values(all, lag))
			}
		}

		ended := w.spans.Ended()
		at := slices.IndexFunc(ended, func(s sdktrace.ReadOnlySpan) bool { return s.Name() == "process orders" })
		if at < 0 || !slices.ContainsFunc(ended, func(s sdktrace.ReadOnlySpan) bool {
			return s.Name() == "poll orders" && s.SpanKind() == trace.SpanKindClient
		}) {
			t.Fatalf("the spans are %v", ended)
		}
		first := ended[at]
		if first.SpanKind() != trace.SpanKindConsumer || first.Status().Code != codes.Error || first.Status().Description != "" {
			t.Errorf("the first call's span is %v %v", first.SpanKind(), first.Status())
		}
		if len(first.Links()) != 1 || first.Links()[0].SpanContext.TraceID().String() != traceOfOrder {
			t.Errorf("it links to %v, want the trace of the order", first.Links())
		}
		if !inside[0].Equal(first.SpanContext()) {
			t.Errorf("the handler's context has span %v, want %v", inside[0], first.SpanContext())
		}

		exported := w.exported()
		for _, there := range []string{"orders", "billing", shard} {
			if !strings.Contains(exported, there) {
				t.Errorf("%q is not in what was exported", there)
			}
		}
		for _, secret := range []string{seq, second, "customer-471", "plain text", "ristretto", "refused"} {
			if strings.Contains(exported, secret) {
				t.Errorf("%q was exported", secret)
			}
		}
	})
}

func TestTheShardGoesWithItsLease(t *testing.T) {
	watch(t, 1, Options{Shards: true}, func(w *watched) {
		parent, _ := w.srv.Put("orders", "customer-1", []byte("1"))
		w.start(w.telemetry.Handler(weir.HandlerFunc(func(context.Context, *weir.Batch) error { return nil })))
		w.worker.Until(weirtest.Handled(1, w.worker))
		shardsOf := func() (ids []string) {
			for attributes := range values(w.collect(), "weir.lag") {
				_, id, _ := strings.Cut(attributes, "shard=")
				id, _, _ = strings.Cut(id, " ")
				ids = append(ids, id)
			}
			slices.Sort(ids)
			return ids
		}
		if got := shardsOf(); !slices.Equal(got, []string{parent}) {
			t.Errorf("before the split the shards are %q, want %q", got, parent)
		}
		lower, upper := w.srv.Split("orders", parent)
		w.worker.Until(weirtest.When("the children are read", func() bool {
			held := w.worker.Consumer.Shards()
			return len(held) == 2 && held[0].Behind == 0 && held[1].Behind == 0
		}))
		if got := shardsOf(); !slices.Equal(got, []string{lower, upper}) {
			t.Errorf("after the split the shards are %q, want %q and %q", got, lower, upper)
		}
		w.wants(w.collect(), "weir.lease.changes", "app=billing reason=finished stream=orders", 1)
		w.wants(w.collect(), "weir.leases", ofOrders, 2)
		w.wants(w.collect(), "weir.shard.state", "app=billing shard="+lower+" state=ok stream=orders", 1)
		w.worker.Stop()
		if got := shardsOf(); len(got) != 0 {
			t.Errorf("after the end the shards are %q", got)
		}
		w.wants(w.collect(), "weir.leases", ofOrders, 0)
	})
}

func TestLagGrowsWhileTheHandlerFails(t *testing.T) {
	watch(t, 1, Options{}, func(w *watched) {
		w.srv.Put("orders", "customer-1", []byte("1"))
		var mu sync.Mutex
		failing := errors.New("down")
		set := func(err error) { mu.Lock(); defer mu.Unlock(); failing = err }
		w.start(w.telemetry.Handler(weir.HandlerFunc(func(context.Context, *weir.Batch) error {
			mu.Lock()
			defer mu.Unlock()
			return failing
		})))
		var all metricdata.ResourceMetrics
		for range 20 {
			time.Sleep(30 * time.Second)
			all = w.collect()
		}
		w.wants(all, "weir.shard.state", "app=billing state=stalled stream=orders", 1)
		for _, lag := range []string{"weir.handled.lag", "weir.checkpoint.lag"} {
			if got := values(all, lag)[ofOrders]; got < 599 || got > 601 {
				t.Errorf("%s is %v s after ten minutes of failures", lag, got)
			}
		}
		set(nil)
		w.worker.Until(weirtest.Handled(1, w.worker))
		time.Sleep(time.Minute)
		for _, lag := range []string{"weir.handled.lag", "weir.checkpoint.lag"} {
			w.wants(w.collect(), lag, ofOrders, 0)
		}
		w.wants(w.collect(), "weir.shard.state", "app=billing state=ok stream=orders", 1)
	})
}

func TestEachRecordHasItsSpan(t *testing.T) {
	watch(t, 1, Options{Carrier: JSON}, func(w *watched) {
		for range 3 {
			w.srv.Put("orders", "customer-1", []byte(order))
		}
		w.start(w.telemetry.Records(func(ctx context.Context, _ weir.Record) error {
			if !trace.SpanContextFromContext(ctx).IsValid() {
				t.Error("no span in the context")
			}
			return nil
		}))
		w.worker.Until(weirtest.Handled(3, w.worker))
		w.worker.Stop()
		if spans := w.spans.Ended(); len(spans) != 3 || len(spans[2].Links()) != 1 {
			t.Errorf("the spans are %v", spans)
		}
	})
}

func TestSpansLinkToWhatProducersPackedBesideTheRecords(t *testing.T) {
	watch(t, 1, Options{Carrier: Tags}, func(w *watched) {
		var b aggregate.Builder
		for _, tags := range []aggregate.Tags{
			aggregate.Tags{}.With("tracestate", "a=b").With("traceparent", parent), {},
			aggregate.Tags{}.With("traceparent", parent[:54]+"0"), // not sampled
			aggregate.Tags{}.With("traceparent", strings.Repeat("0", 2000)), aggregate.Tags{}.With("other", ""),
		} {
			if err := b.AddTagged("customer-1", "", []byte(order), tags); err != nil {
				t.Fatal(err)
			}
		}
		w.srv.Put("orders", "customer-1", b.AppendContainer(nil))
		w.start(w.telemetry.Handler(weir.HandlerFunc(func(context.Context, *weir.Batch) error { return nil })))
		w.worker.Until(weirtest.Handled(5, w.worker))
		w.worker.Stop()
		spans := w.spans.Ended()
		if len(spans) != 1 || len(spans[0].Links()) != 1 {
			t.Fatalf("the spans are %v", spans)
		}
		if c := spans[0].Links()[0].SpanContext; c.TraceID().String() != parent[3:35] || c.TraceState().String() != "a=b" || !c.IsRemote() {
			t.Errorf("the link is to %v", c)
		}
	})
}

type closing struct {
	weir.Handler
	closed *int
}

func (c closing) Close(context.Context, event.EndReason) { *c.closed++ }

func TestShardHandlersAreSeen(t *testing.T) {
	watch(t, 1, Options{}, func(w *watched) {
		w.srv.Put("orders", "customer-1", []byte("1"))
		consumer, err := weir.New(w.srv.Client(), memstore.New(), w.options)
		if err != nil {
			w.t.Fatal(err)
		}
		closed := 0
		running := weirtest.Go(w.t, func(ctx context.Context) error {
			return consumer.RunShards(ctx, w.telemetry.ShardHandlers(weir.ShardHandlers{Open: func(context.Context, weir.Term) (weir.ShardHandler, error) {
				return closing{weir.HandlerFunc(func(context.Context, *weir.Batch) error { return nil }), &closed}, nil
			}}))
		})
		running.Until(weirtest.When("the record is handled", func() bool { return consumer.Counts().RecordsHandled == 1 }))
		running.Stop()
		w.wants(w.collect(), "messaging.process.duration", processing, 1)
		if len(w.spans.Ended()) != 1 || closed != 1 {
			w.t.Errorf("%d spans, and Close was called %d times, want 1 of each", len(w.spans.Ended()), closed)
		}
	})
}

// Wrapped handlers have the same needs as the handlers themselves, so RunShards refuses the same
// options.
func TestWrappedShardHandlersHaveTheSameNeeds(t *testing.T) {
	watch(t, 1, Options{}, func(w *watched) {
		w.options.ReuseBuffers = true
		consumer, err := weir.New(w.srv.Client(), memstore.New(), w.options)
		if err != nil {
			w.t.Fatal(err)
		}
		err = consumer.RunShards(w.t.Context(), w.telemetry.ShardHandlers(weir.ShardHandlers{
			Open:         func(context.Context, weir.Term) (weir.ShardHandler, error) { return nil, nil },
			KeepsRecords: true,
		}))
		if of := (*weir.OptionError)(nil); !errors.As(err, &of) || of.Option != "Options.ReuseBuffers" {
			w.t.Errorf("RunShards returned %v", err)
		}
		err = consumer.RunShards(w.t.Context(), w.telemetry.ShardHandlers(weir.ShardHandlers{}))
		if of := (*weir.OptionError)(nil); !errors.As(err, &of) || of.Option != "ShardHandlers.Open" {
			w.t.Errorf("without Open, RunShards returned %v", err)
		}
	})
}

func TestWithoutAHandlerTheEventsTellDurations(t *testing.T) {
	watch(t, 1, Options{}, func(w *watched) {
		w.srv.Put("orders", "customer-1", []byte("1"))
		w.start(weir.HandlerFunc(func(context.Context, *weir.Batch) error { return nil }))
		w.worker.Until(weirtest.Handled(1, w.worker))
		w.worker.Stop()
		w.wants(w.collect(), "messaging.process.duration", processing, 1)
	})
}

func TestWrongOptionsAreRefused(t *testing.T) {
	for name, try := range map[string]func() error{
		"New needs the options":    func() error { _, err := New(nil, Options{}); return err },
		"Options.App is empty":     func() error { _, err := New(&weir.Options{}, Options{}); return err },
		"Options.MaxLinks is -1":   func() error { _, err := New(&weir.Options{App: "a"}, Options{MaxLinks: -1}); return err },
		"Observe needs a consumer": func() error { _, err := new(Telemetry).Observe(nil); return err },
	} {
		if err := try(); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%v, want an error with %q", err, name)
		}
	}
}
