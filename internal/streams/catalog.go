package streams

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/weir-go/weir/internal/lock"
	"github.com/weir-go/weir/internal/wire"
	"github.com/weir-go/weir/shard"
)

// Catalog lists streams for an application's leader. It stores the creation time of each stream, to
// recognize a stream that was deleted and created again with the same name. A separate call returns
// the creation time. The Catalog makes that call before the first listing, after the second, and
// once per hour. It also makes the call if the first sequence numbers in a listing have changed. A
// Catalog is safe for concurrent use, but each stream may only have one caller at a time.
type Catalog struct {
	Client wire.Kinesis
	// Refused is called once, for the first stream whose creation time Kinesis refuses to return.
	Refused func(s Stream, err error)
	// Spread is called when Kinesis begins or stops to distribute a stream's records regardless of
	// their keys. It may be nil.
	Spread func(s Stream, auto bool)

	mu    lock.Mutex[lock.Catalog]
	known map[string]creation // by the name of the stream
	told  bool                // Refused was called
}

// creation contains the knowledge about a stream's creation time.
type creation struct {
	at    int64     // Unix milliseconds; 0 if unknown
	asked time.Time // zero means: query with the next listing
	// sure is set if starts belong to the stream that was created at this time, because the answer
	// was the same before and after the listing.
	sure   bool
	starts map[string]Start // for each shard, by ID
	auto   bool             // Kinesis distributes records regardless of their keys
}

// askAgain is the interval of regular queries of the creation time.
const askAgain = time.Hour

// List lists a stream. If start is set, the stream is new to the application. The error wraps
// [ErrNoStream] if the stream does not exist.
func (c *Catalog) List(ctx context.Context, s Stream, start shard.Position) (Listing, error) {
	k := c.of(s.Name)
	var err error
	asks := k.asked.IsZero() || time.Since(k.asked) >= askAgain
	if asks {
		if k, err = c.ask(ctx, s, k); err != nil {
			return Listing{}, err
		}
	}
	listing, starts, err := listFrom(ctx, c.Client, s, start)
	if other := others(k.starts, starts); err == nil && (other || !k.sure && !asks) {
		before := k.at
		k, err = c.ask(ctx, s, k)
		k.sure = err == nil && k.at == before && !other
		if err == nil && !k.sure {
			// The stream was listed after its creation time was read, so it was created at that
			// time or later. The query after the next listing shows whether it was created later.
			listing, starts, err = listFrom(ctx, c.Client, s, start)
		}
	}
	if errors.Is(err, ErrNoStream) {
		k.asked = time.Time{}
	}
	if err == nil {
		k.starts, listing.Born = starts, k.at
	}
	c.set(s.Name, k)
	return listing, err
}

// ask queries the creation time of a stream. If Kinesis refuses the query, the stream is still
// read.
func (c *Catalog) ask(ctx context.Context, s Stream, k creation) (creation, error) {
	at, auto, err := created(ctx, c.Client, s)
	switch {
	case err == nil:
		if auto != k.auto && c.Spread != nil {
			c.Spread(s, auto)
		}
		return creation{at, time.Now(), k.sure && at == k.at, k.starts, auto}, nil
	case Refused(err) && !unsigned(err): // other errors pass, or prevent everything
		c.mu.Lock()
		told := c.told
		c.told = true
		c.mu.Unlock()
		if !told {
			c.Refused(s, err)
		}
		return creation{0, time.Now(), true, k.starts, k.auto}, nil // a retry would not help
	default:
		return creation{k.at, time.Time{}, false, k.starts, k.auto}, fmt.Errorf("getting the creation time of the stream: %w", err)
	}
}

func (c *Catalog) of(name string) creation {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.known[name]
}

func (c *Catalog) set(name string, k creation) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.known == nil {
		c.known = map[string]creation{}
	}
	c.known[name] = k
}

// others reports whether two listings belong to different streams. The first sequence number of a
// shard never changes, and a stream never loses all its shards at once.
func others(before, now map[string]Start) bool {
	same := 0
	for id, start := range before {
		switch s, here := now[id]; {
		case !here:
		case s != start:
			return true
		default:
			same++
		}
	}
	return len(before) > 0 && same == 0
}
