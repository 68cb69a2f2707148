package delivery

import (
	"slices"
	"sync"

	"github.com/weir-go/weir/internal/source"
)

// Records are the records of a delivery as they were read. They do not change when the handler
// modifies its own slice.
type Records struct {
	all    []source.Record
	pooled *[]source.Record // the memory of all; nil if it has another owner
	bytes  int              // bytes of data
}

var recordsPool = sync.Pool{New: func() any { return new([]source.Record) }}

// Copy keeps a copy of a run, and sets the origin of each record. It is for handlers that get the
// run itself. Copy copies the descriptions of the records, but not their data, into pooled memory.
// This takes some nanoseconds for each record.
func Copy(run []source.Record, from *source.Origin) (r Records) {
	r.pooled = recordsPool.Get().(*[]source.Record)
	r.all = slices.Grow((*r.pooled)[:0], len(run))
	// Mark and copy records while they are in the L1 cache.
	for some := range slices.Chunk(run, 64) {
		r.bytes += Mark(some, from)
		r.all = append(r.all, some...)
	}
	*r.pooled = r.all
	return r
}

// Keep keeps a run without copying it, and sets the origin of each record. It is for handlers that
// only get copies.
func Keep(run []source.Record, from *source.Origin) Records {
	return Records{all: run, bytes: Mark(run, from)}
}

// Marked keeps a run that [Mark] has already marked. It is for handlers that only get copies.
func Marked(run []source.Record) Records {
	r := Records{all: run}
	for i := range run {
		r.bytes += len(run[i].Data)
	}
	return r
}

// Mark sets the origin of each record, and returns the size of their data.
func Mark(run []source.Record, from *source.Origin) (bytes int) {
	for i := range run {
		// Reused memory often has the origin already. A record with tags has its own origin.
		if r := &run[i]; r.From != from && (r.From == nil || r.From.Tags.IsZero() || !r.From.Same(from)) {
			r.From = from
		}
		bytes += len(run[i].Data)
	}
	return bytes
}

// release drops the records.
func (r *Records) release() {
	if r.pooled != nil {
		clear(*r.pooled) // they would keep a page in memory
		*r.pooled = (*r.pooled)[:0]
		recordsPool.Put(r.pooled)
	}
	*r = Records{}
}
