package promweir

import (
	"context"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/weir-go/weir/queue"
)

// QueueMetrics contains the metrics of one consumer of a Kinesis queue. It is a
// [prometheus.Collector], and is safe for concurrent use. One registry accepts the QueueMetrics of
// several consumers if these have different applications or queues.
type QueueMetrics struct {
	consumer                        atomic.Pointer[queue.Consumer]
	counters                        []queueCounter
	gauges                          []queueGauge
	ready                           *prometheus.Desc
	handling, receiving, confirming prometheus.Histogram
}

// queueCounter is a metric that the consumer counts itself, exactly.
type queueCounter struct {
	desc   *prometheus.Desc
	of     func(*queue.Counts) int
	labels []string // values
}

type queueGauge struct {
	desc *prometheus.Desc
	of   func(*queue.Counts) float64
}

// NewQueue returns metrics for a consumer of a queue with the given options. NewQueue adds
// functions to options.Events, which measure durations. Call it before [queue.New], and
// [QueueMetrics.Watch] after it. The labels of all metrics are app and queue, with the values of
// the options.
func NewQueue(options *queue.Options) *QueueMetrics {
	app := options.App
	if app == "" {
		app = options.Queue
	}
	constant := prometheus.Labels{"app": app, "queue": options.Queue}
	m := &QueueMetrics{ready: prometheus.NewDesc("weir_queue_ready", "Whether the consumer receives records: 1 or 0.", nil, constant)}
	counter := func(name, help string, of func(*queue.Counts) int) {
		m.counters = append(m.counters, queueCounter{prometheus.NewDesc(name, help, nil, constant), of, nil})
	}
	counter("weir_queue_received_records_total", "Deliveries of records or aggregates.", func(n *queue.Counts) int { return n.Received })
	counter("weir_queue_redelivered_records_total", "Deliveries of records that this process still had, or had before.", func(n *queue.Counts) int { return n.Redelivered })
	counter("weir_queue_filtered_records_total", "Records dropped by the filter.", func(n *queue.Counts) int { return n.Filtered })
	counter("weir_queue_handled_records_total", "Records handled. Those of an aggregate count one by one.", func(n *queue.Counts) int { return n.Handled })
	counter("weir_queue_failed_records_total", "Records in failed calls of the handler.", func(n *queue.Counts) int { return n.Failed })
	counter("weir_queue_acknowledged_records_total", "Deliveries that were acknowledged.", func(n *queue.Counts) int { return n.Acknowledged })
	counter("weir_queue_unacknowledged_records_total", "Deliveries whose acknowledgement was refused for good.", func(n *queue.Counts) int { return n.NotAcknowledged })
	counter("weir_queue_set_aside_records_total", "Records that were dead-lettered, or left to the dead letters of the queue.", func(n *queue.Counts) int { return n.SetAside })
	counter("weir_queue_released_records_total", "Deliveries that were made visible again.", func(n *queue.Counts) int { return n.Released })
	counter("weir_queue_extended_holds_total", "Extensions of holds.", func(n *queue.Counts) int { return n.Extended })
	counter("weir_queue_lost_holds_total", "Holds that were lost, so that another consumer may get the record.", func(n *queue.Counts) int { return n.HoldsLost })
	counter("weir_queue_spent_receives_total", "Receive counts that were spent without a failure of the handler.", func(n *queue.Counts) int { return n.Spent })
	calls := prometheus.NewDesc("weir_queue_calls_total", "Calls of the service.", []string{"call"}, constant)
	receives := prometheus.NewDesc("weir_queue_receives_total", "Receives by result.", []string{"result"}, constant)
	m.counters = append(m.counters,
		queueCounter{receives, func(n *queue.Counts) int { return n.Receives - n.EmptyReceives - n.FailedReceives }, []string{"records"}},
		queueCounter{receives, func(n *queue.Counts) int { return n.EmptyReceives }, []string{"empty"}},
		queueCounter{receives, func(n *queue.Counts) int { return n.FailedReceives }, []string{"failed"}},
		queueCounter{calls, func(n *queue.Counts) int { return n.Receives }, []string{"receive"}},
		queueCounter{calls, func(n *queue.Counts) int { return n.AckCalls }, []string{"acknowledge"}},
		queueCounter{calls, func(n *queue.Counts) int { return n.VisibilityCalls }, []string{"visibility"}},
	)
	gauge := func(name, help string, of func(*queue.Counts) float64) {
		m.gauges = append(m.gauges, queueGauge{prometheus.NewDesc(name, help, nil, constant), of})
	}
	gauge("weir_queue_in_flight_records", "Deliveries that this process has.", func(n *queue.Counts) float64 { return float64(n.InFlight) })
	gauge("weir_queue_handler_calls", "Calls of the handler that are running.", func(n *queue.Counts) float64 { return float64(n.Handling) })
	gauge("weir_queue_buffered_bytes", "Bytes of data in memory.", func(n *queue.Counts) float64 { return float64(n.Bytes) })
	histogram := func(name, help string) prometheus.Histogram {
		return prometheus.NewHistogram(prometheus.HistogramOpts{Name: name, Help: help, ConstLabels: constant, Buckets: durations})
	}
	m.handling = histogram("weir_queue_handler_duration_seconds", "Duration of calls of the handler.")
	m.receiving = histogram("weir_queue_receive_duration_seconds", "Duration of receives that returned records.")
	m.confirming = histogram("weir_queue_acknowledge_duration_seconds", "Duration of calls that acknowledge records.")
	options.Events = queue.JoinEvents(queue.Events{
		Handled: func(_ context.Context, e queue.Handled) { m.handling.Observe(e.Took.Seconds()) },
		Received: func(_ context.Context, e queue.Received) {
			if e.Records > 0 {
				m.receiving.Observe(e.Took.Seconds())
			}
		},
		Acknowledged: func(_ context.Context, e queue.Acknowledged) { m.confirming.Observe(e.Took.Seconds()) },
	}, options.Events)
	return m
}

// Watch makes the metrics report the numbers of c, which must be created with the options that were
// passed to [NewQueue]. A later call replaces the consumer.
func (m *QueueMetrics) Watch(c *queue.Consumer) { m.consumer.Store(c) }

// Describe sends the descriptions of all metrics to the channel.
func (m *QueueMetrics) Describe(to chan<- *prometheus.Desc) {
	seen := map[*prometheus.Desc]bool{}
	for _, c := range m.counters {
		if !seen[c.desc] {
			to <- c.desc
		}
		seen[c.desc] = true
	}
	for _, g := range m.gauges {
		to <- g.desc
	}
	to <- m.ready
	for _, h := range []prometheus.Histogram{m.handling, m.receiving, m.confirming} {
		h.Describe(to)
	}
}

// Collect sends the current values of all metrics to the channel. Only the durations appear before
// [QueueMetrics.Watch].
func (m *QueueMetrics) Collect(to chan<- prometheus.Metric) {
	for _, h := range []prometheus.Histogram{m.handling, m.receiving, m.confirming} {
		h.Collect(to)
	}
	c := m.consumer.Load()
	if c == nil {
		return
	}
	n := c.Counts()
	for _, counter := range m.counters {
		to <- prometheus.MustNewConstMetric(counter.desc, prometheus.CounterValue, float64(counter.of(&n)), counter.labels...)
	}
	for _, g := range m.gauges {
		to <- prometheus.MustNewConstMetric(g.desc, prometheus.GaugeValue, g.of(&n))
	}
	ready := 0.0
	if c.Ready() == nil {
		ready = 1
	}
	to <- prometheus.MustNewConstMetric(m.ready, prometheus.GaugeValue, ready)
}
