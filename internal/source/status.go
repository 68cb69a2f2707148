package source

import "time"

// Doing is the present activity or wait of a reader.
type Doing uint8

const (
	// Starting: there was no request yet.
	Starting Doing = iota
	// AtTip: everything has been read; the next read is due after the idle interval.
	AtTip
	// Pacing: there is more to read; the next read is due when the service's limits allow it.
	Pacing
	// Positioning: an iterator is requested. At most 20 s.
	Positioning
	// Reading: records are requested, or an answer is received. At most 20 s for each part.
	Reading
	// AwaitingHandler: pages wait for the handler, and there is no room for more.
	AwaitingHandler
	// AwaitingMemory: the budget has no room for the next records. It lasts until other shards'
	// handlers give memory back and earlier requests were served.
	AwaitingMemory
	// BackingOff: a read failed and will be retried. At most about 10 s.
	BackingOff
	// Subscribing: a subscription is requested, or the reader waits until that is allowed.
	Subscribing
	// Subscribed: records arrive as they are written.
	Subscribed
	// Ended: the shard was read to its end.
	Ended
)

// String returns a short description for people.
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
	Attempt int // consecutive failed reads
	// Trying is the time since which reads are attempted without success; zero if no read is due.
	Trying time.Time
	Err    error // the error of the last read; nil if it succeeded
	// Lacks says how much memory is in use while Doing is AwaitingMemory; otherwise nil.
	Lacks error
	// Throttled is the number of throttled calls, and Failed that of other failed calls, since the
	// beginning.
	Throttled, Failed int
	// Retried is the number of calls that were made a second time because the first connection was
	// silent.
	Retried  int
	Behind   time.Duration
	Buffered int // records read that the handler has not begun
	// Oldest is when the oldest of these records arrived; zero without records.
	Oldest time.Time
}

// Buffer counts records that follow those counted before.
func (s *Status) Buffer(records []Record) {
	if s.Oldest.IsZero() && len(records) > 0 {
		s.Oldest = time.UnixMilli(records[0].Arrival)
	}
	s.Buffered += len(records)
}
