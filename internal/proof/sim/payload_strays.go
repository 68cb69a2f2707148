package sim

import (
	"maps"
	"slices"
	"time"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/internal/proof/sim/judge"
	"github.com/weir-go/weir/shard"
)

// uncounted returns a stray (a record that belongs to no window) that user code received, but that
// results do not count yet because windows are open. It returns the zero ID if results count all
// strays.
func (v *windows) uncounted() judge.ID {
	if v == nil || v.payload == nil || v.w.loosely() {
		return judge.ID{}
	}
	for _, of := range slices.Sorted(maps.Keys(v.shards)) {
		for _, a := range v.shards[of][v.payload.reached[of]:] {
			if _, told := v.payload.told[a.id]; told {
				return a.id
			}
		}
	}
	return judge.ID{}
}

// keepsStrays tells the judge about the strays of a previous owner when the sink stores the owner's
// results. The next owner starts at the end of these results, so it does not read the strays before
// that point.
func (w *world) keepsStrays(l *life, about string, e *emission) {
	if len(l.strays[about]) == 0 {
		return
	}
	of, left := e.judge.Shard, l.strays[about][:0]
	upTo := w.windows.upTo(of, e.results.UpTo)
	for _, id := range l.strays[about] {
		if w.windows.places[id] >= upTo {
			left = append(left, id)
		} else if w.judge.Wants(id) {
			b := &judge.Batch{Worker: e.judge.Worker, Shard: of, Epoch: e.judge.Epoch, IDs: []judge.ID{id}}
			w.judge.Noted(b, 1, w.wall())
		}
	}
	l.strays[about] = left
}

// repeats returns the records of ids that may be in results from the position from although earlier
// results contain them. A term may start at the first record of a new window. It must then not
// count later records that belong to earlier windows. If that first record has expired, the worker
// does not know about the new window, so it counts those records again.
func (v *windows) repeats(of string, from weir.Position, ids []judge.ID) map[judge.ID]bool {
	if v.payload == nil || from.Kind() != shard.Sequence || from.Done() == shard.Whole {
		return nil
	}
	all := v.shards[of]
	first := v.upTo(of, from)
	if first == len(all) || all[first].number != from.SequenceNumber() || !v.w.books.expired[all[first].id] {
		return nil
	}
	again := map[judge.ID]bool{}
	for _, id := range ids {
		if n := v.places[id]; n >= first && v.windowOf(all[n]).Before(v.windowOf(all[first])) {
			again[id] = true
		}
	}
	return again
}

// windowOf returns the start of the window that a record belongs to.
func (v *windows) windowOf(a arrived) time.Time {
	if a.timed {
		return v.begins(a.of)
	}
	return v.begins(a.at)
}
