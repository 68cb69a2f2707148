package emfweir

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/weir-go/weir/event"
)

// counts contains the counted events of a shard since the last lines.
type counts struct {
	records, bytes                   int
	failures, deadLettered, throttle int
	behind                           time.Duration // maximum over the batches; negative if unknown
	handling, reading                durations
}

// most is the maximum number of values of a metric in a line.
const most = 100

// durations is a sample of measured durations. It contains all durations if there are fewer than
// most. Otherwise it contains a random choice, and the longest duration.
type durations struct {
	n       int
	longest float64
	some    []float64 // in milliseconds
}

func (d *durations) add(took time.Duration) {
	ms := float64(took) / float64(time.Millisecond)
	d.n++
	d.longest = max(d.longest, ms)
	switch {
	case len(d.some) < most-1:
		d.some = append(d.some, ms)
	default:
		if i := rand.IntN(d.n); i < len(d.some) { //nolint:gosec // a sample, no secret
			d.some[i] = ms
		}
	}
}

// values returns the values for a line.
func (d *durations) values() []float64 {
	if d.n > len(d.some) {
		return append(d.some[:len(d.some):len(d.some)], d.longest)
	}
	return d.some
}

func (c *counts) merge(other *counts) {
	c.records += other.records
	c.bytes += other.bytes
	c.failures += other.failures
	c.deadLettered += other.deadLettered
	c.throttle += other.throttle
	c.behind = max(c.behind, other.behind)
	c.handling.merge(&other.handling)
	c.reading.merge(&other.reading)
}

func (d *durations) merge(other *durations) {
	for _, ms := range other.some {
		d.add(time.Duration(ms * float64(time.Millisecond)))
	}
	d.n += other.n - len(other.some)
	d.longest = max(d.longest, other.longest)
}

// onEvent counts an event.
func (m *Metrics) onEvent(_ context.Context, e event.Event) {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch e := e.(type) {
	case event.LeaseTaken:
		m.taken++
	case event.LeaseEnded:
		if e.Reason == event.EndLost {
			m.lost++
		}
	case event.Read:
		if e.Took > 0 {
			m.of(e.Stream, e.Shard).reading.add(e.Took)
		}
	case event.BatchHandled:
		c := m.of(e.Stream, e.Shard)
		c.records += e.Records
		c.bytes += e.Bytes
		c.behind = max(c.behind, e.Behind)
		c.handling.add(e.Took)
	case event.HandlerFailed:
		m.of(e.Stream, e.Shard).failures++
	case event.DeadLettered:
		m.of(e.Stream, e.Shard).deadLettered += e.Records
	case event.ReadFailed:
		if e.Throttled {
			m.of(e.Stream, e.Shard).throttle++
		}
	}
}

// of returns the counts of a shard. The caller must hold the lock.
func (m *Metrics) of(stream, shard string) *counts {
	key := shardKey{stream, shard}
	c := m.shards[key]
	if c == nil {
		c = &counts{behind: -1}
		m.shards[key] = c
	}
	return c
}
