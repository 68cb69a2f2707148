package otelweir

import (
	"context"

	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/weir-go/weir"
)

// mostLooked is the maximum number of records of a batch that are searched for trace context.
const mostLooked = 1024

// linker creates the links of spans.
type linker struct {
	carrier    func(weir.Record) propagation.TextMapCarrier
	propagator propagation.TextMapPropagator
	most       int
}

// of returns links to the spans of the records, in order and without repetition.
func (l linker) of(records []weir.Record) []trace.Link {
	if l.carrier == nil {
		return nil
	}
	return links(len(records), l.most, l.propagator, func(i int) propagation.TextMapCarrier { return l.carrier(records[i]) })
}

// links returns links to the spans of n records, at most as many as most.
func links(n, most int, propagator propagation.TextMapPropagator, carrier func(i int) propagation.TextMapCarrier) []trace.Link {
	var links []trace.Link
	seen := map[trace.SpanID]struct{}{}
	for i := range min(n, mostLooked) {
		from := extract(propagator, carrier, i)
		if !from.IsValid() {
			continue
		}
		if _, again := seen[from.SpanID()]; again {
			continue
		}
		seen[from.SpanID()] = struct{}{}
		if links = append(links, trace.Link{SpanContext: from}); len(links) == most {
			break
		}
	}
	return links
}

// extract returns the span context of record i. The result is invalid if the record has none. If
// the carrier panics, only the link is lost: the panic must not block the records.
func extract(propagator propagation.TextMapPropagator, carrier func(i int) propagation.TextMapCarrier, i int) (from trace.SpanContext) {
	defer func() {
		if recover() != nil {
			from = trace.SpanContext{}
		}
	}()
	c := carrier(i)
	if c == nil {
		return trace.SpanContext{}
	}
	return trace.SpanContextFromContext(propagator.Extract(context.Background(), c))
}
