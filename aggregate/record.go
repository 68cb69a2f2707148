package aggregate

import (
	"iter"
	"unsafe"
)

// Record is one sub-record of an [Aggregate]. It consists of two pointers and can be passed by
// value. It is valid until the next Parse, Keep or Reset of its aggregate. The returned bytes and
// strings refer to the payload. They are valid as long as the bytes of the payload are not
// modified, even after the Record is invalid.
type Record struct {
	a *Aggregate
	e *entry
}

// Len returns the number of sub-records. Sub-records that [Aggregate.Keep] dropped do not count.
func (a *Aggregate) Len() int { return len(a.records) }

// Record returns sub-record i, in the order of the container. It panics if i is not less than Len.
func (a *Aggregate) Record(i int) Record { return Record{a, &a.records[i]} }

// All iterates over the sub-records of a, in order.
func (a *Aggregate) All() iter.Seq[Record] {
	return func(yield func(Record) bool) {
		for i := range a.records {
			if !yield(Record{a, &a.records[i]}) {
				return
			}
		}
	}
}

// Sub returns the sub-sequence number. That is the index in the container, from 0, and does not
// depend on Keep.
func (r Record) Sub() uint32 { return r.e.sub }

// Data returns the user's payload. It must not be modified.
func (r Record) Data() []byte {
	d := r.e.data
	return r.a.msg[d.start:d.end:d.end] // so that append does not overwrite the following bytes
}

// PartitionKey returns the user's partition key, which replaces the key of the container. It may
// contain any bytes.
func (r Record) PartitionKey() string { return r.a.text(r.a.keys[r.e.key]) }

// ExplicitHashKey returns the decimal hash key that the producer set in place of the MD5 of the
// partition key, or "". It may contain any bytes. [Record.HashKey] checks it.
func (r Record) ExplicitHashKey() string {
	if r.e.hash == 0 {
		return ""
	}
	return r.a.text(r.a.hashes[r.e.hash-1])
}

// text returns a part of the message as a string without copying it.
func (a *Aggregate) text(s span) string {
	b := a.msg[s.start:s.end]
	return unsafe.String(unsafe.SliceData(b), len(b))
}
