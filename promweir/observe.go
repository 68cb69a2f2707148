package promweir

import (
	"context"

	"github.com/weir-go/weir/event"
)

// onEvent updates the metrics for an event.
func (m *Metrics) onEvent(_ context.Context, e event.Event) {
	if _, ignored := e.(event.BatchBegins); ignored { // the most frequent event
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	switch e := e.(type) {
	case event.Read:
		m.read(e)
	case event.BatchHandled:
		m.batchHandled(e)
	case event.CheckpointSaved:
		m.of(e.Stream).saving.Observe(e.Took.Seconds())
	case event.Unpacked:
		m.of(e.Stream).repeats.Add(float64(e.Repeats))
	case event.Filtered:
		m.of(e.Stream).filtered.Add(float64(e.Dropped))
	case event.HandlerFailed:
		m.of(e.Stream).handlerFailures.Inc()
	case event.DeadLettered:
		m.of(e.Stream)
		m.vectors.deadLettered.WithLabelValues(e.Stream, string(e.Reason)).Add(float64(e.Records))
	case event.DeadLetterFailed:
		m.of(e.Stream).deadLetterFailures.Inc()
	case event.ReadFailed:
		if e.Throttled {
			m.of(e.Stream).throttled.Inc()
		} else {
			m.of(e.Stream).readFailures.Inc()
		}
	case event.PositionExpired:
		m.of(e.Stream).expired.Inc()
	case event.LeaseTaken:
		m.of(e.Stream)
		m.vectors.leaseMoves.WithLabelValues(e.Stream, taken).Inc()
	case event.LeaseEnded:
		m.of(e.Stream)
		m.vectors.leaseMoves.WithLabelValues(e.Stream, e.Reason.String()).Inc()
	case event.StoreFailed:
		m.storeFailures.WithLabelValues(string(e.Op)).Inc()
	case event.Leading:
		m.leads, m.epoch = e.Leads, e.Epoch
	}
}

func (m *Metrics) read(e event.Read) {
	s := m.of(e.Stream)
	s.reads.Inc()
	s.readRecords.Add(float64(e.Records))
	s.readBytes.Add(float64(e.Bytes))
	if e.Took > 0 {
		s.reading.Observe(e.Took.Seconds())
	}
}

func (m *Metrics) batchHandled(e event.BatchHandled) {
	s := m.of(e.Stream)
	s.handledRecords.Add(float64(e.Records))
	s.handledBytes.Add(float64(e.Bytes))
	s.handling.Observe(e.Took.Seconds())
}
