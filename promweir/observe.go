package promweir

import (
	"context"

	"github.com/weir-go/weir"
)

// observe returns events that update the metrics and then call the functions of next.
func (m *Metrics) observe(next weir.Events) weir.Events {
	return weir.Events{
		LeaseTaken:      locked(m, m.leaseTaken),
		LeaseEnded:      locked(m, m.leaseEnded),
		Read:            locked(m, m.read),
		BatchHandled:    locked(m, m.batchHandled),
		CheckpointSaved: locked(m, func(e weir.CheckpointSaved) { m.of(e.Stream).saving.Observe(e.Took.Seconds()) }),
		Filtered:        locked(m, func(e weir.Filtered) { m.of(e.Stream).filtered.Add(float64(e.Dropped)) }),
		HandlerFailed:   locked(m, func(e weir.HandlerFailed) { m.of(e.Stream).handlerFailures.Inc() }),
		GivenUp: locked(m, func(e weir.GivenUp) {
			m.of(e.Stream)
			m.vectors.givenUp.WithLabelValues(e.Stream, string(e.Reason)).Add(float64(e.Records))
		}),
		LettersFailed: locked(m, func(e weir.LettersFailed) { m.of(e.Stream).lettersFailures.Inc() }),
		ReadFailed: locked(m, func(e weir.ReadFailed) {
			if e.Throttled {
				m.of(e.Stream).throttled.Inc()
			} else {
				m.of(e.Stream).readFailures.Inc()
			}
		}),
		PositionExpired: locked(m, func(e weir.PositionExpired) { m.of(e.Stream).expired.Inc() }),
		StoreFailed:     locked(m, func(e weir.StoreFailed) { m.storeFailures.WithLabelValues(string(e.Op)).Inc() }),
		Leading:         locked(m, func(e weir.Leading) { m.leads, m.term = e.Leads, e.Term }),
	}.Then(next)
}

// locked returns a function that calls note while it holds the lock.
func locked[E any](m *Metrics, note func(E)) func(context.Context, E) {
	return func(_ context.Context, e E) {
		m.mu.Lock()
		defer m.mu.Unlock()
		note(e)
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
