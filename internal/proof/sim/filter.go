package sim

import (
	"time"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/internal/proof/sim/judge"
)

// filters decides which records the filter drops.
type filters struct {
	w    *world
	part float64 // fraction of the records
	// stretch is the number of consecutive records of a key that are dropped together or kept
	// together. If it is large, all records of an answer to GetRecords may be dropped.
	stretch int
	notJSON weir.NotJSON
	dropped int
}

// makeFilters chooses a random filter.
func (w *world) makeFilters() {
	if !w.profile.Filters {
		return
	}
	d := roll(w.seed, "filters")
	w.filters = &filters{w: w, part: []float64{.1, .5, .9, .99}[d.below(4)], stretch: 1 + d.below(30), notJSON: weir.PassNotJSON}
	if d.chance(.5) {
		w.filters.notJSON = weir.DropNotJSON
	}
}

// unreadable reports whether the filter fails to read a record.
func (f *filters) unreadable(id judge.ID) bool {
	d := roll(f.w.seed, "unreadable "+id.String())
	return d.chance(.02)
}

// drops reports whether the filter drops a record.
func (f *filters) drops(id judge.ID) bool {
	if f == nil {
		return false
	}
	if f.unreadable(id) {
		return f.notJSON == weir.DropNotJSON
	}
	d := roll(f.w.seed, "drops "+judge.ID{Key: id.Key, N: id.N / f.stretch}.String())
	return d.chance(f.part)
}

// filter returns the filter of all workers.
func (w *world) filter() weir.Filter {
	if w.filters == nil {
		return weir.Filter{}
	}
	return weir.Filter{By: w.filters, NotJSON: w.filters.notJSON}
}

// Match implements [weir.Matcher].
func (f *filters) Match(data []byte, _ string, _ time.Time) (matches, isJSON bool) {
	id, ok := idOf(data)
	if !ok || f.unreadable(id) {
		return false, false
	}
	return !f.drops(id), true
}

// putFiltered tells the judge about a record that is put. The record may be one that the filter
// drops.
func (w *world) putFiltered(id judge.ID, shard string) {
	if !w.filters.drops(id) {
		w.judge.Put(id, shard, w.wall())
		return
	}
	w.filters.dropped++
	w.judge.PutDropped(id, shard)
}

// droppedRecords returns the number of records that were put and that the filter drops.
func (w *world) droppedRecords() int {
	if w.filters == nil {
		return 0
	}
	return w.filters.dropped
}

// unpassed returns the name of a shard whose checkpoint is not after its last record. It returns ""
// if there is no such shard. It checks only applications with filters whose checkpoints must pass
// all records.
func (w *world) unpassed() string {
	// A sink decides where reading starts. Handlers that pull do not always report done records.
	if w.filters == nil || w.sink != nil || w.crosses.has(featPullForm) || w.crosses.has(featExpiring) {
		return ""
	}
	for _, st := range w.streams {
		if st.now == nil || !st.named {
			continue
		}
		for _, sh := range st.now.Shards {
			name := nameOf(st.now, sh.ID)
			if kept := w.books.kept[name]; w.books.passed[name] < len(kept) {
				return name
			}
		}
	}
	return ""
}
