package sim

import (
	"fmt"
	"time"
)

// meanwhile counts what happened from the last fault until everything was well. It explains why
// that took long.
type meanwhile struct {
	killed  int   // workers that a record killed
	failed  int   // calls of handlers that failed
	letters int   // dead letters
	still   int64 // longest time without progress of an application
}

func (m *meanwhile) String() string {
	return fmt.Sprintf("meanwhile records killed %d workers, %d calls of handlers failed, %d dead letters were put, and nothing was done for %v at most",
		m.killed, m.failed, m.letters, time.Duration(m.still).Round(time.Second))
}

// unsettled checks that the application makes progress until everything is well. The time limit
// begins again with each progress. It does not begin before the faults have ended, all handlers
// that began before that have returned, and all crashed workers have restarted.
func (w *world) unsettled(wrong string) {
	d, s := &w.duties, w.settings
	done := -w.judge.Missing()
	places := uint64(0)
	for key, l := range w.books.last {
		// Dropped records, and records that were read before they expired, do not count as missing
		// any more. But the checkpoint still has to pass them.
		if w.filters != nil || w.drops || w.counts[Trim] > 0 {
			places += stirred(stirred(0, key.String()), l.Position.String())
		}
		if l.Finished() {
			done++
		}
	}
	if done != d.done || places != d.places {
		d.done, d.places, d.late = done, places, w.now()
	}
	w.meanwhile.still = max(w.meanwhile.still, w.now()-max(d.settle, d.late))
	since := max(d.settle+int64(stillPutting), d.late)
	for _, st := range w.streams {
		since = max(since, w.learned(st))
		if st.anew > 0 {
			since = max(since, st.anew+int64(s.learnsOfStream()))
		}
	}
	for _, wk := range w.workers {
		if wk.life == nil || wk.life.ends() {
			since = w.now()
		} else {
			since = max(since, wk.life.began, wk.life.hindered.begun)
		}
	}
	may := callWithin + retryMax + s.failover + 4*s.beat + s.idle + w.patience() + w.held() + w.crosses.waits()
	// A record that has killed its worker is handled again only after a pause.
	if w.killers != nil && w.letters == nil {
		may += killerPause
	}
	if w.profile.Huge > 0 {
		most := 0
		for _, wk := range w.workers {
			most = max(most, w.shardsOf(wk.life))
		}
		may += d.line.inLine(since, most)
	}
	if w.counts[ReaderStuck] > 0 || w.opensLess() {
		may += 2 * s.stall
	}
	w.within(since, may, "well", func() string { return wrong })
}

// killerPause is longer than the pause after a record has killed two workers that handled it alone.
const killerPause = 5 * time.Minute
