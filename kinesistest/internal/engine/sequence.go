package engine

import (
	"math/big"
	"math/bits"
	"time"
)

// sequence is a parsed sequence number. A sequence number has 47 hexadecimal digits. From the left
// they are: the digit 2; nine digits for the second in which the shard was created; the low digit
// of the shard's number; sixteen digits of a running index; 00; nine digits for the second of
// arrival; eight digits of the shard's number; the digit 2.
type sequence struct {
	created uint64 // seconds since the epoch, 36 bits
	index   uint64 // 0 is the beginning of the shard; records count from 1
	arrival uint64 // seconds since the epoch, 36 bits
	shard   uint32
}

// closingIndex is the index in the sequence number that ends a closed shard.
const closingIndex = 1<<63 - 1

const bits36 = 1<<36 - 1

// words returns the number in three words, the highest first. The number has 188 bits.
func (s sequence) words() [3]uint64 {
	var w [3]uint64
	push := func(v uint64, n int) {
		w[0] = w[0]<<n | w[1]>>(64-n)
		w[1] = w[1]<<n | w[2]>>(64-n)
		w[2] = w[2]<<n | v
	}
	push(2, 4)
	push(s.created&bits36, 36)
	push(uint64(s.shard&15), 4)
	push(s.index>>32, 32)
	push(s.index&(1<<32-1), 32)
	push(0, 8)
	push(s.arrival&bits36, 36)
	push(uint64(s.shard), 32)
	push(2, 4)
	return w
}

func (s sequence) String() string {
	w := s.words()
	var digits [58]byte
	end := len(digits)
	const e19 = 10_000_000_000_000_000_000
	for end > 1 { // three groups of nineteen digits
		var rem uint64
		w[0], rem = bits.Div64(0, w[0], e19)
		w[1], rem = bits.Div64(rem, w[1], e19)
		w[2], rem = bits.Div64(rem, w[2], e19)
		for range 19 {
			end--
			digits[end] = byte('0' + rem%10)
			rem /= 10
		}
	}
	first := end
	for first < len(digits)-1 && digits[first] == '0' {
		first++
	}
	return string(digits[first:])
}

// parseSequence parses a decimal number. It returns false if the number does not have the format of
// a sequence number.
func parseSequence(text string) (sequence, bool) {
	if len(text) == 0 || len(text) > 57 || text[0] == '0' {
		return sequence{}, false
	}
	var w [3]uint64
	for i := range len(text) {
		c := text[i]
		if c < '0' || c > '9' {
			return sequence{}, false
		}
		carry := uint64(c - '0')
		for j := 2; j >= 0; j-- {
			hi, lo := bits.Mul64(w[j], 10)
			var over uint64
			w[j], over = bits.Add64(lo, carry, 0)
			carry = hi + over
		}
		if carry != 0 {
			return sequence{}, false
		}
	}
	orig := w
	pop := func(n int) uint64 {
		v := w[2] & (1<<n - 1)
		w[2] = w[2]>>n | w[1]<<(64-n)
		w[1] = w[1]>>n | w[0]<<(64-n)
		w[0] >>= n
		return v
	}
	var s sequence
	pop(4)
	s.shard = uint32(pop(32))
	s.arrival = pop(36)
	pop(8)
	s.index = pop(32)
	s.index |= pop(32) << 32
	pop(4)
	s.created = pop(36)
	return s, s.words() == orig
}

// plausible reports whether the service could create such a number. The index must have at most 63
// bits. The shard must be created before the year 2478, which the service checks too.
func (s sequence) plausible() bool { return s.index <= closingIndex && s.created < 16_025_175_000 }

// parseOldSequence parses a number in one of the two older formats, which the service still
// accepts. One format has 32 hexadecimal digits. The other has 47 digits and ends in 1. Only the
// shard matters, and for the shorter format also the creation time.
func parseOldSequence(text string) (sequence, bool) {
	n, ok := new(big.Int).SetString(text, 10)
	if !ok || n.Sign() < 0 {
		return sequence{}, false
	}
	part := func(from, digits uint) uint64 {
		p := new(big.Int).Rsh(n, 4*from)
		return p.And(p, new(big.Int).SetUint64(1<<(4*digits)-1)).Uint64()
	}
	first := new(big.Int).Lsh(big.NewInt(1), 124)
	if n.Cmp(first) < 0 {
		n.Add(n, first) // small numbers have no leading digit
	}
	switch {
	case n.BitLen() <= 129: // up to 2^129
		s := sequence{created: part(22, 9), shard: uint32(part(0, 4))}
		return s, s.plausible()
	case n.BitLen() == 186 && part(46, 1) == 2 && part(0, 1) == 1:
		return sequence{created: part(37, 9), shard: uint32(part(1, 8))}, true
	}
	return sequence{}, false
}

func seconds(t time.Time) uint64 { return uint64(max(0, t.Unix())) }
