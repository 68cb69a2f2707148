package source

import "time"

// Doing is the current activity or wait of a reader.
type Doing uint8

const (
	// Starting means that there was no request yet.
	Starting Doing = iota
	// AtTip means that all records have been read. The next read is due after the idle interval.
	AtTip
	// Pacing means that there are more records. The next read is due when the limits of Kinesis
	// allow it.
	Pacing
	// Positioning means that an iterator is being requested. It lasts at most 20 s.
	Positioning
	// Reading means that records are being requested or received. It lasts at most 20 s for each
	// part.
	Reading
	// AwaitingHandler means that pages wait for the handler and that there is no room for more
	// pages.
	AwaitingHandler
	// AwaitingMemory means that the budget has no room for the next records. It lasts until other
	// shards' handlers return memory and earlier requests were served.
	AwaitingMemory
	// BackingOff means that a read failed and will be retried. It lasts at most about 10 s.
	BackingOff
	// Subscribing means that a subscription is being requested, or that the reader waits until it
	// may request one.
	Subscribing
	// Subscribed means that records arrive as they are written.
	Subscribed
	// Ended means that the shard was read to its end.
	Ended
)

// String returns a short description.
func (d Doing) String() string {
	return [...]string{
		"starting", "at the tip", "pacing", "positioning", "reading", "waiting for the handler", "waiting for memory",
		"backing off", "subscribing", "subscribed", "read to its end",
	}[min(d, Ended)]
}

// Status is the status of reading a shard.
type Status struct {
	Doing   Doing
	Since   time.Time
	Attempt int // number of consecutive failed reads
	// Trying is since when reading has tried to get the next page. It is zero if no read is due.
	Trying time.Time
	Err    error // the error of the last read; nil if it succeeded
	// Lacks describes how much memory is in use while Doing is AwaitingMemory. Otherwise it is nil.
	Lacks error
	// Throttled is the number of throttled calls, and Failed is the number of other failed calls,
	// both since the beginning.
	Throttled, Failed int
	// Retried is the number of calls that were retried because their first connection was silent.
	Retried  int
	Behind   time.Duration
	Buffered int // number of records that were read and that the handler has not begun
	// Oldest is the arrival time of the oldest of these records. It is zero if there are none.
	Oldest time.Time
}

// Buffer counts further records, which follow those that were counted before.
func (s *Status) Buffer(records []Record) {
	if s.Oldest.IsZero() && len(records) > 0 {
		s.Oldest = time.UnixMilli(records[0].Arrival)
	}
	s.Buffered += len(records)
}
