package promweir

import (
	"context"

	"github.com/weir-go/weir"
)

// observe returns events that change the metrics and then call next.
func (m *Metrics) observe(next weir.Events) weir.Events {
	all := next
	all.LeaseTaken = before(m, next.LeaseTaken, m.leaseTaken)
	all.LeaseEnded = before(m, next.LeaseEnded, m.leaseEnded)
	all.Read = before(m, next.Read, m.read)
	all.BatchHandled = before(m, next.BatchHandled, m.batchHandled)
	all.CheckpointSaved = before(m, next.CheckpointSaved, func(e weir.CheckpointSaved) { m.of(e.Stream).saving.Observe(e.Took.Seconds()) })
	all.Filtered = before(m, next.Filtered, func(e weir.Filtered) { m.of(e.Stream).filtered.Add(float64(e.Dropped)) })
	all.HandlerFailed = before(m, next.HandlerFailed, func(e weir.HandlerFailed) { m.of(e.Stream).handlerFailures.Inc() })
	all.GivenUp = before(m, next.GivenUp, func(e weir.GivenUp) {
		m.of(e.Stream)
		m.vectors.givenUp.WithLabelValues(e.Stream, string(e.Reason)).Add(float64(e.Records))
	})
	all.LettersFailed = before(m, next.LettersFailed, func(e weir.LettersFailed) { m.of(e.Stream).lettersFailures.Inc() })
	all.ReadFailed = before(m, next.ReadFailed, func(e weir.ReadFailed) {
		if e.Throttled {
			m.of(e.Stream).throttled.Inc()
		} else {
			m.of(e.Stream).readFailures.Inc()
		}
	})
	all.PositionExpired = before(m, next.PositionExpired, func(e weir.PositionExpired) { m.of(e.Stream).expired.Inc() })
	all.StoreFailed = before(m, next.StoreFailed, func(e weir.StoreFailed) { m.storeFailures.WithLabelValues(string(e.Op)).Inc() })
	all.Leading = before(m, next.Leading, func(e weir.Leading) { m.leads, m.term = e.Leads, e.Term })
	return all
}

// before returns a function that has note change the metrics, and calls next.
func before[E any](m *Metrics, next func(context.Context, E), note func(E)) func(context.Context, E) {
	return func(ctx context.Context, e E) {
		m.mu.Lock()
		note(e)
		m.mu.Unlock()
		if next != nil {
			next(ctx, e)
		}
	}
}

func (m *Metrics) leaseTaken(e weir.LeaseTaken) {
	m.of(e.Stream)
	m.vectors.leaseMoves.WithLabelValues(e.Stream, taken).Inc()
}

func (m *Metrics) leaseEnded(e weir.LeaseEnded) {
	m.of(e.Stream)
	m.vectors.leaseMoves.WithLabelValues(e.Stream, e.Reason.String()).Inc()
}

func (m *Metrics) read(e weir.Read) {
	s := m.of(e.Stream)
	s.reads.Inc()
	s.readRecords.Add(float64(e.Records))
	s.readBytes.Add(float64(e.Bytes))
	if e.Took > 0 {
		s.reading.Observe(e.Took.Seconds())
	}
}

func (m *Metrics) batchHandled(e weir.BatchHandled) {
	s := m.of(e.Stream)
	s.handledRecords.Add(float64(e.Records))
	s.handledBytes.Add(float64(e.Bytes))
	s.handling.Observe(e.Took.Seconds())
}
