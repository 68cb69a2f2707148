package promweir

import (
	"fmt"
	"os"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/deadletter"
	"github.com/weir-go/weir/event"
)

// Config configures [New]. The zero value is a useful configuration.
type Config struct {
	// ShardLabel adds a label with the shard to the gauges about shards. Such a series ends with
	// the worker's lease. Without the label, the gauges report the worst shard of this worker.
	// Resharding creates new values of the label forever, so leave ShardLabel off for a stream with
	// thousands of shards.
	ShardLabel bool
	// Version is the version in weir_build_info. The default is the version of the weir module in
	// this program.
	Version string
}

// Metrics contains the metrics of one consumer. It is a [prometheus.Collector], and is safe for
// concurrent use. One registry accepts the Metrics of several consumers if the consumers belong to
// different applications.
type Metrics struct {
	shardLabel bool
	described  *descriptions
	consumer   atomic.Pointer[weir.Consumer]

	// mu guards the following fields, which events change.
	mu      sync.Mutex
	streams map[string]*streamMetrics
	leads   bool
	epoch   uint64

	counters      []prometheus.Collector // the metrics with labels
	storeFailures *prometheus.CounterVec
	vectors       vectors
}

type shardKey struct{ stream, shard string }

// vectors contains the metrics that events update, by stream.
type vectors struct {
	handledRecords, handledBytes, readRecords, readBytes, reads, filtered, repeats                  *prometheus.CounterVec
	handlerFailures, deadLettered, deadLetterFailures, throttled, readFailures, expired, leaseMoves *prometheus.CounterVec
	handling, reading, saving                                                                       *prometheus.HistogramVec
}

// streamMetrics contains the metrics of one stream. It saves a lookup of labels for each event.
type streamMetrics struct {
	handledRecords, handledBytes, readRecords, readBytes, reads, filtered, repeats prometheus.Counter
	handlerFailures, deadLetterFailures, throttled, readFailures, expired          prometheus.Counter
	handling, reading, saving                                                      prometheus.Observer
}

// durations contains the bucket bounds of histograms in seconds. They are the bounds that
// OpenTelemetry recommends for messaging, and three larger ones for handlers of large batches.
var durations = []float64{.005, .01, .025, .05, .075, .1, .25, .5, .75, 1, 2.5, 5, 7.5, 10, 30, 60, 300}

// taken is the label value for a lease change that is not the end of a lease.
const taken = "taken"

var (
	endReasons = []event.EndReason{event.EndLost, event.EndFinished, event.EndHandedOff, event.EndStopped, event.EndStalled}
	// deadLetterReasons contains the reasons whose series exist from the start. Otherwise the first
	// increase of a series would not be visible.
	deadLetterReasons = []deadletter.Reason{deadletter.Rejected, deadletter.Attempts, deadletter.Age, deadletter.Killed}
)

