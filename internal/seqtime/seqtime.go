// Package seqtime extracts times from the sequence numbers of Kinesis. It is pure.
package seqtime

import (
	"math/big"
	"time"
)

// Of returns the times that a sequence number contains, to the second: when its shard was opened,
// and when the record arrived. arrived is zero if the number has no plausible arrival time. AWS
// does not document the layout, but it has not changed since 2013. ok is false for a number with
// another layout.
//
// A number has 47 hexadecimal digits, from the left:
//
//	 1  always 2
//	 9  the second in which the shard was opened
//	 1  belongs to the shard
//	16  an index
//	 2  always 00
//	 9  the second in which the record arrived
//	 8  belongs to the shard
//	 1  always 2
func Of(sequence string) (opened, arrived time.Time, ok bool) {
	const most = 57 // number of digits of 2^188
	if len(sequence) > most {
		return time.Time{}, time.Time{}, false
	}
	n, isNumber := new(big.Int).SetString(sequence, 10)
	if !isNumber || n.Sign() <= 0 || n.BitLen() != 186 {
		return time.Time{}, time.Time{}, false
	}
	part := func(from, bits uint) int64 {
		p := new(big.Int).Rsh(n, from)
		return p.And(p, big.NewInt(1<<bits-1)).Int64()
	}
	created, arrival := part(148, 36), part(36, 36)
	const sooner, later = 1_380_000_000, 16_000_000_000 // Kinesis is younger than the first
	if part(184, 4) != 2 || part(0, 4) != 2 || part(72, 8) != 0 || created < sooner || created > later || arrival > later {
		return time.Time{}, time.Time{}, false
	}
	opened = time.Unix(created, 0).UTC()
	if arrival < created { // the first number of a shard may have no arrival time
		return opened, time.Time{}, true
	}
	return opened, time.Unix(arrival, 0).UTC(), true
}
