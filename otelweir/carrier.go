package otelweir

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"go.opentelemetry.io/otel/propagation"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/aggregate"
)

// mostPayload limits the payloads that the built-in carriers parse. A Kinesis record has at most 10
// MiB; parsing one of those for a link costs more than the link is worth.
const mostPayload = 1 << 20

// mostValue limits the size of a value of trace context, in bytes.
const mostValue = 1024

// JSON returns the trace context of a record whose payload is a JSON object with the fields
// "traceparent" and, optionally, "tracestate". It returns nil for any other record. It does not
// parse payloads without the word or larger than 1 MiB.
func JSON(r weir.Record) propagation.TextMapCarrier {
	var found struct {
		Parent json.RawMessage `json:"traceparent"`
		State  json.RawMessage `json:"tracestate"`
	}
	if !look(r.Data, `"traceparent"`, &found) {
		return nil
	}
	parent := text(found.Parent)
	if parent == "" {
		return nil
	}
	return propagation.MapCarrier{"traceparent": parent, "tracestate": text(found.State)}
}

// Datadog returns the trace context that Datadog's tracers add to a JSON object, as the field
// "_datadog": its "traceparent" if there is one, otherwise its x-datadog-… fields converted to
// W3C's format. It returns nil for any other record. It does not parse payloads without the word or
// larger than 1 MiB.
func Datadog(r weir.Record) propagation.TextMapCarrier {
	var found struct {
		Datadog map[string]json.RawMessage `json:"_datadog"`
	}
	if !look(r.Data, `"_datadog"`, &found) {
		return nil
	}
	carrier := propagation.MapCarrier{}
	for _, key := range []string{"traceparent", "tracestate"} {
		if v := text(found.Datadog[key]); v != "" {
			carrier[key] = v
		}
	}
	if carrier["traceparent"] != "" {
		return carrier
	}
	parent := parentOfDatadog(func(key string) string { return text(found.Datadog["x-datadog-"+key]) })
	if parent == "" {
		return nil
	}
	return propagation.MapCarrier{"traceparent": parent}
}

// Tags returns the trace context that a producer packed with a record into an aggregate, as tags
// with the names of the propagator, such as "traceparent". It returns nil for a record without
// tags. Producers add them with [aggregate.Builder.AddTagged].
func Tags(r weir.Record) propagation.TextMapCarrier {
	tags := r.Tags()
	if tags.IsZero() {
		return nil
	}
	return ofTags{tags}
}

// ofTags is a read-only carrier.
type ofTags struct{ tags aggregate.Tags }

func (c ofTags) Get(key string) string {
	if v, _ := c.tags.Get(key); len(v) <= mostValue {
		return v
	}
	return ""
}

func (ofTags) Set(string, string) {}

func (c ofTags) Keys() (keys []string) {
	for key := range c.tags.All() {
		keys = append(keys, key)
	}
	return keys
}

// look parses data into found if it is an object that contains the word.
func look(data []byte, word string, found any) bool {
	return len(data) <= mostPayload && bytes.Contains(data, []byte(word)) && json.Unmarshal(data, found) == nil
}

// text returns v if it is a JSON string of plausible length for trace context.
func text(v json.RawMessage) (s string) {
	if len(v) > mostValue || json.Unmarshal(v, &s) != nil {
		return ""
	}
	return s
}

// parentOfDatadog converts x-datadog-… fields to a traceparent: decimal IDs of 64 bits, and the
// upper half of a trace's ID among the tags. It returns "" for invalid fields.
func parentOfDatadog(member func(key string) string) string {
	trace, err := strconv.ParseUint(member("trace-id"), 10, 64)
	if err != nil {
		return ""
	}
	span, err := strconv.ParseUint(member("parent-id"), 10, 64)
	if err != nil || trace == 0 || span == 0 {
		return ""
	}
	var upper uint64
	for tag := range strings.SplitSeq(member("tags"), ",") {
		if hex, is := strings.CutPrefix(tag, "_dd.p.tid="); is && len(hex) == 16 {
			if upper, err = strconv.ParseUint(hex, 16, 64); err != nil {
				return ""
			}
		}
	}
	sampled := 0
	if priority, err := strconv.Atoi(member("sampling-priority")); err == nil && priority > 0 {
		sampled = 1
	}
	return fmt.Sprintf("00-%016x%016x-%016x-%02x", upper, trace, span, sampled)
}
