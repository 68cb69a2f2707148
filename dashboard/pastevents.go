package dashboard

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/weir-go/weir/health"
	"github.com/weir-go/weir/internal/history"
	"github.com/weir-go/weir/lease"
)

// events returns the events that the history shows, oldest first. Their times are accurate to the
// minute. It returns events before the given time only, because later ones are seen in the store.
func (p past) events(before time.Time) (all []event) {
	byMinute := map[int64][]event{}
	add := func(minute int64, kind eventKind, over bool, text string, key lease.Key, sessions ...string) {
		e := event{
			at: time.Unix(60*minute, 0), after: time.Unix(60*minute, 0), kind: kind, over: over,
			text: text, shards: []lease.Key{key}, past: true,
		}
		for _, s := range sessions {
			if name := p.name(s); !slices.Contains(e.workers, name) {
				e.workers = append(e.workers, name)
			}
		}
		if e.at.Before(before) {
			byMinute[minute] = append(byMinute[minute], e)
		}
	}
	for _, key := range slices.SortedFunc(maps.Keys(p.shards), lease.Key.Compare) {
		moments := p.shards[key]
		stalls := false
		for _, h := range happenings(moments) {
			from, to := p.name(h.from), p.name(h.to)
			switch h.what {
			case handedOver:
				add(h.minute, handoverEvent, false, "from "+from+" to "+to, key, h.from, h.to)
			case takenOver:
				add(h.minute, handoverEvent, false, "from "+from+", which died, to "+to, key, h.from, h.to)
			case regainedAfterLoss:
				add(h.minute, handoverEvent, false, "to "+to+", after "+from+" had lost it", key, h.from, h.to)
			}
		}
		fails := false
		for _, m := range moments {
			if now := m.marks&history.Stalled != 0; now != stalls {
				if stalls = now; now {
					add(m.minute, stallEvent, false, health.Stalled.String(), key, m.session)
				} else {
					add(m.minute, stallEvent, true, "not "+health.Stalled.String()+" any more", key, m.session)
				}
			}
			if now := m.marks&history.Failing != 0; now != fails {
				if fails = now; now {
					add(m.minute, failingEvent, false, "the handler fails", key, m.session)
				} else {
					add(m.minute, failingEvent, true, "the handler no longer fails", key, m.session)
				}
			}
			if m.marks&history.Finished != 0 {
				add(m.minute, reshardEvent, false, health.Ended.String(), key, m.session)
			}
		}
	}
	for _, minute := range slices.Sorted(maps.Keys(byMinute)) {
		all = append(all, gather(byMinute[minute])...)
	}
	return all
}

// name returns the name of the worker that a session belongs to.
func (p past) name(session string) string { return cmp.Or(p.workers[session], session) }
