package otelweir

import (
	"context"
	"errors"
	"fmt"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/otlptranslator"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/metric/noop"
	"go.opentelemetry.io/otel/propagation"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/trace"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/event"
	"github.com/weir-go/weir/health"
	"github.com/weir-go/weir/kinesistest"
	"github.com/weir-go/weir/store/memstore"
)

// Dashboards and alerts depend on these names.
func TestNamesInPrometheus(t *testing.T) {
	reader := sdkmetric.NewManualReader()
	options := weir.Options{App: "billing", Worker: "w1"}
	telemetry, err := New(&options, Options{MeterProvider: sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader))})
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range []event.Event{
		event.LeaseTaken{}, event.LeaseEnded{}, event.CheckpointSaved{Took: 1}, event.Stalled{},
		event.StoreFailed{}, event.Leading{Leads: true}, event.Read{Took: 1}, event.ReadFailed{},
		event.ReadFailed{Throttled: true}, event.PositionExpired{}, event.Filtered{},
		event.BatchHandled{Took: 1}, event.HandlerFailed{}, event.DeadLettered{},
		event.DeadLetterFailed{},
	} {
		options.OnEvent(t.Context(), e)
	}
	telemetry.recordCall(t.Context(), "orders", 1, "")
	srv := kinesistest.NewServer(t)
	consumer, err := weir.New(srv.Client(), memstore.New(), weir.Options{Streams: []string{"orders"}, App: "billing"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := telemetry.Observe(consumer); err != nil {
		t.Fatal(err)
	}
	in := telemetry.instruments
	held := []health.Named{{Stream: "orders", Name: "shardId-1"}}
	if _, err := in.meter.RegisterCallback(func(_ context.Context, o metric.Observer) error {
		telemetry.observe(o, held)
		return nil
	}, in.lag, in.handledLag, in.checkpointLag, in.shardState, in.leases, in.leader, in.leaderEpoch); err != nil {
		t.Fatal(err)
	}
	var collected metricdata.ResourceMetrics
	if err := reader.Collect(t.Context(), &collected); err != nil {
		t.Fatal(err)
	}
	namer := otlptranslator.NewMetricNamer("", otlptranslator.UnderscoreEscapingWithSuffixes)
	var got []string
	for _, m := range collected.ScopeMetrics[0].Metrics {
		kind := otlptranslator.MetricType(otlptranslator.MetricTypeGauge)
		switch m.Data.(type) {
		case metricdata.Sum[int64]:
			kind = otlptranslator.MetricTypeMonotonicCounter
		case metricdata.Histogram[float64]:
			kind = otlptranslator.MetricTypeHistogram
		}
		name, err := namer.Build(otlptranslator.Metric{Name: m.Name, Unit: m.Unit, Type: kind})
		if err != nil {
			t.Error(err)
		}
		got = append(got, name)
	}
	slices.Sort(got)
	want := []string{
		"messaging_client_consumed_messages_total", "messaging_client_operation_duration_seconds", "messaging_process_duration_seconds",
		"weir_build_info", "weir_checkpoint_duration_seconds", "weir_checkpoint_lag_seconds",
		"weir_dead_letter_failures_total", "weir_dead_lettered_records_total",
		"weir_events_dropped_total", "weir_filtered_records_total", "weir_handled_bytes_total",
		"weir_handled_lag_seconds", "weir_handled_records_total",
		"weir_handler_duration_seconds", "weir_handler_failures_total", "weir_lag_seconds",
		"weir_leader", "weir_leader_epoch", "weir_lease_changes_total", "weir_leases",
		"weir_positions_expired_total", "weir_read_bytes_total", "weir_read_duration_seconds",
		"weir_read_failures_total", "weir_read_records_total", "weir_read_throttled_total",
		"weir_reads_total", "weir_shard_state", "weir_stalls_total", "weir_store_failures_total",
	}
	if !slices.Equal(got, want) {
		t.Errorf("the names are\n%s, want\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	page, err := os.ReadFile("../docs/guide/opentelemetry.md")
	if err != nil {
		t.Skip("the guide is not part of the module:", err)
	}
	for _, m := range collected.ScopeMetrics[0].Metrics {
		if !strings.Contains(string(page), "`"+m.Name+"`") {
			t.Errorf("the guide does not name %s", m.Name)
		}
	}
}

type coded string

func (c coded) Error() string     { return "x" }
func (c coded) ErrorCode() string { return string(c) }

func TestKindsOfErrors(t *testing.T) {
	for _, c := range []struct {
		err  error
		want string
	}{
		{fmt.Errorf("x: %w", weir.ErrLeaseLost), "lease_lost"},
		{weir.ErrStopping, "stopping"},
		{weir.ErrStalled, "stalled"},
		{&weir.PanicError{Who: "the handler", Value: errors.New("x")}, "panic"},
		{fmt.Errorf("x: %w", coded("ThrottlingException")), "ThrottlingException"},
		{coded("49590338271490256608559692538361571095921575989136588898"), "otelweir.coded"},
		{coded(strings.Repeat("x", 65)), "otelweir.coded"},
		{context.DeadlineExceeded, "timeout"},
		{fmt.Errorf("x: %w", context.Canceled), "canceled"},
		{errors.New("49590338271490256608559692538361571095921575989136588898"), "_OTHER"},
		{errors.Join(errors.New("x")), "_OTHER"},
		{fmt.Errorf("x: %w", &time.ParseError{}), "*time.ParseError"},
	} {
		if got := outcome(c.err, true); got != c.want {
			t.Errorf("%v is of kind %q, want %q", c.err, got, c.want)
		}
	}
	if got := outcome(fmt.Errorf("x: %w", weir.ErrHandedOff), true); got != "" {
		t.Errorf("a lease that is wanted back is of kind %q", got)
	}
	if got := outcome(nil, false); got != "panic" {
		t.Errorf("a call that did not return is of kind %q", got)
	}
}

const (
	parent     = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	ofDatadog  = "00-0000000000000000000000000000000b-0000000000000016-01"
	ofDatadog2 = "00-640cfd8d00000000000000000000000b-0000000000000016-00"
)

func TestCarriers(t *testing.T) {
	for _, c := range []struct {
		name    string
		carrier func(weir.Record) propagation.TextMapCarrier
		data    string
		want    string // "" means no span context
	}{
		{"a member", JSON, `{"traceparent":"` + parent + `","x":[1,{}]}`, parent},
		{"not on top", JSON, `{"x":{"traceparent":"` + parent + `"}}`, ""},
		{"no string", JSON, `{"traceparent":1}`, ""},
		{"null", JSON, `{"traceparent":null}`, ""},
		{"an array", JSON, `["traceparent"]`, ""},
		{"cut off", JSON, `{"traceparent":"` + parent, ""},
		{"endless", JSON, `{"traceparent":"` + strings.Repeat("0", 2000) + `"}`, ""},
		{"too large", JSON, `{"traceparent":"` + parent + `","x":"` + strings.Repeat("x", mostPayload) + `"}`, ""},
		{"no JSON", JSON, "\x00\xff", ""},
		{"empty", JSON, "", ""},
		{"W3C of Datadog", Datadog, `{"_datadog":{"traceparent":"` + parent + `","x-datadog-trace-id":"1"}}`, parent},
		{"Datadog's own", Datadog, `{"_datadog":{"x-datadog-trace-id":"11","x-datadog-parent-id":"22","x-datadog-sampling-priority":"1"}}`, ofDatadog},
		{"of 128 bits", Datadog, `{"_datadog":{"x-datadog-trace-id":"11","x-datadog-parent-id":"22","x-datadog-sampling-priority":"-1","x-datadog-tags":"_dd.p.dm=-0,_dd.p.tid=640cfd8d00000000"}}`, ofDatadog2},
		{"a damaged upper half", Datadog, `{"_datadog":{"x-datadog-trace-id":"11","x-datadog-parent-id":"22","x-datadog-tags":"_dd.p.tid=zzzzzzzzzzzzzzzz"}}`, ""},
		{"no span", Datadog, `{"_datadog":{"x-datadog-trace-id":"11"}}`, ""},
		{"trace 0", Datadog, `{"_datadog":{"x-datadog-trace-id":"0","x-datadog-parent-id":"22"}}`, ""},
		{"numbers", Datadog, `{"_datadog":{"x-datadog-trace-id":11,"x-datadog-parent-id":22}}`, ""},
		{"no object", Datadog, `{"_datadog":"x"}`, ""},
	} {
		got := c.carrier(weir.Record{Data: []byte(c.data)})
		if got == nil && c.want != "" || got != nil && got.Get("traceparent") != c.want {
			t.Errorf("%s: %v, want %q", c.name, got, c.want)
		}
	}
}

func FuzzCarriers(f *testing.F) {
	f.Add([]byte(`{"traceparent":"` + parent + `","_datadog":{"x-datadog-trace-id":"11","x-datadog-parent-id":"22"}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, carrier := range []func(weir.Record) propagation.TextMapCarrier{JSON, Datadog} {
			links := linker{carrier, propagation.TraceContext{}, 1}.of([]weir.Record{{Data: data}})
			for _, l := range links {
				if !l.SpanContext.IsValid() || !l.SpanContext.IsRemote() {
					t.Errorf("%q makes the link %v", data, l)
				}
			}
		}
	})
}

func linked(span int) weir.Record {
	return weir.Record{Data: fmt.Appendf(nil, `{"traceparent":"00-0af7651916cd43dd8448eb211c80319c-%016x-01"}`, span)}
}

func TestLinksAreBounded(t *testing.T) {
	spans := func(links []trace.Link) (ids []string) {
		for _, l := range links {
			ids = append(ids, strings.TrimLeft(l.SpanContext.SpanID().String(), "0"))
		}
		return ids
	}
	l := linker{JSON, propagation.TraceContext{}, 2}
	if got := spans(l.of([]weir.Record{{}, linked(1), linked(1), linked(2), linked(3)})); !slices.Equal(got, []string{"1", "2"}) {
		t.Errorf("links to %q, want the first two", got)
	}
	if got := l.of(append(make([]weir.Record, mostLooked), linked(1))); got != nil {
		t.Errorf("links to %v, beyond what is looked at", got)
	}
	l.carrier = func(weir.Record) propagation.TextMapCarrier { panic("x") }
	if got := l.of([]weir.Record{linked(1)}); got != nil {
		t.Errorf("a carrier that panics makes %v", got)
	}
}

func TestInstrumentsAreMade(t *testing.T) {
	made, err := newInstruments(noop.Meter{})
	if err != nil {
		t.Fatal(err)
	}
	for v, i := reflect.ValueOf(*made), 0; i < v.NumField(); i++ {
		if v.Field(i).IsNil() {
			t.Errorf("%s is nil", v.Type().Field(i).Name)
		}
	}
}
