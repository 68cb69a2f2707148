package aggregate

import (
	"iter"
	"unsafe"
)

// Record is one sub-record of an [Aggregate]: two pointers, to be passed by value. It is valid
// until the next Parse, Keep or Reset of its aggregate. The returned bytes and strings alias the
// payload and outlive the Record: they are valid while the payload's bytes are not modified.
type Record struct {
	a *Aggregate
	e *entry
}

// Len returns the number of sub-records, without those that [Aggregate.Keep] dropped.
func (a *Aggregate) Len() int { return len(a.records) }

// Record returns sub-record i of Len, in the order of the container. Like an index of a slice, i
// must be in range.
func (a *Aggregate) Record(i int) Record { return Record{a, &a.records[i]} }

// All ranges over the sub-records of a, in order.
func (a *Aggregate) All() iter.Seq[Record] {
	return func(yield func(Record) bool) {
		for i := range a.records {
			if !yield(Record{a, &a.records[i]}) {
				return
			}
		}
	}
}

// Sub returns the sub-sequence number: the index inside the container, from 0, regardless of a
// filter.
func (r Record) Sub() uint32 { return r.e.sub }

// Data returns the user's payload. Treat it as read-only.
func (r Record) Data() []byte {
	d := r.e.data
	return r.a.msg[d.start:d.end:d.end] // so that appending does not overwrite the following bytes
}

// PartitionKey returns the user's partition key, which replaces that of the container. It may
// contain any bytes.
func (r Record) PartitionKey() string { return r.a.text(r.a.keys[r.e.key]) }

// ExplicitHashKey returns the decimal hash key that the producer set in place of the partition
// key's MD5, or "". It may contain any bytes. [Record.HashKey] checks it.
func (r Record) ExplicitHashKey() string {
	if r.e.hash == 0 {
		return ""
	}
	return r.a.text(r.a.hashes[r.e.hash-1])
}

// text returns a part of the message without copying it.
func (a *Aggregate) text(s span) string {
	b := a.msg[s.start:s.end]
	return unsafe.String(unsafe.SliceData(b), len(b))
}
