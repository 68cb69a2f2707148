package fanout

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/weir-go/weir/health"
	"github.com/weir-go/weir/internal/lock"
	"github.com/weir-go/weir/internal/memory"
	"github.com/weir-go/weir/internal/source"
	"github.com/weir-go/weir/internal/wire"
	"github.com/weir-go/weir/internal/wire/codec"
	"github.com/weir-go/weir/shard"
)

var (
	// errRenewed ends a subscription early. The reader does that so that the subscriptions of a
	// process do not all end together.
	errRenewed = errors.New("the subscription is renewed")
	// errStalled ends a subscription whose handler is too slow for its events.
	errStalled = errors.New("the handler is too slow for the events")
	// errNothing is returned if no event is queued.
	errNothing = errors.New("no event is waiting")
)

// subscription is one event stream from the answer of SubscribeToShard until close. A goroutine
// reads it ahead of the handler.
type subscription struct {
	wire  *wire.Subscription
	share *memory.Share
	until time.Time     // when to end the subscription
	done  chan struct{} // closed when the goroutine has ended
	wake  chan struct{} // signals a queued event to the reader; capacity one
	room  chan struct{} // signals room in the queue to the goroutine; capacity one

	taking int  // size of the event that is being read; owned by the goroutine
	waited bool // the goroutine waited for room for that event; owned by the goroutine
	taken  int  // number of events; owned by the reader

	mu     lock.Mutex[lock.Subscription]
	queue  []*event
	bytes  int   // memory of the queued events
	err    error // returned after the queue is empty
	closed bool
	doing  health.Reason // state of the goroutine
	since  time.Time
}

// event is an event that was read and checked.
type event struct {
	page         source.Page
	at           shard.Position // after the event
	continuation string
	bytes        int
	wire         codec.Page
}

const (
	// aheadEvents and aheadBytes limit how much is read ahead of the handler. One event may be read
	// while another is queued, unless both together are too large.
	aheadEvents = 2
	aheadBytes  = 2 << 20
	// stallTimeout is how long a subscription may stay unread while the handler is busy.
	stallTimeout = 30 * time.Second
	// emptyAfter is the minimum duration of a read that returns a recent event. A shorter read may
	// return an old event: while no goroutine reads, events are buffered on the way. Such events
	// show nothing about the current tip.
	emptyAfter = time.Second
)

// roomFor reports whether the next event may be read. n is the size of that event in bytes, or 0 if
// it is unknown. events is the number of queued events, and bytes is their total size.
func roomFor(n, events, bytes int) bool {
	return events == 0 || (events < aheadEvents && bytes+n <= aheadBytes)
}

// read starts to read w. from is the position where w begins. first is the timeout for the first
// event. The subscription ends with the first event after until.
func read(w *wire.Subscription, share *memory.Share, from shard.Position, first time.Duration, until time.Time) *subscription {
	s := &subscription{
		wire: w, share: share, until: until, done: make(chan struct{}), wake: make(chan struct{}, 1), room: make(chan struct{}, 1),
		doing: health.Subscribed, since: time.Now(),
	}
	go func() {
		defer close(s.done)
		defer w.Close()
		s.end(s.run(from, first))
	}()
	return s
}

// run reads events until the last one.
func (s *subscription) run(from shard.Position, silence time.Duration) error {
	prompt := true // the event was sent after the read began
	for ; ; silence = silenceTimeout {
		s.waited = false
		if err := s.await(s.wire.Context(), 0); err != nil {
			return err
		}
		began := time.Now()
		s.taking = 0
		ev := new(event)
		ev.wire.Memory = eventMemory{s}
		err := s.wire.Next(silence, &ev.wire)
		if err == nil {
			ev.page, ev.at, ev.continuation, err = pageOf(&ev.wire, from)
		}
		if err != nil {
			ev.wire.Release()
			return err
		}
		from, ev.bytes = ev.at, max(s.taking, ev.page.Bytes)
		if prompt = !s.waited && (prompt || time.Since(began) >= emptyAfter); prompt {
			ev.page.Tip = began
		}
		s.put(ev)
		switch {
		case ev.page.End:
			return wire.ErrEnded
		case !time.Now().Before(s.until):
			return errRenewed
		}
	}
}

// await waits until there is room for an event of n bytes.
func (s *subscription) await(ctx context.Context, n int) error {
	var timer *time.Timer
	for {
		s.mu.Lock()
		ok := roomFor(n, len(s.queue), s.bytes)
		s.mu.Unlock()
		if ok {
			s.now(health.Subscribed)
			return nil
		}
		s.waited = true
		s.now(health.AwaitingHandler)
		if timer == nil {
			timer = time.NewTimer(stallTimeout)
			defer timer.Stop()
		}
		select {
		case <-s.room:
		case <-timer.C:
			return fmt.Errorf("%w for %v", errStalled, stallTimeout)
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// put queues an event. Of consecutive empty events it only keeps the last one.
func (s *subscription) put(ev *event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch n := len(s.queue); {
	case s.closed:
		ev.wire.Release()
		return
	case n > 0 && s.queue[n-1].empty() && ev.empty():
		last := s.queue[n-1]
		s.bytes -= last.bytes
		last.wire.Release()
		s.queue[n-1] = ev
	default:
		s.queue = append(s.queue, ev)
	}
	s.bytes += ev.bytes
	notify(s.wake)
}

// empty reports whether an event has no records and does not end the shard. An event that contains
// only the record of the start position is not empty, although pageOf omits that record. The record
// shows that the position has not expired.
func (ev *event) empty() bool { return len(ev.wire.Records) == 0 && !ev.page.End }

func (s *subscription) end(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.err = err
	notify(s.wake)
}

func notify(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// next waits for an event. It returns the cause of ctx, or the error that ended the subscription.
func (s *subscription) next(ctx context.Context) (*event, error) {
	for {
		ev, err := s.waiting()
		if !errors.Is(err, errNothing) {
			return ev, err
		}
		select {
		case <-s.wake:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// waiting returns an event that has already arrived, if there is one.
func (s *subscription) waiting() (*event, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case len(s.queue) > 0:
		ev := s.queue[0]
		s.queue[0] = nil
		s.queue = s.queue[1:]
		s.bytes -= ev.bytes
		s.taken++
		notify(s.room)
		return ev, nil
	case s.err != nil:
		return nil, s.err
	}
	return nil, errNothing
}

// closeTimeout limits the wait for the goroutine, which a user's HTTP client could block.
const closeTimeout = 5 * time.Second

// close ends the stream, waits for the goroutine that reads it, and releases the events that were
// not delivered.
func (s *subscription) close() {
	s.wire.Stop()
	timer := time.NewTimer(closeTimeout)
	defer timer.Stop()
	select {
	case <-s.done:
	case <-timer.C:
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	for _, ev := range s.queue {
		ev.wire.Release()
	}
	s.queue = nil
}
