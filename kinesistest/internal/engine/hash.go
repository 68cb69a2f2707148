package engine

import (
	"cmp"
	"crypto/md5"
	"encoding/binary"
	"math/big"
)

// hashKey is a point in the space of partition key hashes: an unsigned number of 128 bits.
type hashKey struct{ hi, lo uint64 }

// maxHashKey is 2^128-1.
var maxHashKey = hashKey{^uint64(0), ^uint64(0)}

// hashOf returns the hash of a partition key, which is the MD5 of its UTF-8 bytes.
func hashOf(partitionKey string) hashKey {
	var room [4 * maxKeyLength]byte // avoids an allocation for the key's bytes
	sum := md5.Sum(append(room[:0], partitionKey...))
	return hashKey{binary.BigEndian.Uint64(sum[:8]), binary.BigEndian.Uint64(sum[8:])}
}

func (h hashKey) compare(o hashKey) int {
	if c := cmp.Compare(h.hi, o.hi); c != 0 {
		return c
	}
	return cmp.Compare(h.lo, o.lo)
}

// prev returns h-1. The caller must not pass zero.
func (h hashKey) prev() hashKey {
	if h.lo == 0 {
		h.hi--
	}
	h.lo--
	return h
}

// next returns h+1. The caller must not pass the largest key.
func (h hashKey) next() hashKey {
	if h.lo++; h.lo == 0 {
		h.hi++
	}
	return h
}

func (h hashKey) big() *big.Int {
	var b [16]byte
	binary.BigEndian.PutUint64(b[:8], h.hi)
	binary.BigEndian.PutUint64(b[8:], h.lo)
	return new(big.Int).SetBytes(b[:])
}

func hashKeyOfBig(n *big.Int) hashKey {
	var b [16]byte
	n.FillBytes(b[:])
	return hashKey{binary.BigEndian.Uint64(b[:8]), binary.BigEndian.Uint64(b[8:])}
}

func (h hashKey) String() string { return h.big().String() }

// parseHashKey parses a decimal number. It returns false if the number has more than 128 bits. The
// caller has checked that the text contains only digits.
func parseHashKey(s string) (hashKey, bool) {
	n, ok := new(big.Int).SetString(s, 10)
	if !ok || n.Sign() < 0 || n.BitLen() > 128 {
		return hashKey{}, false
	}
	return hashKeyOfBig(n), true
}

// hashRange is the hash range of a shard. Both ends are inclusive.
type hashRange struct{ start, end hashKey }

func (r hashRange) contains(h hashKey) bool {
	return r.start.compare(h) <= 0 && h.compare(r.end) <= 0
}

// uniformStarts returns the starts of n equal ranges. Each range has floor(2^128/n) keys, and the
// last range also gets the remainder.
func uniformStarts(n int) []hashKey {
	width := new(big.Int).Lsh(big.NewInt(1), 128)
	width.Div(width, big.NewInt(int64(n)))
	starts := make([]hashKey, n)
	at := new(big.Int)
	for i := range starts {
		starts[i] = hashKeyOfBig(at)
		at.Add(at, width)
	}
	return starts
}

func uniformRanges(n int) []hashRange {
	starts := uniformStarts(n)
	ranges := make([]hashRange, n)
	for i, s := range starts {
		ranges[i] = hashRange{s, maxHashKey}
		if i+1 < n {
			ranges[i].end = starts[i+1].prev()
		}
	}
	return ranges
}
