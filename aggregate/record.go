package aggregate

import (
	"iter"
	"unsafe"
)

// Record is one sub-record of an [Aggregate]: two pointers, to be passed by value. It is valid
// until the next Parse, Keep or Reset of its aggregate. The bytes and strings that it returns alias
// the payload and outlive it: they are valid for as long as the payload's bytes are left alone.
type Record struct {
	a *Aggregate
	e *entry
}

// Len is the number of sub-records, less those that [Aggregate.Keep] dropped.
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

// Sub is the sub-sequence number: the index inside the container, from 0, whatever a filter
// dropped.
func (r Record) Sub() uint32 { return r.e.sub }

// Data is the user's payload. Treat it as read-only.
func (r Record) Data() []byte {
	d := r.e.data
	return r.a.msg[d.start:d.end:d.end] // appending to it must not overwrite what follows
}

// PartitionKey is the user's, in place of the container's. It is what the payload says, any bytes.
func (r Record) PartitionKey() string { return r.a.text(r.a.keys[r.e.key]) }

// ExplicitHashKey is the decimal hash key that the producer gave in place of the partition key's
// MD5, "" when none. It is what the payload says, any bytes; [Record.HashKey] checks it.
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
