package otelweir

import (
	"sync"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
)

// The attribute keys. OpenTelemetry's messaging conventions are still in development, so names may
// change.
const (
	systemKey     = attribute.Key("messaging.system")
	systemNameKey = attribute.Key("messaging.system.name") // since version 1.45 of the conventions
	operationName = attribute.Key("messaging.operation.name")
	operationType = attribute.Key("messaging.operation.type")
	destination   = attribute.Key("messaging.destination.name")
	partition     = attribute.Key("messaging.destination.partition.id")
	group         = attribute.Key("messaging.consumer.group.name")
	client        = attribute.Key("messaging.client.id")
	messageCount  = attribute.Key("messaging.batch.message_count")
	streamName    = attribute.Key("aws.kinesis.stream_name")
	errorType     = attribute.Key("error.type")

	// contextDropped marks the span of a record that was stored without its trace context.
	contextDropped = attribute.Key("weir.context.dropped")

	appKey     = attribute.Key("app")
	streamKey  = attribute.Key("stream")
	shardKey   = attribute.Key("shard")
	reasonKey  = attribute.Key("reason")
	stateKey   = attribute.Key("state")
	opKey      = attribute.Key("op")
	workerKey  = attribute.Key("worker")
	versionKey = attribute.Key("version")
)

// kinesis is the value of systemKey and systemNameKey. OpenTelemetry has not registered a value for
// Kinesis.
const kinesis = "aws.kinesis"

// ofStream contains the attributes of one stream. They are created only once.
type ofStream struct {
	own  []metric.AddOption    // the attributes app and stream
	ownR []metric.RecordOption // the same attributes
	// Attributes of the messaging conventions.
	read     []metric.AddOption
	readR    []metric.RecordOption
	process  attribute.Set
	processR []metric.RecordOption
	span     []attribute.KeyValue // attributes of a process span, except for the shard and the number of records
	poll     []attribute.KeyValue // attributes of a read span, with the same exceptions
	// The names of the spans.
	processSpan, pollSpan string
}

// streams contains the attributes of all streams that the consumer has read so far.
type streams struct {
	mu    sync.RWMutex
	known map[string]*ofStream
}

// of returns the attributes of a stream.
func (t *Telemetry) of(stream string) *ofStream {
	s := &t.streams
	s.mu.RLock()
	known := s.known[stream]
	s.mu.RUnlock()
	if known != nil {
		return known
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if known := s.known[stream]; known != nil {
		return known
	}
	if s.known == nil {
		s.known = map[string]*ofStream{}
	}
	made := t.attributesOf(stream)
	s.known[stream] = made
	return made
}

func (t *Telemetry) attributesOf(stream string) *ofStream {
	own := metric.WithAttributeSet(attribute.NewSet(appKey.String(t.app), streamKey.String(stream)))
	messaging := func(name, kind string) []attribute.KeyValue {
		return append([]attribute.KeyValue{
			operationName.String(name), operationType.String(kind),
			destination.String(stream), group.String(t.app), streamName.String(stream),
		}, t.system...)
	}
	read, process := attribute.NewSet(messaging("poll", "receive")...), attribute.NewSet(messaging("process", "process")...)
	return &ofStream{
		own: []metric.AddOption{own}, ownR: []metric.RecordOption{own},
		read: []metric.AddOption{metric.WithAttributeSet(read)}, readR: []metric.RecordOption{metric.WithAttributeSet(read)},
		process: process, processR: []metric.RecordOption{metric.WithAttributeSet(process)},
		span:        append(messaging("process", "process"), client.String(t.worker)),
		poll:        append(messaging("poll", "receive"), client.String(t.worker)),
		processSpan: "process " + stream, pollSpan: "poll " + stream,
	}
}

// seen returns the names of the streams that the consumer has read so far.
func (s *streams) seen() []string {
	s.mu.RLock()
	defer s.mu.RUnlock()
	names := make([]string, 0, len(s.known))
	for name := range s.known {
		names = append(names, name)
	}
	return names
}

// with returns the attributes app and stream, and one more attribute.
func (t *Telemetry) with(stream string, more attribute.KeyValue) metric.MeasurementOption {
	return metric.WithAttributeSet(attribute.NewSet(appKey.String(t.app), streamKey.String(stream), more))
}
