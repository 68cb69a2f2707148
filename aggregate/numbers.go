package aggregate

import (
	"encoding/binary"
	"slices"
)

// Number identifies a sub-record among the records of all producers, so that a consumer can
// recognize a record that a producer sent again. Producers that number their records never give two
// records the same number. The zero Number means that the record has none.
//
// A container stores the numbers of its records in field 2000, and not with the records. A
// program that copies records with their tags therefore does not copy their numbers.
type Number struct {
	// Series identifies a series of numbers. It is random, and not 0 unless the Number is zero.
	Series uint64
	// N is the place of the record in its series, 1 to 2^62.
	N uint64
}

// IsZero reports whether there is no number.
func (n Number) IsZero() bool { return n == Number{} }

// The field contains the runs of consecutive numbers, in the order of the records:
//
//	run   = varint(2 × records + new), series if new is 1, varint(first number - next number)
//
// series has 8 bytes, little endian. The next number is the one after the previous run, or 0 if new
// is 1. Records without a number have the series 0.
const (
	numbersTag = 2000<<3 | length
	maxNumber  = 1 << 62
)

// numberRun is a run of records with consecutive numbers.
type numberRun struct {
	Number        // of the first record
	fresh  bool   // the series is stored
	next   uint64 // the next number before the run
	count  int
}

func (r *numberRun) continuesWith(n Number) bool {
	return n.Series == r.Series && (n.Series == 0 || n.N == r.N+uint64(r.count))
}

func (r *numberRun) size() int {
	size := varintSize(2*r.count) + varintSize(int(r.N-r.next))
	if r.fresh {
		size += 8
	}
	return size
}

func (r *numberRun) appendTo(b []byte) []byte {
	if !r.fresh {
		return appendVarint(appendVarint(b, 2*r.count), int(r.N-r.next))
	}
	b = binary.LittleEndian.AppendUint64(appendVarint(b, 2*r.count+1), r.Series)
	return appendVarint(b, int(r.N-r.next))
}

// after returns the run that begins with n after r.
func (r *numberRun) after(n Number) numberRun {
	next := r.N + uint64(r.count)
	if r.count > 0 && n.Series != 0 && n.Series == r.Series && n.N >= next {
		return numberRun{Number: n, next: next, count: 1}
	}
	return numberRun{Number: n, fresh: true, count: 1}
}

// numbers are the numbers of a container's records.
type numbers struct {
	runs []byte    // all but the last one, encoded
	last numberRun // its count is 0 if no record has a number
}

// add adds the number of a record. before is the number of records that were added before.
func (b *numbers) add(n Number, before int) {
	switch {
	case b.last.count == 0 && n.IsZero():
		return
	case b.last.count == 0 && before > 0:
		b.last = numberRun{fresh: true, count: before}
	}
	switch {
	case b.last.count == 0:
		b.last = b.last.after(n)
	case b.last.continuesWith(n):
		b.last.count++
	default:
		b.runs = b.last.appendTo(b.runs)
		b.last = b.last.after(n)
	}
}

// sizeWith returns the size of the field after add.
func (b *numbers) sizeWith(n Number, before int) int {
	added := numbers{last: b.last}
	added.add(n, before)
	if added.last.count == 0 {
		return 0
	}
	size := len(b.runs) + len(added.runs) + added.last.size()
	return 2 + varintSize(size) + size
}

// size returns the size of the field.
func (b *numbers) size() int {
	if b.last.count == 0 {
		return 0
	}
	size := len(b.runs) + b.last.size()
	return 2 + varintSize(size) + size
}

func (b *numbers) appendTo(dst []byte) []byte {
	if b.last.count == 0 {
		return dst
	}
	dst = appendVarint(appendVarint(dst, numbersTag), len(b.runs)+b.last.size())
	return b.last.appendTo(append(dst, b.runs...))
}

func (b *numbers) reset() { b.runs, b.last = b.runs[:0], numberRun{} }

// AddNumbered is like [Builder.AddTagged], but also stores a number with the record. The zero
// Number stores none. A record with a number is packed even if it is alone.
func (b *Builder) AddNumbered(partitionKey, explicitHashKey string, data []byte, tags Tags, n Number) error {
	return b.add(partitionKey, explicitHashKey, data, tags, n)
}

// numbered is a run of sub-records with consecutive numbers.
type numbered struct {
	Number        // of the first one
	sub    uint32 // its index
}

// parseNumbers reads the field with the numbers. Invalid numbers count as none, because a consumer
// drops records by their numbers.
func (a *Aggregate) parseNumbers(b []byte) {
	var next, sub uint64
	var series uint64
	for p := 0; p < len(b); {
		head, after := uvarint(b, p)
		count := head >> 1
		if after == 0 || count == 0 || count > uint64(len(a.records)) {
			a.runs = a.runs[:0]
			return
		}
		if head&1 == 1 {
			if len(b)-after < 8 {
				a.runs = a.runs[:0]
				return
			}
			series, next = binary.LittleEndian.Uint64(b[after:]), 0
			after += 8
		}
		gap, end := uvarint(b, after)
		first := next + gap
		if end == 0 || gap > maxNumber || first+count-1 > maxNumber || series != 0 && first == 0 {
			a.runs = a.runs[:0]
			return
		}
		a.runs = append(a.runs, numbered{Number{series, first}, uint32(sub)})
		p, next, sub = end, first+count, sub+count
	}
	if sub != uint64(len(a.records)) {
		a.runs = a.runs[:0]
	}
}

// Number returns the number of the sub-record. It is zero if the producer stored none.
func (r Record) Number() Number {
	runs := r.a.runs
	if len(runs) == 0 {
		return Number{}
	}
	i, found := slices.BinarySearchFunc(runs, r.e.sub, func(n numbered, sub uint32) int { return int(n.sub) - int(sub) })
	if !found {
		i--
	}
	if runs[i].Series == 0 {
		return Number{}
	}
	return Number{runs[i].Series, runs[i].N + uint64(r.e.sub-runs[i].sub)}
}

// Numbered reports whether a sub-record has a number.
func (a *Aggregate) Numbered() bool {
	return slices.ContainsFunc(a.runs, func(n numbered) bool { return n.Series != 0 })
}
