package aggregate

import (
	"crypto/md5"
	"encoding/binary"
	"math/bits"
	"slices"
	"unsafe"
)

// HashKey is a point in the 128-bit space that partition keys are hashed into.
type HashKey struct{ Hi, Lo uint64 }

// HashRange is the part of the space that a shard serves. Both ends belong to it.
type HashRange struct{ Start, End HashKey }

// FullRange is the whole space.
var FullRange = HashRange{End: HashKey{Hi: 1<<64 - 1, Lo: 1<<64 - 1}}

// Contains reports whether k lies in r.
func (r HashRange) Contains(k HashKey) bool { return !k.less(r.Start) && !r.End.less(k) }

func (k HashKey) less(o HashKey) bool { return k.Hi < o.Hi || k.Hi == o.Hi && k.Lo < o.Lo }

// HashKey returns the hash key of r: its explicit hash key, or otherwise the MD5 of its partition
// key, read as a big-endian number. ok is false if the explicit hash key is not a decimal number
// from 0 to 2^128−1 of at most 39 digits.
func (r Record) HashKey() (k HashKey, ok bool) {
	if s := r.ExplicitHashKey(); s != "" {
		return parseHashKey(s)
	}
	return hashOf(r.PartitionKey()), true
}

func hashOf(key string) HashKey {
	sum := md5.Sum(unsafe.Slice(unsafe.StringData(key), len(key))) // read-only
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

// fate is the result of Keep for a row of a table: a key that many records share is hashed once.
type fate uint8

const (
	unknown fate = iota
	inside
	outside
)

// Keep drops the sub-records whose hash key is outside r, the range of the shard that the container
// was read from, and returns their number. The others keep their Sub. Each sub-record is checked
// separately. The Java KCL, in contrast, drops the whole aggregate because of one stray. A
// sub-record with an unreadable explicit hash key cannot be checked and stays.
//
// The package comment says when to filter and when not to.
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
