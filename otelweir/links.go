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
	var links []trace.Link
	seen := map[trace.SpanID]struct{}{}
	for _, r := range records[:min(len(records), mostLooked)] {
		from := l.from(r)
		if !from.IsValid() {
			continue
		}
		if _, again := seen[from.SpanID()]; again {
			continue
		}
		seen[from.SpanID()] = struct{}{}
		if links = append(links, trace.Link{SpanContext: from}); len(links) == l.most {
			break
		}
	}
	return links
}

// from returns the span context of a record. The result is invalid if the record has none. If the
// carrier panics, only the link is lost: the panic must not block the records.
func (l linker) from(r weir.Record) (from trace.SpanContext) {
	defer func() {
		if recover() != nil {
			from = trace.SpanContext{}
		}
	}()
	carrier := l.carrier(r)
	if carrier == nil {
		return trace.SpanContext{}
	}
	return trace.SpanContextFromContext(l.propagator.Extract(context.Background(), carrier))
}
