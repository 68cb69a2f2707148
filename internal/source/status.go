package source

import (
	"time"

	"github.com/weir-go/weir/health"
)

// Status is the status of reading a shard.
type Status struct {
	// Doing describes what the reader has been doing since the time Since, or why it waits. It is
	// ReadFailed, or a reason whose activity is Starting, Reading, Waiting or Stopping.
	Doing   health.Reason
	Since   time.Time
	Attempt int // number of consecutive failed reads
	// Trying is since when reading has tried to get the next page. It is zero if no read is due.
	Trying time.Time
	Err    error // the error of the last read; nil if it succeeded
	// Lacks describes how much memory is in use while Doing is AwaitingMemory. Otherwise it is nil.
	Lacks error
	// Throttled is the number of throttled calls, and Failed is the number of other failed calls.
	// Both count from the beginning of reading.
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
