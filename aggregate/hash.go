package aggregate

import (
	"crypto/md5"
	"encoding/binary"
	"math/bits"
	"slices"
	"unsafe"
)

// HashKey is a point in the 128-bit space of hashes of partition keys.
type HashKey struct{ Hi, Lo uint64 }

// HashRange is the part of that space that a shard serves. It includes both ends.
type HashRange struct{ Start, End HashKey }

// FullRange is the whole space.
var FullRange = HashRange{End: HashKey{Hi: 1<<64 - 1, Lo: 1<<64 - 1}}

// Contains reports whether k is in r.
func (r HashRange) Contains(k HashKey) bool { return !k.less(r.Start) && !r.End.less(k) }

func (k HashKey) less(o HashKey) bool { return k.Hi < o.Hi || k.Hi == o.Hi && k.Lo < o.Lo }

// HashKey returns the hash key of r. That is its explicit hash key, or otherwise the MD5 of its
// partition key, as a big-endian number. ok is false if the explicit hash key is not a decimal
// number from 0 to 2^128−1 with at most 39 digits.
func (r Record) HashKey() (k HashKey, ok bool) {
	if s := r.ExplicitHashKey(); s != "" {
		return parseHashKey(s)
	}
	return hashOf(r.PartitionKey()), true
}

func hashOf(key string) HashKey {
	sum := md5.Sum(unsafe.Slice(unsafe.StringData(key), len(key))) // Sum does not modify it
	return HashKey{binary.BigEndian.Uint64(sum[:8]), binary.BigEndian.Uint64(sum[8:])}
}

func parseHashKey(s string) (k HashKey, ok bool) {
	if s == "" || len(s) > 39 {
		return HashKey{}, false
	}
	for i := range len(s) {
		digit := uint64(s[i]) - '0'
		carry, lo := bits.Mul64(k.Lo, 10)
		over, hi := bits.Mul64(k.Hi, 10)
		lo, c := bits.Add64(lo, digit, 0)
		hi, c = bits.Add64(hi, carry, c)
		if digit > 9 || over != 0 || c != 0 {
			return HashKey{}, false
		}
		k = HashKey{hi, lo}
	}
	return k, true
}

// fate is the result of Keep for a row of a table. A key that many records share is therefore
// hashed once.
type fate uint8

const (
	unknown fate = iota
	inside
	outside
)

// Keep drops the sub-records whose hash key is outside r, and returns their number. r is the range
// of the shard from which the container was read. The remaining sub-records keep their Sub. Each
// sub-record is checked separately. In contrast, the Java KCL drops the whole aggregate if one
// sub-record is outside. A sub-record with an invalid explicit hash key cannot be checked and is
// kept.
//
// The package comment explains when to filter.
func (a *Aggregate) Keep(r HashRange) (dropped int) {
	if r == FullRange {
		return 0
	}
	rows := len(a.keys) + len(a.hashes)
	a.fates = slices.Grow(a.fates[:0], rows)[:rows]
	clear(a.fates)
	kept := a.records[:0]
	for i, e := range a.records {
		row := int(e.key)
		if e.hash != 0 && a.hashes[e.hash-1].start < a.hashes[e.hash-1].end {
			row = len(a.keys) + int(e.hash) - 1
		}
		if a.fates[row] == unknown {
			a.fates[row] = inside
			if k, ok := a.Record(i).HashKey(); ok && !r.Contains(k) {
				a.fates[row] = outside
			}
		}
		if a.fates[row] == inside {
			kept = append(kept, e)
		}
	}
	dropped = len(a.records) - len(kept)
	a.records = kept
	return dropped
}
