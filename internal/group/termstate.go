package group

import (
	"github.com/weir-go/weir/internal/mono"
	"github.com/weir-go/weir/lease"
)

// termState is the state of a term that the worker checks after a heartbeat.
type termState struct {
	returned, wanted, lost, finished, stalled bool
	err                                       error
}

func (t *Term) state() termState {
	t.mu.Lock()
	defer t.mu.Unlock()
	return termState{t.returned, t.wanted, t.lost, t.finished, t.stalled, t.seldom().err}
}

// Abandon releases the lease although the reader has not returned. It is for a handler that ignores
// the end of Context. Run no longer waits for the reader, and the reader's later progress is
// ignored. Only the epoch can fence the handler's later writes to other systems.
func (t *Term) Abandon() {
	t.mu.Lock()
	t.stalled, t.left = true, true
	t.far.Lock()
	t.moveToMark()
	t.fixed = true
	t.far.Unlock()
	t.mu.Unlock()
	t.over(nil)
}

// tellRate reports whether the throughput needs its own report. A shard whose throughput was never
// reported counts as idle, so an idle shard needs no report.
func (t *Term) tellRate(now mono.Time) bool {
	rate, load := lease.Measured(float64(t.rate))
	told, was := lease.Measured(float64(t.told))
	step := max(load, was) - min(load, was)
	age := now.Sub(t.toldAt)
	return step >= loadStep && age >= ratePause || rate != told && age >= rateAge
}
