package weir

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weir-go/weir/internal/memory"
	"github.com/weir-go/weir/internal/polling"
	"github.com/weir-go/weir/internal/source"
	"github.com/weir-go/weir/internal/streams"
	"github.com/weir-go/weir/shard"
)

// readShard is a shard of a reading. It is its feed's [source.Owner].
type readShard struct {
	shard.Shard
	in            *reading
	at            shard.Position
	started, done bool
	crowded       atomic.Bool   // it waits for memory
	feed          *polling.Feed // nil while it is not polled
	lost          error         // that it has left the stream

	// Guarded by the lock of what is ready.
	told  *read // what it has besides pages
	lined bool  // it is in line
	after *readShard
}

// stop ends reading a shard.
func (s *readShard) stop() {
	if s.feed != nil {
		s.feed.Close()
		s.feed = nil
	}
}

// readyShards are those that may have something, in line.
type readyShards struct {
	mu          sync.Mutex
	first, last *readShard
	poke        chan struct{} // has one element when there is somebody in line
}

// push puts a shard at the end of the line, unless it stands there already.
func (q *readyShards) push(s *readShard) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.line(s)
}

// tell puts a shard in line with something that is no page. It takes the place of what the shard
// was told and nobody has taken yet.
func (q *readyShards) tell(s *readShard, got read) {
	got.readShard = s
	q.mu.Lock()
	defer q.mu.Unlock()
	s.told = &got
	q.line(s)
}

// line is push with the lock held.
func (q *readyShards) line(s *readShard) {
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
func (q *readyShards) pop() (s *readShard, told *read) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if s = q.first; s == nil {
		return nil, nil
	}
	told, s.told = s.told, nil
	q.first, s.after, s.lined = s.after, nil, false
	return s, told
}

// next waits for what comes next. Its error is ctx's cause.
func (r *reading) next() (read, error) {
	for {
		if r.ctx.Err() != nil {
			return read{}, context.Cause(r.ctx)
		}
		s, told := r.ready.pop()
		switch {
		case s == nil:
			select {
			case <-r.ready.poke:
			case <-r.ctx.Done():
			}
		case told != nil:
			return *told, nil
		case s.feed != nil && !s.crowded.Load():
			if got, some := r.take(s); some {
				return got, nil
			}
		}
	}
}

// take takes what has been read of a shard that is polled. It does not wait.
func (r *reading) take(s *readShard) (got read, some bool) {
	got.readShard = s
	page, err := s.feed.Try(r.ctx)
	switch {
	case err == nil:
		got.page, got.last = page, r.over(page)
		return got, true
	case errors.Is(err, source.ErrEmpty): // the feed wakes it
	case errors.Is(err, memory.ErrNoMemory):
		s.crowded.Store(true)
		r.crowded.add(r, s, r.awaitMemory)
	case errors.Is(err, streams.ErrNoShard):
		r.lose(s, err)
	case r.ctx.Err() == nil:
		got.err, got.last = notFound(err), true
		return got, true
	}
	return got, false
}

// over reports whether nothing is to be read after a page. Only an empty one is the tip: a closed
// shard may say that it ends on the page after its last records.
func (r *reading) over(page source.Page) bool {
	return page.End || (r.opts.UntilTip && page.Behind <= 0 && len(page.Records) == 0)
}

// lose has the children of a shard looked for that has left the stream.
func (r *reading) lose(s *readShard, err error) {
	s.stop()
	s.lost = err
	r.lost.add(r, s, r.heirs)
}

// awaitMemory waits for the memory of shards, one after the other.
func (r *reading) awaitMemory(crowded []*readShard) {
	for _, s := range crowded {
		_ = s.feed.AwaitMemory(r.ctx) // it fails with ctx only
		s.crowded.Store(false)
		r.ready.push(s)
	}
}

// waitQueue is what has to be waited for, for some shards, by one goroutine, which is there as long
// as there are any.
type waitQueue struct {
	mu      sync.Mutex
	waiting []*readShard
	busy    bool
}

// add has do called for a shard, and others that came meanwhile.
func (e *waitQueue) add(r *reading, s *readShard, do func([]*readShard)) {
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
func (s *readShard) failed(err error) error {
	return fmt.Errorf("weir: reading shard %s of stream %s: %w", s.ID, s.in.source.Name, err)
}

// Context ends reading.
func (s *readShard) Context() context.Context { return s.in.ctx }

// Calls is what all shards' calls are made with.
func (s *readShard) Calls() context.Context { return s.in.ctx }

// Wake puts the shard in line.
func (s *readShard) Wake() { s.in.ready.push(s) }

// Failed tells of a failure that lasts.
func (s *readShard) Failed(err error, _ bool, _ time.Duration) {
	if s.feed.Status().Attempt%lasting == 0 || errors.Is(err, source.ErrNoPosition) {
		s.in.ready.tell(s, read{err: s.failed(err)})
	}
}

// Expired hears nothing: reading does not begin at records that were read before.
func (s *readShard) Expired(source.Expiry) {}
