package streams

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/kinesis"

	"github.com/weir-go/weir/internal/lock"
	"github.com/weir-go/weir/shard"
)

// Catalog lists streams for an application's leader. It remembers the creation time of each stream,
// so that it recognizes one that was deleted and created again under the same name. The creation
// time takes a separate call. The catalog makes it before the first listing and after the second,
// and again if a listing has other first sequence numbers than before. Safe for concurrent use, but
// each stream may have only one caller at a time.
type Catalog struct {
	Client *kinesis.Client
	// Refused is called once if there is no permission to read a stream's creation time.
	Refused func(s Stream, err error)
	// Spread is called when the service begins or stops to distribute a stream's records regardless
	// of their keys. It may be nil.
	Spread func(s Stream, auto bool)

	mu    lock.Mutex[lock.Catalog]
	known map[string]creation // by the stream's name
	told  bool                // Refused was called
}

// creation is the state about a stream's creation time.
type creation struct {
	at    int64     // Unix milliseconds, 0 if unknown
	asked time.Time // zero: query with the next listing
	// starts belong to the stream that was created at this time: the answer was the same before and
	// after the listing
	sure   bool
	starts map[string]Start // of its shards, by ID
	auto   bool             // its records are distributed regardless of their keys
}

// askAgain is the interval at which the creation time is queried without a reason.
const askAgain = time.Hour

// List lists a stream. With a start, the stream is new to the application. Errors wrap
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
			// Listed after the creation time was read: the listed stream was created at that time
			// or later. The query after the next listing decides which.
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

// ask queries when the stream was created. A refusal does not keep the stream from being read.
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

// others reports whether a listing is of another stream than an earlier one. The first sequence
// number of a shard never changes, and not all shards leave a stream at once.
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
