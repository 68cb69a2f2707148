package sim

import (
	"time"
)

// makeParallel chooses random options for parallel keys.
func (w *world) makeParallel() {
	if !w.profile.Parallel && !w.crosses.has(featPartitions) {
		return
	}
	d := roll(w.seed, "parallel")
	if w.crosses.has(featPartitions) && d.chance(.5) {
		w.judge.Span = 10_000 // the default, as the options are left out
		return
	}
	p := &w.parallel
	p.Keys, p.MaxCalls, p.MaxRecords, p.MaxBytes = 2+d.below(15), 1+d.below(12), 100+d.below(100), 1<<20
	if d.chance(.3) {
		p.MaxAge = d.span(time.Second, 20*time.Second)
	}
	w.judge.Span = p.MaxRecords
}
