package weir

import (
	"slices"
	"sync"

	"github.com/weir-go/weir/internal/source"
)

// kept are the records of a delivery as they were read, whatever becomes of the slice that the
// handler got.
type kept struct {
	records []source.Record
	pooled  *[]source.Record // what they lie in, nil if that is somebody else's
}

var keptPool = sync.Pool{New: func() any { return new([]source.Record) }}

// keepCopy keeps a run that the handler gets itself, and says in each record where it comes from.
// The copy is of what describes the records, not of their data, and is made in memory that is used
// again: some nanoseconds for each.
func keepCopy(run []source.Record, from *origin) (k kept, bytes int) {
	k.pooled = keptPool.Get().(*[]source.Record)
	k.records = slices.Grow((*k.pooled)[:0], len(run))
	// which are marked and copied while they are in the first cache
	for some := range slices.Chunk(run, 64) {
		bytes += mark(some, from)
		k.records = append(k.records, some...)
	}
	*k.pooled = k.records
	return k, bytes
}

// keepRun keeps a run that the handler only gets copies of.
func keepRun(run []source.Record, from *origin) (k kept, bytes int) {
	return kept{records: run}, mark(run, from)
}

// mark says in each record where it comes from, and returns the size of their data.
func mark(run []source.Record, from *origin) (bytes int) {
	for i := range run {
		// Memory that is used again often has it; a record with tags has one of its own.
		if r := &run[i]; r.From != from && (r.From == nil || r.From.Tags.IsZero() || !r.From.Same(from)) {
			r.From = from
		}
		bytes += len(run[i].Data)
	}
	return bytes
}

// handler returns the records of the indexes from from to to, in all, for a handler that may do
// with them what it likes.
func (k *kept) handler(all []Record, from, to int) []Record {
	return append(slices.Grow(all, to-from), whole(k.records[from:to])...)
}

// release lets go of everything.
func (k *kept) release() {
	if k.pooled != nil {
		emptied(k.pooled)
		keptPool.Put(k.pooled)
	}
	*k = kept{}
}

// emptied makes a pooled slice as good as new, except that it keeps its memory. It clears the
// elements, because they would keep a page in memory.
func emptied[T any](pooled *[]T) {
	clear(*pooled)
	*pooled = (*pooled)[:0]
}
