package lease

import (
	"context"
	"fmt"
	"time"
)

// These are the limits of the stored history.
const (
	// HistoryKept is how long a store with [KeepHistory] keeps chunks of history.
	HistoryKept = 3 * time.Hour
	// MaxHistoryBytes is the limit on HistoryChunk.Data.
	MaxHistoryBytes = 60_000
)

// HistoryChunk contains a session's report about its shards over some minutes. It is for operators.
// Decisions about leases do not use it.
type HistoryChunk struct {
	Session string
	Since   int64  // the first minute, counted from 1970
	Data    []byte // at most [MaxHistoryBytes]; opaque to stores
}

// Check validates a chunk. Every store calls it first. It returns an error that names the invalid
// field.
func (c HistoryChunk) Check() error {
	const last = 9_999_999_999 // ten digits, after the year 20,000
	switch {
	case c.Since < 0 || c.Since > last:
		return fmt.Errorf("lease: history of session %.60q: minute %d is not between 0 and %d", c.Session, c.Since, int64(last))
	case len(c.Data) == 0 || len(c.Data) > MaxHistoryBytes:
		return fmt.Errorf("lease: history of session %.60q: %d bytes are not between 1 and %d", c.Session, len(c.Data), MaxHistoryBytes)
	}
	return checkSession("HistoryChunk.Session", c.Session)
}

// Expired returns a minute. Once c is stored, all chunks before that minute have expired.
func (c HistoryChunk) Expired() int64 { return max(0, c.Since-int64(HistoryKept/time.Minute)) }

// Historian is implemented by stores with [KeepHistory]. Workers store one chunk per minute, in
// parallel to their heartbeats and without delaying them. Status pages read the chunks. Both
// methods may be called concurrently, by any number of processes.
type Historian interface {
	// PutHistory stores a chunk, even if the session has ended. It replaces the chunk with the same
	// session and Since. It also removes expired chunks of the application, see
	// [HistoryChunk.Expired], but possibly not all at once. It does not retain Data. The caller may
	// repeat a call that failed.
	PutHistory(ctx context.Context, app string, c HistoryChunk) error
	// History returns the chunks whose Since is at least the given minute, sorted by Since and then
	// by session. It omits malformed rows. The result may be some seconds old and belongs to the
	// caller.
	History(ctx context.Context, app string, since int64) ([]HistoryChunk, error)
}
