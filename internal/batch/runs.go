// Package batch converts pages to batches. It unpacks aggregates, drops records that a filter
// rejects, divides the remaining records into runs of limited size, and combines runs that wait for
// more records. It never waits and calls no handler. The current time is an argument.
package batch

import (
	"iter"

	"github.com/weir-go/weir/internal/source"
)

// Size is the maximum size of a batch.
type Size struct {
	Records int
	Bytes   int // bytes of data; 0 means no limit
}

// Cut returns how many of the records fit into a batch that already has the given number of records
// and bytes. It returns at least one for an empty batch.
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

// full reports whether a batch has its maximum size.
func (s Size) full(records, bytes int) bool {
	return records >= s.Records || s.Bytes > 0 && bytes >= s.Bytes
}

// Unpacks reports whether records of a page must be unpacked or may be dropped.
func (u *Unpacker) Unpacks(page *source.Page) bool {
	return u.mode != KeepPacked && page.Marked || u.Filter != nil
}

// Runs yields the records of a page in order, in runs of at most the given size. The boolean is
// true for the last run. If a page has no records and ends its shard, there is one run without
// records. If there is nothing to unpack or filter, a run is a part of page.Records. Otherwise a
// run is valid only until the next run is requested.
func (u *Unpacker) Runs(page *source.Page, size Size) iter.Seq2[[]source.Record, bool] {
	return func(yield func([]source.Record, bool) bool) {
		if !u.Unpacks(page) {
			// This is true for nearly all pages of nearly all streams.
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
		var before []source.Record // held back until it is known whether it is the last
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

// unpacked yields the runs of a page that must be unpacked or filtered.
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
