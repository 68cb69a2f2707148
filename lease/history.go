package lease

import (
	"context"
	"fmt"
	"time"
)

// Bounds of the history that stores keep.
const (
	// HistoryKept is for how long a store with [KeepHistory] keeps chunks of history.
	HistoryKept = 3 * time.Hour
	// MaxHistoryBytes bounds HistoryChunk.Data.
	MaxHistoryBytes = 60_000
)

// HistoryChunk is what a session reported of how its shards stood over some minutes, for people
// who look later. Nothing that decides about leases ever reads it.
type HistoryChunk struct {
	Session string
	Since   int64  // the minute that it begins with, counted from the beginning of 1970
	Data    []byte // at most [MaxHistoryBytes]; stores do not look into it
}

// Check is what every store does first with a chunk: it returns an error that names what makes no
// sense in it.
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

// Expired is the minute before which chunks have expired when c is put.
func (c HistoryChunk) Expired() int64 { return max(0, c.Since-int64(HistoryKept/time.Minute)) }

// Historian is what a store with [KeepHistory] can do beside the contract. Workers put a chunk a
// minute, beside their beats and never in their way; pages read them. Both methods may be called
// concurrently, by any number of processes.
type Historian interface {
	// PutHistory keeps a chunk, in the place of the one of the same session and Since if there is
	// one, whether or not the session lives. It also removes chunks of the application that have
	// expired, see [HistoryChunk.Expired], though perhaps not all at once. Data is not kept. A call
	// that failed, or whose answer was lost, may be made again.
	PutHistory(ctx context.Context, app string, c HistoryChunk) error
	// History returns the chunks whose Since is the given minute or later, sorted by Since and then
	// by session. What it returns may be as of some seconds ago, and belongs to the caller. Rows
	// that are no chunks are left out.
	History(ctx context.Context, app string, since int64) ([]HistoryChunk, error)
}
