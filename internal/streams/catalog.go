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

// Catalog lists streams for an application's leader, and remembers of each when it was created, so
// that one that was deleted and created anew under its name is recognized. To ask for that takes a
// call of its own, so it is done before the first listing and after the second, and again when a
// listing shows other shards under the names of those before. Safe for concurrent use, for one
// stream by one caller at a time.
type Catalog struct {
	Client *kinesis.Client
	// Refused is told once that nobody may ask when a stream was created.
	Refused func(s Stream, err error)
	// Spread is told when a stream's records are found to be distributed whatever their keys, and
	// when they are not any more. It may be nil.
	Spread func(s Stream, auto bool)

	mu    lock.Mutex[lock.Catalog]
	known map[string]creation // by the stream's name
	told  bool                // Refused was
}

// creation is what is known of a stream's creation.
type creation struct {
	at    int64     // Unix milliseconds, 0 when it is not known
	asked time.Time // zero: ask with the next listing
	// that starts are of the stream that was created then: the answer was the same before and after
	sure   bool
	starts map[string]Start // of its shards, by ID
	auto   bool             // its records are distributed whatever their keys
}

// askAgain is after how long it is asked again without a reason.
const askAgain = time.Hour

// List lists a stream; with a start, for an application that has not seen it. Its errors wrap
// [ErrNoStream] when there is no such stream.
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
			// After it was asked, so that what is listed was created then or later, which is asked
			// for after the next listing.
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

// ask asks when the stream was created. That the service will not say does not keep the stream from
// being read.
func (c *Catalog) ask(ctx context.Context, s Stream, k creation) (creation, error) {
	at, auto, err := created(ctx, c.Client, s)
	switch {
	case err == nil:
		if auto != k.auto && c.Spread != nil {
			c.Spread(s, auto)
		}
		return creation{at, time.Now(), k.sure && at == k.at, k.starts, auto}, nil
	case Refused(err) && !unsigned(err): // else it mends itself, or nothing works
		c.mu.Lock()
		told := c.told
		c.told = true
		c.mu.Unlock()
		if !told {
			c.Refused(s, err)
		}
		return creation{0, time.Now(), true, k.starts, k.auto}, nil // nobody will say more
	default:
		return creation{k.at, time.Time{}, false, k.starts, k.auto}, fmt.Errorf("asking when the stream was created: %w", err)
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

// others reports whether a listing shows other shards than one before: a shard's first sequence
// number never changes, and not all of them leave a stream at once.
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
