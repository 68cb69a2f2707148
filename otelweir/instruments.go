package otelweir

import (
	"errors"

	"go.opentelemetry.io/otel/metric"
)

// durations are the bounds that the messaging conventions recommend, in seconds, and two more for
// slow handlers.
var durations = metric.WithExplicitBucketBoundaries(
	0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10, 30, 60)

// instruments contains all instruments, including the observable gauges.
type instruments struct {
	meter metric.Meter

	// messaging conventions
	consumedMessages  metric.Int64Counter
	operationDuration metric.Float64Histogram
	processDuration   metric.Float64Histogram

	reads, readRecords, readBytes, readThrottled, readFailures metric.Int64Counter
	readDuration                                               metric.Float64Histogram
	filteredRecords                                            metric.Int64Counter
	handledRecords, handledBytes, handlerFailures              metric.Int64Counter
	handlerDuration                                            metric.Float64Histogram
	checkpointDuration                                         metric.Float64Histogram
	givenUpRecords, lettersFailures, positionsExpired          metric.Int64Counter
	leaseChanges, storeFailures, stalls                        metric.Int64Counter

	leases, leader, leaderTerm, buildInfo, shardState metric.Int64ObservableGauge
	lag, handledLag, checkpointLag                    metric.Float64ObservableGauge
	eventsDropped                                     metric.Int64ObservableCounter
}

func newInstruments(meter metric.Meter) (*instruments, error) {
	m := maker{meter: meter}
	return &instruments{
		meter: meter,

		consumedMessages:  m.counter("messaging.client.consumed.messages", "{message}", "Records that were read, as the service counts them."),
		operationDuration: m.histogram("messaging.client.operation.duration", "How long reads took that brought records."),
		processDuration:   m.histogram("messaging.process.duration", "How long calls of the handler took."),

		reads:         m.counter("weir.reads", "{read}", "Reads that brought records or the end of a shard."),
		readRecords:   m.counter("weir.read.records", "{record}", "Records that were read; an aggregate counts as one."),
		readBytes:     m.counter("weir.read.bytes", "By", "Data and keys that were read."),
		readThrottled: m.counter("weir.read.throttled", "{read}", "Reads that the service throttled."),
		readFailures:  m.counter("weir.read.failures", "{read}", "Reads that failed otherwise."),
		readDuration:  m.histogram("weir.read.duration", "How long reads took that brought records; not with fan-out."),

		filteredRecords: m.counter("weir.filtered.records", "{record}", "Records that a filter dropped."),
		handledRecords:  m.counter("weir.handled.records", "{record}", "Records that were handled; those of an aggregate count one by one."),
		handledBytes:    m.counter("weir.handled.bytes", "By", "Data of records that were handled."),
		handlerFailures: m.counter("weir.handler.failures", "{call}", "Calls of the handler that failed."),
		handlerDuration: m.histogram("weir.handler.duration", "How long calls of the handler took."),

		checkpointDuration: m.histogram("weir.checkpoint.duration", "How long the store took to save a shard's progress."),
		givenUpRecords:     m.counter("weir.given_up.records", "{record}", "Records that were given up, with letters."),
		lettersFailures:    m.counter("weir.letters.failures", "{call}", "Times that letters could not be put."),
		positionsExpired:   m.counter("weir.positions.expired", "{position}", "Positions that expired: records left the stream unread, or may have."),

		leaseChanges:  m.counter("weir.lease.changes", "{change}", "Leases that were taken or ended."),
		storeFailures: m.counter("weir.store.failures", "{call}", "Times that the store, or the listing of a stream, did not answer as it should."),
		stalls:        m.counter("weir.stalls", "{stall}", "Leases that were given up because the shard made no progress."),

		leases:        m.gauge("weir.leases", "{lease}", "Leases that this worker holds."),
		leader:        m.gauge("weir.leader", "", "1 where this worker leads the application, else 0."),
		leaderTerm:    m.gauge("weir.leader.term", "", "The term of the leader, where this worker leads."),
		buildInfo:     m.gauge("weir.build.info", "", "1, with the version of weir and the worker."),
		shardState:    m.gauge("weir.shard.state", "{shard}", "Shards by how they stand: ok, catching_up, stalled and so on."),
		lag:           m.lag("weir.lag", "How far reading is behind the tip."),
		handledLag:    m.lag("weir.handled.lag", "How old the oldest record is that is not handled; 0 at the tip."),
		checkpointLag: m.lag("weir.checkpoint.lag", "How old the oldest record is whose progress is not saved; 0 at the tip."),
		eventsDropped: m.observedCounter("weir.events.dropped", "{event}", "Events that the counters here have missed."),
	}, errors.Join(m.failed...)
}

// maker creates instruments and collects the errors.
type maker struct {
	meter  metric.Meter
	failed []error
}

func (m *maker) note(err error) {
	if err != nil {
		m.failed = append(m.failed, err)
	}
}

func (m *maker) counter(name, unit, what string) metric.Int64Counter {
	c, err := m.meter.Int64Counter(name, metric.WithUnit(unit), metric.WithDescription(what))
	m.note(err)
	return c
}

func (m *maker) histogram(name, what string) metric.Float64Histogram {
	h, err := m.meter.Float64Histogram(name, metric.WithUnit("s"), metric.WithDescription(what), durations)
	m.note(err)
	return h
}

func (m *maker) gauge(name, unit, what string) metric.Int64ObservableGauge {
	g, err := m.meter.Int64ObservableGauge(name, metric.WithUnit(unit), metric.WithDescription(what))
	m.note(err)
	return g
}

func (m *maker) lag(name, what string) metric.Float64ObservableGauge {
	g, err := m.meter.Float64ObservableGauge(name, metric.WithUnit("s"), metric.WithDescription(what))
	m.note(err)
	return g
}

func (m *maker) observedCounter(name, unit, what string) metric.Int64ObservableCounter {
	c, err := m.meter.Int64ObservableCounter(name, metric.WithUnit(unit), metric.WithDescription(what))
	m.note(err)
	return c
}
