package queue

import (
	"math"
	"time"
)

const (
	largestRecord = 10 << 20 // bytes of data that the service allows
	usualRecord   = 1 << 20  // a stream allows this by default
	smallRecord   = 64 << 10 // minimum number of bytes that are reserved for a record
	mostPerCall   = 10       // records of a receive, and entries of a batch
	mostCalls     = 64       // calls of one kind in flight
	mostAhead     = 1000     // records that are fetched before a handler is free
	mostAcks      = 100      // plus 10 per handler; with more waiting acknowledgements, receives stop
	// decoding is the memory that the decoder of an answer needs in addition to the records: one
	// encoded record, in a buffer that may be twice as large.
	decoding = largestRecord*4/3*2 + 1<<20
)

// flow decides how many records to ask for. The loop updates its fields.
type flow struct {
	concurrency int
	mostBytes   int64
	hold        time.Duration

	calls    int           // receives in flight
	asked    int           // records that these may return
	reserved int64         // bytes that these may return
	held     int           // records that wait for a handler or have one, and the excess of records in backoff and of acknowledgements
	bytes    int64         // of all received records
	largest  int64         // size of the largest record so far
	allowed  int           // receives that may be in flight
	took     time.Duration // average time of a receive that returned records
	handling time.Duration // average time of a handler
	rate     float64       // records that were handled per second
}

// want returns how many records the next receive should ask for, and how many bytes to reserve for
// them. It returns 0 if no receive should begin now.
func (f *flow) want() (limit int, bytes int64) {
	if f.calls >= min(max(f.allowed, 1), mostCalls) {
		return 0, 0
	}
	room := f.concurrency + f.ahead() - f.held - f.asked
	if f.held+f.asked >= f.concurrency && room < mostPerCall {
		return 0, 0 // all handlers are busy, so wait until a call is worth its cost
	}
	// Even records of the largest size have to fit when nothing else is in memory.
	limit = min(mostPerCall, room, int((f.mostBytes-decoding)/largestRecord))
	for free := f.mostBytes - f.bytes - f.reserved; limit > 0; limit-- {
		if bytes = answerBytes(int64(limit) * f.expected()); bytes <= free {
			return limit, bytes
		}
	}
	return 0, 0
}

// expected returns the size of a record for which memory is reserved. A larger answer waits for
// memory before it is read.
func (f *flow) expected() int64 {
	if f.largest == 0 {
		return usualRecord
	}
	return min(max(2*f.largest, smallRecord), largestRecord)
}

// fits reports whether an answer may take memory now. One always fits if there is nothing else.
func (f *flow) fits(bytes int64) bool {
	others := f.bytes + f.reserved
	return others == 0 || others+bytes <= f.mostBytes
}

// answerBytes returns the memory that an answer takes while it is decoded. data is the size of its
// records.
func answerBytes(data int64) int64 { return data + min(data*4/3*2, decoding) }

// ahead returns how many records may wait for a handler: as many as are handled during two
// receives and ten more, but never more than are handled within half of a hold.
func (f *flow) ahead() int {
	n := mostPerCall + math.Ceil(2*f.rate*f.took.Seconds())
	if f.handling > 0 {
		n = min(n, float64(f.concurrency)*(f.hold/2).Seconds()/f.handling.Seconds())
	} else {
		n = 0 // no handler has finished yet
	}
	return min(int(n), mostAhead)
}

// answered updates the number of receives that may be in flight. Full answers double it, and an
// empty answer makes it one.
func (f *flow) answered(limit, got int, took time.Duration) {
	switch {
	case got == 0:
		f.allowed = 1
	case got >= limit:
		f.allowed = min(max(f.allowed, 1)*2, mostCalls)
	case got*2 < limit:
		f.allowed = max(f.allowed-1, 1)
	}
	// An answer that is not full may have waited for its first record. A full one may have waited,
	// too, so a much shorter time replaces the average.
	if got >= limit {
		f.took = average(min(f.took, 4*took), took)
	}
}

// average returns a moving average in which the last ten values count most.
func average(old, value time.Duration) time.Duration {
	if old == 0 {
		return max(value, 1)
	}
	return max(old+(value-old)/10, 1)
}
