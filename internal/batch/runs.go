// Package batch turns pages into batches: it unpacks aggregates, drops what a filter does not want,
// cuts what is left into runs of bounded size, and gathers runs that wait for more. It waits for
// nothing and calls no handler. Time comes in as an argument.
package batch

import (
	"iter"

	"github.com/weir-go/weir/internal/source"
)

// Size bounds a batch.
type Size struct {
	Records int
	Bytes   int // of data; 0 is no bound
}

// Cut returns how many of the records belong to a batch that has that number of records and bytes
// already: at least one of a batch that has none.
func (s Size) Cut(records []source.Record, have, bytes int) int {
	n := max(min(len(records), s.Records-have), 0)
	if s.Bytes == 0 {
		return n
	}
	for i := range n {
		bytes += len(records[i].Data)
		if bytes > s.Bytes && have+i > 0 {
			return i
		}
	}
	return n
}

// full reports whether a batch has as much as it may have.
func (s Size) full(records, bytes int) bool {
	return records >= s.Records || s.Bytes > 0 && bytes >= s.Bytes
}

// Unpacks reports whether there is something to unpack in a page, or to drop.
func (u *Unpacker) Unpacks(page *source.Page) bool {
	return u.mode != KeepPacked && page.Marked || u.Filter != nil
}

// Runs yields the records of a page in runs of a batch's size at most, in order, and with each
// whether it is the last; one run without records for a page that has none and ends its shard. A
// run is in the memory of the page's records if there is nothing to unpack; else it is valid until
// the run after the next is begun.
func (u *Unpacker) Runs(page *source.Page, size Size) iter.Seq2[[]source.Record, bool] {
	return func(yield func([]source.Record, bool) bool) {
		if !u.Unpacks(page) {
			// Nearly all pages of nearly all streams.
			all := page.Records
			for n := size.Cut(all, 0, 0); n < len(all); n = size.Cut(all, 0, 0) {
				if !yield(all[:n:n], false) {
					return
				}
				all = all[n:]
			}
			if len(all) > 0 || page.End {
				yield(all, true)
			}
			return
		}
		var before []source.Record // is held back until it is known whether it is the last
		for run := range u.unpacked(page, size) {
			if before != nil && !yield(before, false) {
				return
			}
			before = run
		}
		if before != nil || page.End {
			yield(before, true)
		}
	}
}

// unpacked yields runs of a batch's size at most of a page with aggregates.
func (u *Unpacker) unpacked(page *source.Page, size Size) iter.Seq[[]source.Record] {
	return func(yield func([]source.Record) bool) {
		var run []source.Record
		bytes := 0
		for i := range page.Records {
			for rec := range u.records(&page.Records[i]) {
				if len(run) > 0 && (len(run) == size.Records || size.Bytes > 0 && bytes+len(rec.Data) > size.Bytes) {
					full := run
					run = nil
					if !yield(full) {
						return
					}
				}
				if run == nil {
					run, bytes = u.begin(min(max(len(page.Records)-i, 1), size.Records)), 0
				}
				run = append(run, rec)
				bytes += len(rec.Data)
			}
		}
		if len(run) > 0 {
			yield(run)
		}
	}
}
