package polling

import (
	"errors"
	"math"

	"github.com/weir-go/weir/health"
	"github.com/weir-go/weir/internal/memory"
	"github.com/weir-go/weir/internal/mono"
	"github.com/weir-go/weir/internal/wire/codec"
)

// A read reserves the memory that its answer will probably need before it sends the request. It
// estimates the amount from earlier answers. After a read that lacked memory, the feed either
// requests fewer records, or it waits in line. In line it waits until its share, or the reserve of
// the budget, has room for one record of any size.

// mostAnswer is the maximum size of the records in an answer of Kinesis, in bytes.
const mostAnswer = 10 << 20

// admission is the decision whether a read may begin.
type admission uint8

const (
	asks        admission = iota // the read has the memory that it will probably need
	afterOwn                     // wait until the shard's own handler returns memory
	tryLater                     // wait until other shards return memory, probably soon
	waitsInLine                  // wait in line for the memory of one record
)

// admissionOf returns the admission for a turn. had is the number of bytes that the turn has
// reserved. parts is the number of the shard's pages that its handler has. fits is set if a share
// can hold one record. late is set if the feed has retried for long enough.
func admissionOf(had, parts int, fits, late bool) admission {
	switch {
	case had > 0:
		return asks
	case parts > 0:
		return afterOwn
	case !fits, late:
		return waitsInLine
	}
	return tryLater
}

// admit reserves the memory for the next read. It returns false if the read has to wait. The caller
// holds the lock.
func (f *Feed) admit(now mono.Time) bool {
	record := int(f.mean) + int(f.mean)/4 // records differ in size
	want := 0
	if !f.small {
		want = max(min(f.expects(), ahead), record)
	}
	switch {
	case f.granted > 0 || f.needs > 0 && f.share.HasReserve(): // it has already waited in line
		f.starved = 0
		return true
	case f.needs > 0:
		return f.standInLine(now)
	case want == 0:
		return true
	}
	least := want
	if f.had > 0 {
		least = min(want, max(int(f.had), record))
	}
	have := f.share.TryTake(least, want)
	late := !f.starved.IsZero() && now.Sub(f.starved) >= shortageWait
	if have == 0 && f.parts == 0 && late {
		have = f.share.TryTake(max(record, 1), want)
	}
	switch admissionOf(have, int(f.parts), record <= f.share.Most(), late) {
	case afterOwn:
		f.short, f.state = true, parked
		f.from(health.AwaitingHandler, now)
		return false
	case tryLater:
		if f.starved.IsZero() {
			f.starved = now
		}
		f.lacks(now)
		f.sched.at(f, now.Add(haste))
		return false
	case waitsInLine:
		f.needs = int32(max(record, 1))
		return f.standInLine(now)
	}
	f.starved, f.granted = 0, int32(have)
	if f.had = 0; have < want {
		f.had = int32(have)
		f.limit = slower(f.limit, have, int(f.limit), f.expects())
	}
	return true
}

// standInLine makes the share wait in line for the memory of one record. It needs no goroutine and
// no connection for that. It returns true if the memory is available at once. The caller holds the
// lock.
func (f *Feed) standInLine(now mono.Time) bool {
	f.starved = 0
	got, there := f.share.Await(int(f.needs), f.served)
	if there {
		f.granted = int32(got.Bytes)
		return true
	}
	f.state = queued
	f.lacks(now)
	f.rouse() // a batch that waits for more records can release its memory
	return false
}

// served starts the next read when the share has received its memory. It does nothing while the
// feed is closing, because the share then returns all memory.
func (f *Feed) served(got memory.Grant) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.state != queued || got.Err != nil {
		return
	}
	f.granted = int32(got.Bytes)
	f.state = scheduled
	f.sched.at(f, 0)
}

// lacks sets the status to waiting for memory. The caller holds the lock.
func (f *Feed) lacks(now mono.Time) {
	f.from(health.AwaitingMemory, now)
	if f.trying.IsZero() {
		f.trying = now
	}
}

// taken describes the answer to a read.
type taken struct {
	asked   int // records requested
	records int
	bytes   int  // size of data and keys
	memory  int  // memory of the records in bytes
	whole   bool // the answer arrived in one piece
	tip     bool // the answer reached the tip
}

