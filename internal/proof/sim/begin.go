package sim

import (
	"time"

	"github.com/weir-go/weir/lease"
	"github.com/weir-go/weir/shard"
)

// clock returns the time of the service's clock, which differs from the true time by up to some
// minutes.
func (w *world) clock() time.Time { return w.wall().Add(w.skew) }

// pins notes the first lease of an application that starts at the tip. The creator of a lease first
// queries which shards are open; that moment is the pin. Records that are put after the pin must be
// handled, even if other leases are created later. Earlier records must not be handled, unless
// leases of an earlier leader arrive late. Records from the last 1.1 s before the pin may be
// handled, because the service's clock has a resolution of a second.
func (w *world) pins(by map[string]int64, made *lease.Lease) {
	st := w.streamNamed(made.Stream).now
	if st == nil || w.starts.Kind() != shard.Tip {
		return
	}
	first := !w.books.pinned[st.Life]
	if !first && made.Position.Kind() != shard.Time {
		return
	}
	w.books.pinned[st.Life] = true
	pin := by[made.Stream]
	for _, sh := range st.Shards {
		for _, c := range w.books.kept[sh.Name] {
			if first && c.at >= pin {
				break
			}
			early := c.at < pin-int64(1100*time.Millisecond)
			for _, id := range c.ids {
				if first {
					w.judge.Exempt(id)
				}
				w.books.early[id] = early && (first || w.books.early[id])
			}
		}
	}
}

// begin chooses the start position of the application. It returns how long after the creation of
// the stream the workers start.
func (w *world) begin() (late time.Duration) {
	w.starts = w.profile.Start
	if w.profile.Since {
		d := roll(w.seed, "since")
		late = 30 * time.Second
		w.starts = shard.At(w.clock().Add(d.span(-time.Second, late)))
	}
	return late
}