// New returns metrics for a consumer with the given options. New replaces options.OnEvent by a
// function that updates the metrics, and then calls the previous function if there is one. Call New
// before [weir.New], and [Metrics.Watch] after it. Pass the options of a consumer to New only once.
// If Options.Worker is empty, New sets it to the default of weir.New: the host name and the process
// ID.
func New(options *weir.Options, c Config) *Metrics {
	if options.Worker == "" { // the labels are fixed now, before weir.New would set it
		host, _ := os.Hostname()
		options.Worker = fmt.Sprintf("%s-%d", strings.ToValidUTF8(host, "_"), os.Getpid())
	}
	app := prometheus.Labels{"app": options.App}
	m := &Metrics{
		shardLabel: c.ShardLabel, described: describe(app, options.Worker, version(c.Version), c.ShardLabel),
		streams: map[string]*streamMetrics{},
	}
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		v := prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help, ConstLabels: app}, labels)
		m.counters = append(m.counters, v)
		return v
	}
	histogram := func(name, help string) *prometheus.HistogramVec {
		v := prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: name, Help: help, ConstLabels: app, Buckets: durations}, []string{"stream"})
		m.counters = append(m.counters, v)
		return v
	}
	v := &m.vectors
	v.handledRecords = counter("weir_handled_records_total", "Records handled. Those of an aggregate count one by one.", "stream")
	v.handledBytes = counter("weir_handled_bytes_total", "Bytes of data handled.", "stream")
	v.readRecords = counter("weir_read_records_total", "Records read. An aggregate counts as one.", "stream")
	v.readBytes = counter("weir_read_bytes_total", "Bytes of data and keys read.", "stream")
	v.reads = counter("weir_reads_total", "Reads that returned records or the end of a shard.", "stream")
	v.repeats = counter("weir_repeats_dropped_total", "Records dropped because a producer sent them again.", "stream")
	v.filtered = counter("weir_filtered_records_total", "Records dropped by the filter.", "stream")
	v.handling = histogram("weir_handler_duration_seconds", "Duration of calls of the handler that succeeded.")
	v.reading = histogram("weir_read_duration_seconds", "Duration of reads that returned records, without fan-out.")
	v.saving = histogram("weir_checkpoint_duration_seconds", "Time in which the store saved a shard's progress.")
	v.handlerFailures = counter("weir_handler_failures_total", "Calls of the handler that failed.", "stream")
	v.deadLettered = counter("weir_dead_lettered_records_total", "Records that were dead-lettered.", "stream", "reason")
	v.deadLetterFailures = counter("weir_dead_letter_failures_total", "Failed attempts to write dead letters.", "stream")
	v.throttled = counter("weir_read_throttled_total", "Reads that the service throttled.", "stream")
	v.readFailures = counter("weir_read_failures_total", "Reads that failed for another reason.", "stream")
	v.expired = counter("weir_positions_expired_total", "Positions that expired, so that records were or may be lost before they were handled.", "stream")
	v.leaseMoves = counter("weir_lease_changes_total", "Leases taken and ended, by reason.", "stream", "reason")
	m.storeFailures = counter("weir_store_failures_total", "Failed operations on the store and listings of streams.", "op")
	for _, op := range []event.StoreOp{event.OpHeartbeat, event.OpView, event.OpApply, event.OpLead, event.OpLeave, event.OpList, event.OpStreams} {
		m.storeFailures.WithLabelValues(string(op))
	}
	options.OnEvent = event.Join(m.onEvent, options.OnEvent)
	return m
}

// Watch adds the shards of c to the metrics. c must be created with the options that were passed to
// New. A later call replaces the consumer.
func (m *Metrics) Watch(c *weir.Consumer) { m.consumer.Store(c) }

// of returns the metrics of a stream. The caller must hold the lock.
func (m *Metrics) of(stream string) *streamMetrics {
	if s := m.streams[stream]; s != nil {
		return s
	}
	v := &m.vectors
	s := &streamMetrics{
		handledRecords: v.handledRecords.WithLabelValues(stream), handledBytes: v.handledBytes.WithLabelValues(stream),
		readRecords: v.readRecords.WithLabelValues(stream), readBytes: v.readBytes.WithLabelValues(stream), reads: v.reads.WithLabelValues(stream),
		filtered: v.filtered.WithLabelValues(stream), repeats: v.repeats.WithLabelValues(stream), handlerFailures: v.handlerFailures.WithLabelValues(stream),
		deadLetterFailures: v.deadLetterFailures.WithLabelValues(stream), throttled: v.throttled.WithLabelValues(stream),
		readFailures: v.readFailures.WithLabelValues(stream), expired: v.expired.WithLabelValues(stream),
		handling: v.handling.WithLabelValues(stream), reading: v.reading.WithLabelValues(stream),
		saving: v.saving.WithLabelValues(stream),
	}
	for _, reason := range deadLetterReasons {
		v.deadLettered.WithLabelValues(stream, string(reason))
	}
	v.leaseMoves.WithLabelValues(stream, taken)
	for _, reason := range endReasons {
		v.leaseMoves.WithLabelValues(stream, reason.String())
	}
	m.streams[stream] = s
	return s
}

// version returns the given version. If it is empty, version returns the version in the program's
// build information.
func version(given string) string {
	if given != "" {
		return given
	}
	const module = "github.com/weir-go/weir"
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	if info.Main.Path == module {
		return info.Main.Version
	}
	if i := slices.IndexFunc(info.Deps, func(d *debug.Module) bool { return d.Path == module }); i >= 0 {
		return info.Deps[i].Version
	}
	return "unknown"
}