// reading contains the parameters of the next read. They depend on earlier reads.
type reading struct {
	limit int32 // the number of records to request
	needs int32 // see [Feed]
	short bool  // see [Feed]
}

// after returns the parameters of the next read. got and err are the result of the previous read.
// hungry is set if the handler waited for that read. parts is set if the handler still has pages of
// the shard. mean is the memory of a record, or 0 if unknown. most is the maximum limit. room is
// the maximum size of an answer in bytes. share is the maximum size of the share.
func (r reading) after(err error, got taken, hungry, parts bool, mean, most int32, room, share int) reading {
	limit := min(r.limit, most)
	short := shortage(err)
	if err == nil && (hungry || got.bytes > room) {
		r.limit = portion(limit, most, room, got.records, got.bytes)
	}
	// A higher limit would request more than the share can hold.
	if err == nil && got.whole && got.records > 0 && got.memory > 0 {
		r.limit = max(1, min(r.limit, fitting(share, got.records, got.memory)))
	}
	if got.records > 0 || got.tip {
		r.needs = 0
	}
	switch {
	case errors.Is(err, errSlow):
		r.limit = slower(limit, window*7/8, got.records, got.bytes)
	case short == nil:
	case got.records > 0:
		r.limit, r.short = slower(limit, window/4, got.records, got.bytes), parts
	case parts:
		r.short = true
	case short.One, got.asked == 1: // a lower limit does not help
		r.needs = int32(min(short.Bytes, math.MaxInt32))
	case mean == 0:
		r.limit = 1
	default:
		r.limit = max(1, min(limit/2, fitting(share, 1, int(mean))))
	}
	return r
}

// adapt sets the parameters of the next read after a read with the result got.
func (f *Feed) adapt(err error, got taken) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if got.records > 0 {
		f.mean = int32(min(got.memory/got.records, math.MaxInt32/2))
	}
	most := f.poll.Limit
	next := reading{f.limit, f.needs, f.short}.after(err, got, f.hungry, f.parts > 0, f.mean, most, answerRoom(f.poll.readShare()), f.share.Most())
	f.limit, f.needs, f.short = next.limit, next.needs, next.short
	f.hungry = false
	switch {
	case got.tip:
		f.small, f.had = true, 0
	case got.records > 0:
		f.small = false
	}
}

// expects returns the number of bytes that the next answer will probably need, if it is not small.
// The caller holds the lock.
func (f *Feed) expects() int {
	if f.mean == 0 {
		return window
	}
	return int(f.mean) * int(min(f.limit, f.poll.Limit))
}

// grant tries to reserve need bytes for the next part, and reports success. The caller holds the
// lock.
func (f *Feed) grant(need int) bool {
	if more := need - int(f.granted); more > 0 {
		f.granted += int32(f.share.TryTake(more, more))
	}
	return int(f.granted) >= need
}

// shortage returns the memory error that err wraps, or nil if err has another cause.
func shortage(err error) *codec.NoMemoryError {
	if err == nil {
		return nil
	}
	short := (*codec.NoMemoryError)(nil)
	errors.As(err, &short)
	return short
}

// The feed implements [codec.Memory] for its pages. The granted bytes are used first.

// TryTake takes between least and most bytes, or no bytes. If the feed waited in line and its share
// has the reserve of the budget, TryTake takes most bytes, even beyond the budget.
func (f *Feed) TryTake(least, most int) int {
	f.mu.Lock()
	n, line := min(int(f.granted), most), f.needs > 0
	f.granted -= int32(n)
	f.mu.Unlock()
	if n == most {
		return n
	}
	if line && f.share.HasReserve() && (f.share.TryTake(most-n, most-n) > 0 || f.share.Exceed(most-n)) {
		return most
	}
	more := f.share.TryTake(max(least-n, 1), most-n)
	if n+more < least {
		f.share.Give(n)
		return 0
	}
	return n + more
}

// TakeExcess accounts for n bytes that are already in memory.
func (f *Feed) TakeExcess(n int) { f.share.TakeExcess(n) }

// Give returns n bytes.
func (f *Feed) Give(n int) { f.share.Give(n) }

// ungrant returns the granted bytes that were not used.
func (f *Feed) ungrant() {
	f.mu.Lock()
	n := f.granted
	f.granted = 0
	f.mu.Unlock()
	f.share.Give(int(n))
	f.share.Done()
}
