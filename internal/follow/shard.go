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

// Shard is a shard that is followed, and its feed's [source.Owner].
type Shard struct {
	shard.Shard
	At            shard.Position // where reading began
	in            *Stream
	started, done bool
	feed          *polling.Feed // nil while it is not polled
	lost          error         // that it has left the stream

	// Guarded by the lock of what is ready.
	told  *Read // what it has besides pages
	lined bool  // it is in line
	after *Shard
}

// stop ends reading a shard.
func (s *Shard) stop() {
	if s.feed != nil {
		s.feed.Close()
		s.feed = nil
	}
}

// readyShards are those that may have something, in line.
type readyShards struct {
	mu          lock.Mutex[lock.Line]
	first, last *Shard
	poke        chan struct{} // has one element when there is somebody in line
}

// push puts a shard at the end of the line, unless it stands there already.
func (q *readyShards) push(s *Shard) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.line(s)
}

// tell puts a shard in line with something that is no page. It takes the place of what the shard
// was told and nobody has taken yet.
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

// pop takes the first shard out of the line, and what it was told; nil if there is none.
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

// waitQueue is what has to be waited for, for some shards, by one goroutine, which is there as long
// as there are any.
type waitQueue struct {
	mu      lock.Mutex[lock.Waits]
	waiting []*Shard
	busy    bool
}

// add has do called for a shard, and others that came meanwhile.
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

// lasting is how many failures in a row are worth telling the caller.
const lasting = 5

// failed is a failure as the caller is told of it.
func (s *Shard) failed(err error) error {
	return fmt.Errorf("weir: reading shard %s of stream %s: %w", s.ID, s.in.Setup.Stream.Name, err)
}

// Context ends reading.
func (s *Shard) Context() context.Context { return s.in.ctx }

// Calls is what all shards' calls are made with.
func (s *Shard) Calls() context.Context { return s.in.ctx }

// Wake puts the shard in line.
func (s *Shard) Wake() { s.in.ready.push(s) }

// Failed tells of a failure that lasts.
func (s *Shard) Failed(err error, _ bool, _ time.Duration) {
	if s.feed.Status().Attempt%lasting == 0 || errors.Is(err, source.ErrNoPosition) {
		s.in.ready.tell(s, Read{Err: s.failed(err)})
	}
}

// Expired hears nothing: reading does not begin at records that were read before.
func (s *Shard) Expired(source.Expiry) {}
