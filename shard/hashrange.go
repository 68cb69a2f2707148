package shard

import (
	"crypto/md5"
	"encoding/binary"
	"fmt"
	"math"
	"math/big"
	"math/bits"
	"slices"
	"unsafe"
)

// HashKey is a point in the 128-bit space of hashes of partition keys.
type HashKey struct{ Hi, Lo uint64 }

// MaxHashKey is the last point of the space, 2^128−1.
var MaxHashKey = HashKey{math.MaxUint64, math.MaxUint64}

// HashOf returns the hash key of a partition key. That is its MD5 as a big-endian number.
func HashOf(partitionKey string) HashKey {
	// md5.Sum does not modify its argument. A conversion would copy longer keys to the heap.
	sum := md5.Sum(unsafe.Slice(unsafe.StringData(partitionKey), len(partitionKey)))
	return HashKey{binary.BigEndian.Uint64(sum[:8]), binary.BigEndian.Uint64(sum[8:])}
}

// Partition returns the partition of a partition key, 0 to n-1, if the keys are divided into n
// partitions. With n below 2 it returns 0. The result never changes between versions, because sinks
// store positions of partitions. It does not depend on the shard of the key.
func Partition(key string, n int) int {
	if n < 2 {
		return 0
	}
	h := uint64(14695981039346656037) // FNV-1a
	for i := range len(key) {
		h = (h ^ uint64(key[i])) * 1099511628211
	}
	// The low bits of FNV-1a depend on the low bits of the bytes alone. Mix all bits into the high
	// ones, and scale these to n.
	h = (h ^ h>>32) * 0x9e3779b97f4a7c15
	part, _ := bits.Mul64(h, uint64(n))
	return int(part)
}

// ParseHashKey parses a decimal hash key from 0 to 2^128−1 without leading zeros.
func ParseHashKey(s string) (HashKey, error) {
	var k HashKey
	ok := s != "" && len(s) <= 39 && (len(s) == 1 || s[0] != '0')
	for i := 0; ok && i < len(s); i++ {
		k, ok = k.appended(s[i])
	}
	if !ok {
		return HashKey{}, fmt.Errorf("shard: hash key %.50q is not a decimal number from 0 to 2^128-1", s)
	}
	return k, nil
}

// appended returns ten times k plus the digit. It returns false if digit is not a digit or if the
// result overflows.
func (k HashKey) appended(digit byte) (sum HashKey, ok bool) {
	if digit < '0' || digit > '9' {
		return HashKey{}, false
	}
	tooMuch, hi := bits.Mul64(k.Hi, 10)
	carried, lo := bits.Mul64(k.Lo, 10)
	lo, carry := bits.Add64(lo, uint64(digit-'0'), 0)
	hi, over := bits.Add64(hi, carried, carry)
	return HashKey{hi, lo}, tooMuch == 0 && over == 0
}

func (k HashKey) big() *big.Int {
	var b [16]byte
	binary.BigEndian.PutUint64(b[:8], k.Hi)
	binary.BigEndian.PutUint64(b[8:], k.Lo)
	return new(big.Int).SetBytes(b[:])
}

// String returns the decimal form that [ParseHashKey] parses.
func (k HashKey) String() string { return k.big().String() }

// Compare orders two hash keys as numbers.
func (k HashKey) Compare(o HashKey) int {
	switch {
	case k.Hi != o.Hi && k.Hi < o.Hi, k.Hi == o.Hi && k.Lo < o.Lo:
		return -1
	case k == o:
		return 0
	default:
		return 1
	}
}

// Next returns the hash key after k. It returns 0 after [MaxHashKey].
func (k HashKey) Next() HashKey {
	k.Lo++
	if k.Lo == 0 {
		k.Hi++
	}
	return k
}

func (k HashKey) previous() HashKey {
	if k.Lo == 0 {
		k.Hi--
	}
	k.Lo--
	return k
}

// HashRange is the part of the space that a shard serves. It includes both ends.
type HashRange struct{ Start, End HashKey }

// ParseHashRange parses the two ends of a range in decimal form.
func ParseHashRange(start, end string) (HashRange, error) {
	a, err := ParseHashKey(start)
	if err != nil {
		return HashRange{}, err
	}
	b, err := ParseHashKey(end)
	if err != nil {
		return HashRange{}, err
	}
	if b.Compare(a) < 0 {
		return HashRange{}, fmt.Errorf("shard: hash range %s to %s ends before it starts", a, b)
	}
	return HashRange{a, b}, nil
}

// Contains reports whether k is in r.
func (r HashRange) Contains(k HashKey) bool { return r.Start.Compare(k) <= 0 && k.Compare(r.End) <= 0 }

// Middle returns the start of the upper half of r. An even split divides the range there.
func (r HashRange) Middle() HashKey {
	sum := new(big.Int).Add(r.Start.big(), r.End.big())
	sum.Rsh(sum.Add(sum, big.NewInt(1)), 1)
	var b [16]byte
	sum.FillBytes(b[:])
	return HashKey{binary.BigEndian.Uint64(b[:8]), binary.BigEndian.Uint64(b[8:])}
}

// String returns "start-end" in decimal form.
func (r HashRange) String() string { return r.Start.String() + "-" + r.End.String() }

// Holes returns the parts of the space that no range covers, in order.
func Holes(ranges []HashRange) []HashRange {
	sorted := slices.SortedFunc(slices.Values(ranges), func(a, b HashRange) int { return a.Start.Compare(b.Start) })
	var holes []HashRange
	next := HashKey{} // the first point not yet known to be covered
	for _, r := range sorted {
		if r.End.Compare(r.Start) < 0 {
			continue
		}
		if r.Start.Compare(next) > 0 {
			holes = append(holes, HashRange{next, r.Start.previous()})
		}
		if r.End == MaxHashKey {
			return holes
		}
		if after := r.End.Next(); after.Compare(next) > 0 {
			next = after
		}
	}
	return append(holes, HashRange{next, MaxHashKey})
}
