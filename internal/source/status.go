package source

import "time"

// Doing is what reading a shard is at, or waits for.
type Doing uint8

const (
	// Starting: nothing has been asked for yet.
	Starting Doing = iota
	// AtTip: everything has been read; the next read is due after the idle interval.
	AtTip
	// Pacing: there is more to read; the next read is due when the service's limits allow it.
	Pacing
	// Positioning: an iterator is asked for. Bounded by 20 s.
	Positioning
	// Reading: records are asked for, or an answer is received. Bounded by 20 s for each part of
	// it.
	Reading
	// AwaitingHandler: what was read waits for the handler, and there is no room for more.
	AwaitingHandler
	// AwaitingMemory: the budget has no room for the next records. It lasts until other shards'
	// handlers give memory back and those that asked before were served.
	AwaitingMemory
	// BackingOff: a read failed and is going to be tried again. Bounded by 10 s or so.
	BackingOff
	// Subscribing: a subscription is asked for, or the time until that is allowed.
	Subscribing
	// Subscribed: records come as they are written.
	Subscribed
	// Ended: the shard was read to its end.
	Ended
)

// String is a short description for people.
func (d Doing) String() string {
	return [...]string{
		"starting", "at the tip", "pacing", "positioning", "reading", "waiting for the handler", "waiting for memory",
		"backing off", "subscribing", "subscribed", "read to its end",
	}[min(d, Ended)]
}

// Status is how reading a shard stands.
type Status struct {
	Doing   Doing
	Since   time.Time
	Attempt int // reads in a row that have failed
	// Trying is since when reads have been tried without one that succeeded; zero when nothing is
	// to be read, or not yet.
	Trying time.Time
	Err    error // why the last of them did; nil when the last read succeeded
	// Lacks says how much memory is in use while Doing is AwaitingMemory; else nil.
	Lacks error
	// Throttled is how many calls were throttled, and Failed how many failed otherwise, since the
	// beginning.
	Throttled, Failed int
	// Retried is how many calls were made a second time, because nothing came over the connection
	// of the first.
	Retried  int
	Behind   time.Duration
	Buffered int // records read, that the handler has not begun with
	// Oldest is when the first of them arrived, zero when there are none.
	Oldest time.Time
}

// Buffer notes records that follow those noted before.
func (s *Status) Buffer(records []Record) {
	if s.Oldest.IsZero() && len(records) > 0 {
		s.Oldest = time.UnixMilli(records[0].Arrival)
	}
	s.Buffered += len(records)
}
