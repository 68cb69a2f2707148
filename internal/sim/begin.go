package sim

import (
	"time"

	"github.com/weir-go/weir/shard"
)

// clock is what the service's clock shows, which is minutes off.
func (w *world) clock() time.Time { return w.wall().Add(w.skew) }

// pins takes in that an application that starts at the tip has its first lease in the stream: what was put since whoever made that learned
// which shards are open has to be handled, whatever becomes of the other leases; what was put before must not be. The service's clock shows
// seconds.
func (w *world) pins(by *life, name string) {
	st := w.streamNamed(name).now
	if st == nil || w.starts.Kind() != shard.Tip || w.books.pinned[st.Life] {
		return
	}
	w.books.pinned[st.Life] = true
	for _, sh := range st.Shards {
		for _, c := range w.books.kept[sh.Name] {
			if c.at >= by.pins[name] {
				break
			}
			for _, id := range c.ids {
				w.judge.Exempt(id)
				w.books.early[id] = c.at < by.pins[name]-int64(1100*time.Millisecond)
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
