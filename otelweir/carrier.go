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

// mostPayload is the maximum size of a payload that the built-in carriers parse. A Kinesis record
// can have 10 MiB, and parsing such a record costs more than a link is worth.
const mostPayload = 1 << 20

// mostValue is the maximum size of a value of trace context in bytes.
const mostValue = 1024

// JSON returns the trace context of a record whose payload is a JSON object. The object must have
// the field "traceparent", and may have "tracestate". For any other record, JSON returns nil. JSON
// does not parse payloads that are larger than 1 MiB, or that do not contain the word traceparent.
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

// Datadog returns the trace context that Datadog's tracers add to a JSON object in the field
// "_datadog". It uses the "traceparent" in that field. If there is none, Datadog converts the
// x-datadog-… fields to W3C's format. For any other record, Datadog returns nil. Datadog does not
// parse payloads that are larger than 1 MiB, or that do not contain the word _datadog.
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

// Tags returns the trace context that a producer added to a record in an aggregate. The trace
// context is in tags that have the propagator's names, for example "traceparent". A producer adds
// them with [aggregate.Builder.AddTagged]. Tags returns nil for a record without tags.
func Tags(r weir.Record) propagation.TextMapCarrier {
	tags := r.Tags()
	if tags.IsZero() {
		return nil
	}
	return ofTags{tags}
}

// ofTags is a read-only carrier for the tags of a record.
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

// look parses data into found if data contains the word and is not too large. It reports whether
// data was parsed.
func look(data []byte, word string, found any) bool {
	return len(data) <= mostPayload && bytes.Contains(data, []byte(word)) && json.Unmarshal(data, found) == nil
}

// text returns the string in v. It returns "" if v is not a JSON string, or is too long for trace
// context.
func text(v json.RawMessage) (s string) {
	if len(v) > mostValue || json.Unmarshal(v, &s) != nil {
		return ""
	}
	return s
}

// parentOfDatadog converts x-datadog-… fields to a traceparent. The fields contain decimal IDs of
// 64 bits, and the tags contain the upper half of the trace ID. It returns "" if a field is
// invalid.
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
