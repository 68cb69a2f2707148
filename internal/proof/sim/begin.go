package sim

import (
	"time"

	"github.com/weir-go/weir/lease"
	"github.com/weir-go/weir/shard"
)

// clock is what the service's clock shows, which is minutes off.
func (w *world) clock() time.Time { return w.wall().Add(w.skew) }

// pins takes in that an application that starts at the tip has its first lease in the stream: what
// was put since whoever made that had learned which shards are open, when it sent the call, has to
// be handled, whatever becomes of the other leases; what was put before must not be, unless leases
// that an earlier leader wanted come late: theirs may be. The service's clock shows seconds.
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

// begin decides where the application begins, and returns how long after the stream its workers do.
func (w *world) begin() (late time.Duration) {
	w.starts = w.profile.Start
	if w.profile.Since {
		d := roll(w.seed, "since")
		late = 30 * time.Second
		w.starts = shard.At(w.clock().Add(d.span(-time.Second, late)))
	}
	return late
}
