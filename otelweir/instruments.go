package otelweir

import (
	"errors"

	"go.opentelemetry.io/otel/metric"
)

// durations contains the bucket bounds of histograms in seconds. They are the bounds that the
// messaging conventions recommend, and two larger ones for slow handlers.
var durations = metric.WithExplicitBucketBoundaries(
	0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10, 30, 60)

// instruments contains all instruments, including the observable gauges.
type instruments struct {
	meter metric.Meter

	// Instruments of the messaging conventions.
	consumedMessages  metric.Int64Counter
	operationDuration metric.Float64Histogram
	processDuration   metric.Float64Histogram

	reads, readRecords, readBytes, readThrottled, readFailures metric.Int64Counter
	readDuration                                               metric.Float64Histogram
	filteredRecords, repeatsDropped                            metric.Int64Counter
	handledRecords, handledBytes, handlerFailures              metric.Int64Counter
	handlerDuration                                            metric.Float64Histogram
	checkpointDuration                                         metric.Float64Histogram
	deadLetteredRecords, deadLetterFailures, positionsExpired  metric.Int64Counter
	leaseChanges, storeFailures, stalls                        metric.Int64Counter

	leases, leader, leaderEpoch, buildInfo, shardState metric.Int64ObservableGauge
	lag, handledLag, checkpointLag                     metric.Float64ObservableGauge
	eventsDropped                                      metric.Int64ObservableCounter
}

func newInstruments(meter metric.Meter) (*instruments, error) {
	m := maker{meter: meter}
	return &instruments{
		meter: meter,

		consumedMessages:  m.counter("messaging.client.consumed.messages", "{message}", "Records read, as the service counts them."),
		operationDuration: m.histogram("messaging.client.operation.duration", "Duration of reads that returned records."),
		processDuration:   m.histogram("messaging.process.duration", "Duration of calls of the handler."),

		reads:         m.counter("weir.reads", "{read}", "Reads that returned records or the end of a shard."),
		readRecords:   m.counter("weir.read.records", "{record}", "Records read. An aggregate counts as one."),
		readBytes:     m.counter("weir.read.bytes", "By", "Bytes of data and keys read."),
		readThrottled: m.counter("weir.read.throttled", "{read}", "Reads that the service throttled."),
		readFailures:  m.counter("weir.read.failures", "{read}", "Reads that failed for another reason."),
		readDuration:  m.histogram("weir.read.duration", "Duration of reads that returned records, without fan-out."),

		repeatsDropped:  m.counter("weir.repeats.dropped", "{record}", "Records dropped because a producer sent them again."),
		filteredRecords: m.counter("weir.filtered.records", "{record}", "Records dropped by a filter."),
		handledRecords:  m.counter("weir.handled.records", "{record}", "Records handled. Those of an aggregate count one by one."),
		handledBytes:    m.counter("weir.handled.bytes", "By", "Bytes of data handled."),
		handlerFailures: m.counter("weir.handler.failures", "{call}", "Calls of the handler that failed."),
		handlerDuration: m.histogram("weir.handler.duration", "Duration of calls of the handler."),

		checkpointDuration:  m.histogram("weir.checkpoint.duration", "Time in which the store saved a shard's progress."),
		deadLetteredRecords: m.counter("weir.dead_lettered.records", "{record}", "Records that were dead-lettered."),
		deadLetterFailures:  m.counter("weir.dead_letter.failures", "{call}", "Failed attempts to write dead letters."),
		positionsExpired:    m.counter("weir.positions.expired", "{position}", "Positions that expired, so that records were or may be lost before they were handled."),

		leaseChanges:  m.counter("weir.lease.changes", "{change}", "Leases taken or ended."),
		storeFailures: m.counter("weir.store.failures", "{call}", "Failed operations on the store and listings of streams."),
		stalls:        m.counter("weir.stalls", "{stall}", "Leases released because the shard made no progress."),

		leases:        m.gauge("weir.leases", "{lease}", "Leases held by this worker."),
		leader:        m.gauge("weir.leader", "", "Whether this worker leads the application: 1 or 0."),
		leaderEpoch:   m.gauge("weir.leader.epoch", "", "The number of changes of the leader, if this worker leads."),
		buildInfo:     m.gauge("weir.build.info", "", "1, with the version of weir and the worker."),
		shardState:    m.gauge("weir.shard.state", "{shard}", "Shards by state: ok, catching_up, stalled and so on."),
		lag:           m.lag("weir.lag", "How far reading is behind the tip."),
		handledLag:    m.lag("weir.handled.lag", "Age of the oldest unhandled record; 0 at the tip."),
		checkpointLag: m.lag("weir.checkpoint.lag", "Age of the oldest record after the saved checkpoint; 0 at the tip."),
		eventsDropped: m.observedCounter("weir.events.dropped", "{event}", "Events that these counters missed."),
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
