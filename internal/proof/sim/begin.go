package sim

import (
	"time"

	"github.com/weir-go/weir/lease"
	"github.com/weir-go/weir/shard"
)

// clock returns the time of the service's clock, which differs from the true time by up to some
// minutes.
func (w *world) clock() time.Time { return w.wall().Add(w.skew) }

// pins notes that a lease was created in an application that starts at the tip. by has the pin of
// each stream: the time at which the creator of the lease queried which shards are open. Records
// that are put after the pin of the first lease must be handled. Records that are put more than
// 1.1 s before it must not be handled. Records in between may be handled, because the service's
// clock has a resolution of a second. A lease that an earlier leader asked for may be created after
// the first one. Its pin is earlier, so records after that pin may be handled, too.
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
