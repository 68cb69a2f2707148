package lease

import (
	"context"
	"fmt"
	"time"
)

// Limits on the history that stores keep.
const (
	// HistoryKept is how long a store with [KeepHistory] keeps chunks of history.
	HistoryKept = 3 * time.Hour
	// MaxHistoryBytes is the limit on HistoryChunk.Data.
	MaxHistoryBytes = 60_000
)

// HistoryChunk is the report of a session about its shards over some minutes, for operators.
// Decisions about leases do not use it.
type HistoryChunk struct {
	Session string
	Since   int64  // the first minute, counted from the beginning of 1970
	Data    []byte // at most [MaxHistoryBytes]; opaque to stores
}

// Check validates a chunk. Every store calls it first. It returns an error that names the invalid
// field.
func (c HistoryChunk) Check() error {
	const last = 9_999_999_999 // ten digits: after the year 20,000
	switch {
	case c.Since < 0 || c.Since > last:
		return fmt.Errorf("lease: history of session %.60q: minute %d is not between 0 and %d", c.Session, c.Since, int64(last))
	case len(c.Data) == 0 || len(c.Data) > MaxHistoryBytes:
		return fmt.Errorf("lease: history of session %.60q: %d bytes are not between 1 and %d", c.Session, len(c.Data), MaxHistoryBytes)
	}
	return checkSession("HistoryChunk.Session", c.Session)
}

// Expired returns the minute before which chunks have expired when c is stored.
func (c HistoryChunk) Expired() int64 { return max(0, c.Since-int64(HistoryKept/time.Minute)) }

// Historian is implemented by a store with [KeepHistory], in addition to the contract. Workers
// store one chunk per minute, in parallel to their heartbeats and without delaying them. Status
// pages read the chunks. Both methods may be called concurrently, by any number of processes.
type Historian interface {
	// PutHistory stores a chunk, whether or not the session is alive. It replaces the chunk of the
	// same session and Since if there is one. It also removes expired chunks of the application,
	// see [HistoryChunk.Expired], though perhaps not all at once. It does not retain Data. The
	// caller may repeat a call that failed or whose answer was lost.
	PutHistory(ctx context.Context, app string, c HistoryChunk) error
	// History returns the chunks whose Since is the given minute or later, sorted by Since and then
	// by session. The result may be some seconds old and belongs to the caller. Malformed rows are
	// left out.
	History(ctx context.Context, app string, since int64) ([]HistoryChunk, error)
}
