package follow

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/weir-go/weir/internal/lock"
	"github.com/weir-go/weir/internal/polling"
	"github.com/weir-go/weir/internal/source"
	"github.com/weir-go/weir/shard"
)

// Shard is a shard of a followed stream. It is the [source.Owner] of its feed.
type Shard struct {
	shard.Shard
	At            shard.Position // where reading began
	in            *Stream
	started, done bool
	feed          *polling.Feed // nil while the shard is not polled
	lost          error         // the error after the shard has left the stream

	// The lock of readyShards guards the following fields.
	told  *Read // a result that does not come from the feed
	lined bool  // the shard is in the line
	after *Shard
}

// stop stops reading the shard.
func (s *Shard) stop() {
	if s.feed != nil {
		s.feed.Close()
		s.feed = nil
	}
}

// readyShards is a line of shards that may have results.
type readyShards struct {
	mu          lock.Mutex[lock.Line]
	first, last *Shard
	poke        chan struct{} // contains an element while the line is not empty
}

// push appends a shard to the line, unless it is already in the line.
func (q *readyShards) push(s *Shard) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.line(s)
}

// tell stores a result that does not come from the shard's feed: an error, or a page that was read
// by fan-out. It also appends the shard to the line. The result replaces an earlier one that was
// not taken yet.
func (q *readyShards) tell(s *Shard, got Read) {
	got.Shard = s
	q.mu.Lock()
	defer q.mu.Unlock()
	s.told = &got
	q.line(s)
}

// line is like push. The caller holds the lock.
func (q *readyShards) line(s *Shard) {
	if s.lined {
		return
	}
	s.lined = true
	if q.first == nil {
		q.first = s
	} else {
		q.last.after = s
	}
	q.last = s
	select {
	case q.poke <- struct{}{}:
	default:
	}
}

// pop removes the first shard from the line and returns it with its result. It returns nil if the
// line is empty.
func (q *readyShards) pop() (s *Shard, told *Read) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if s = q.first; s == nil {
		return nil, nil
	}
	told, s.told = s.told, nil
	q.first, s.after, s.lined = s.after, nil, false
	return s, told
}

// waitQueue calls a slow function for shards in one background goroutine. The goroutine exists only
// while shards wait for the function.
type waitQueue struct {
	mu      lock.Mutex[lock.Waits]
	waiting []*Shard
	busy    bool
}

// add makes the goroutine call do for a shard. Shards that are added while do runs are passed to
// the next call together.
func (e *waitQueue) add(r *Stream, s *Shard, do func([]*Shard)) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.waiting = append(e.waiting, s)
	if e.busy {
		return
	}
	e.busy = true
	r.running.Go(func() {
		for {
			e.mu.Lock()
			some := e.waiting
			e.waiting, e.busy = nil, len(some) > 0
			e.mu.Unlock()
			if len(some) == 0 {
				return
			}
			do(some)
		}
	})
}

// lasting is the number of consecutive failures after which the caller gets an error.
const lasting = 5

// failed returns the error of a failure for the caller.
func (s *Shard) failed(err error) error {
	return fmt.Errorf("weir: reading shard %s of stream %s: %w", s.ID, s.in.Setup.Stream.Name, err)
}

// Context returns the context whose end stops reading.
func (s *Shard) Context() context.Context { return s.in.ctx }

// Calls returns the context for the calls of all shards.
func (s *Shard) Calls() context.Context { return s.in.ctx }

// Wake appends the shard to the line.
func (s *Shard) Wake() { s.in.ready.push(s) }

// Failed reports a lasting failure or a refused position to the caller.
func (s *Shard) Failed(err error, _ bool, _ time.Duration) {
	if s.feed.Status().Attempt%lasting == 0 || errors.Is(err, source.ErrNoPosition) {
		s.in.ready.tell(s, Read{Err: s.failed(err)})
	}
}

// Expired does nothing, because a Reader does not report records that have expired.
func (s *Shard) Expired(source.Expiry) {}
