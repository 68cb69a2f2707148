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
	feed          *polling.Feed // nil while it is not polled
	lost          error         // the error that it has left the stream

	// Guarded by the lock of readyShards.
	told  *Read // its result that is not a page
	lined bool  // it is in line
	after *Shard
}

// stop ends reading of a shard.
func (s *Shard) stop() {
	if s.feed != nil {
		s.feed.Close()
		s.feed = nil
	}
}

// readyShards is the line of shards that may have results.
type readyShards struct {
	mu          lock.Mutex[lock.Line]
	first, last *Shard
	poke        chan struct{} // has one element while the line is not empty
}

// push puts a shard at the end of the line, unless it is in line already.
func (q *readyShards) push(s *Shard) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.line(s)
}

// tell puts a shard in line with a result that is not a page. It replaces an earlier such result
// that was not taken yet.
func (q *readyShards) tell(s *Shard, got Read) {
	got.Shard = s
	q.mu.Lock()
	defer q.mu.Unlock()
	s.told = &got
	q.line(s)
}

// line is push with the lock held.
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

// pop removes the first shard from the line and returns it with its result, nil if the line is
// empty.
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

// waitQueue waits on behalf of shards. One goroutine exists while there are any.
type waitQueue struct {
	mu      lock.Mutex[lock.Waits]
	waiting []*Shard
	busy    bool
}

// add makes do run for a shard, together with others that arrive meanwhile.
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

// lasting is the number of consecutive failures after which the caller is notified.
const lasting = 5

// failed returns a failure in the form for the caller.
func (s *Shard) failed(err error) error {
	return fmt.Errorf("weir: reading shard %s of stream %s: %w", s.ID, s.in.Setup.Stream.Name, err)
}

// Context ends reading.
func (s *Shard) Context() context.Context { return s.in.ctx }

// Calls is the context of all shards' calls.
func (s *Shard) Calls() context.Context { return s.in.ctx }

// Wake puts the shard in line.
func (s *Shard) Wake() { s.in.ready.push(s) }

// Failed reports a lasting failure.
func (s *Shard) Failed(err error, _ bool, _ time.Duration) {
	if s.feed.Status().Attempt%lasting == 0 || errors.Is(err, source.ErrNoPosition) {
		s.in.ready.tell(s, Read{Err: s.failed(err)})
	}
}

// Expired does nothing: reading does not begin at records that were read before.
func (s *Shard) Expired(source.Expiry) {}
