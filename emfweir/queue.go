package emfweir

import (
	"cmp"
	"context"
	"errors"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weir-go/weir/queue"
)

// QueueMetrics collects the metrics of one consumer of a queue. It is safe for concurrent use.
type QueueMetrics struct {
	namespace, queue string
	every            time.Duration
	consumer         atomic.Pointer[queue.Consumer]

	mu     sync.Mutex   // guards the fields below
	before queue.Counts // as of the last line
	took   callTimes    // since the last line
}

// callTimes are the durations of calls.
type callTimes struct{ handling, receiving, acknowledging durations }

// NewQueue returns metrics for a consumer of a queue with the given options. NewQueue adds
// functions to options.Events, which measure durations. Call it before [queue.New], and
// [QueueMetrics.Watch] after it. The default of Config.Namespace is options.App, or options.Queue.
// The error names an invalid field of Config. A queue has no shards, so Config.ByShard must not be
// set.
func NewQueue(options *queue.Options, c Config) (*QueueMetrics, error) {
	err := c.complete(cmp.Or(options.App, options.Queue))
	if c.ByShard {
		err = errors.Join(err, errors.New("emfweir: ByShard is set, and a queue has no shards"))
	}
	if err != nil {
		return nil, err
	}
	m := &QueueMetrics{namespace: c.Namespace, queue: options.Queue, every: c.Every}
	measure := func(of *durations, took time.Duration) {
		m.mu.Lock()
		defer m.mu.Unlock()
		of.add(took)
	}
	options.Events = queue.JoinEvents(queue.Events{
		Handled: func(_ context.Context, e queue.Handled) { measure(&m.took.handling, e.Took) },
		Received: func(_ context.Context, e queue.Received) {
			if e.Records > 0 {
				measure(&m.took.receiving, e.Took)
			}
		},
		Acknowledged: func(_ context.Context, e queue.Acknowledged) { measure(&m.took.acknowledging, e.Took) },
	}, options.Events)
	return m, nil
}

// Watch makes the metrics report the numbers of c, which must be created with the options that were
// passed to [NewQueue]. A later call replaces the consumer.
func (m *QueueMetrics) Watch(c *queue.Consumer) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.before = queue.Counts{}
	m.consumer.Store(c)
}

// Run writes a line to w after each interval until ctx ends, and then the last one. It writes each
// line with one call of Write. It stops at the first error of w.
func (m *QueueMetrics) Run(ctx context.Context, w io.Writer) error {
	return runEvery(ctx, m.every, func() error {
		return writeLines(w, m.namespace, []line{m.line()})
	})
}

// line returns the line for the counts since its last call.
func (m *QueueMetrics) line() line {
	m.mu.Lock()
	defer m.mu.Unlock()
	var now queue.Counts
	if c := m.consumer.Load(); c != nil {
		now = c.Counts()
	}
	before, took := m.before, m.took
	m.before, m.took = now, callTimes{}
	l := line{dimensions: []pair{{"Operation", "ProcessTask"}, {"QueueName", m.queue}}}
	count := func(name string, n int) { l.metrics = append(l.metrics, metric{name, "Count", n}) }
	count("RecordsReceived", now.Received-before.Received)
	count("RecordsProcessed", now.Handled-before.Handled)
	count("RecordsAcknowledged", now.Acknowledged-before.Acknowledged)
	count("RecordsInFlight", now.InFlight)
	for _, d := range []struct {
		name string
		of   *durations
	}{{"RecordProcessor.processRecords.Time", &took.handling}, {"ReceiveQueueRecords.Time", &took.receiving}, {"AcknowledgeQueueRecords.Time", &took.acknowledging}} {
		if d.of.n > 0 {
			l.metrics = append(l.metrics, metric{d.name, "Milliseconds", d.of.values()})
		}
	}
	for _, n := range []struct { // left out if they are 0, as for streams
		name string
		of   int
	}{
		{"RecordsFailed", now.Failed - before.Failed},
		{"RecordsDeadLettered", now.SetAside - before.SetAside},
		{"RecordsFiltered", now.Filtered - before.Filtered},
		{"RecordsRedelivered", now.Redelivered - before.Redelivered},
		{"RecordsReleased", now.Released - before.Released},
		{"RecordsNotAcknowledged", now.NotAcknowledged - before.NotAcknowledged},
		{"ReceivesFailed", now.FailedReceives - before.FailedReceives},
		{"ReceivesSpent", now.Spent - before.Spent},
		{"HoldsLost", now.HoldsLost - before.HoldsLost},
	} {
		if n.of > 0 {
			count(n.name, n.of)
		}
	}
	return l
}
