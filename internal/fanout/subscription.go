package fanout

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/weir-go/weir/internal/lock"
	"github.com/weir-go/weir/internal/memory"
	"github.com/weir-go/weir/internal/source"
	"github.com/weir-go/weir/internal/wire"
	"github.com/weir-go/weir/internal/wire/codec"
	"github.com/weir-go/weir/shard"
)

var (
	// errRenewed is the end of a subscription that this side has chosen, so that not all of a
	// process end together.
	errRenewed = errors.New("the subscription is renewed")
	// errStalled is why a subscription is given up that has sent more than the handler takes.
	errStalled = errors.New("the handler does not take what was sent")
	// errNothing says that no event is waiting.
	errNothing = errors.New("no event is waiting")
)

// subscription is one event stream, from the answer to SubscribeToShard until close, and a
// goroutine that reads it ahead of the handler.
type subscription struct {
	wire  *wire.Subscription
	share *memory.Share
	until time.Time     // when to end it
	done  chan struct{} // closed when the goroutine has ended
	wake  chan struct{} // for who takes events, when there is something; room for one
	room  chan struct{} // for the goroutine, when something was taken; room for one

	taking int  // bytes of the event that is being read; of the goroutine
	waited bool // for room for it; of the goroutine
	taken  int  // events; of who takes them

	mu     lock.Mutex[lock.Subscription]
	queue  []*event
	bytes  int   // of the memory of what is queued
	err    error // the end, behind the queue
	closed bool
	doing  source.Doing // of the goroutine
	since  time.Time
}

// event is one that was read and checked.
type event struct {
	page         source.Page
	at           shard.Position // after it
	continuation string
	bytes        int // of memory
	wire         codec.Page
}

const (
	// What is read ahead of the handler: one event while another waits for it, unless they are
	// larger than that together.
	aheadEvents = 2
	aheadBytes  = 2 << 20
	// stallTimeout is how long a subscription is held that nobody reads, because the handler has
	// enough to do.
	stallTimeout = 30 * time.Second
	// emptyAfter is how long a read takes that shows that nothing had been sent before it began.
	// While nobody reads, events lie between the service and here that say nothing of now.
	emptyAfter = time.Second
)

// roomFor reports whether an event of n bytes may be read while so many events and bytes wait to be
// handled. n is 0 while it is not known.
func roomFor(n, events, bytes int) bool {
	return events == 0 || (events < aheadEvents && bytes+n <= aheadBytes)
}

// read starts to read w. from is the position that it begins at; first is how long the first event
// may take, and until when the subscription is ended after the next event.
func read(w *wire.Subscription, share *memory.Share, from shard.Position, first time.Duration, until time.Time) *subscription {
	s := &subscription{
		wire: w, share: share, until: until, done: make(chan struct{}), wake: make(chan struct{}, 1), room: make(chan struct{}, 1),
		doing: source.Subscribed, since: time.Now(),
	}
	go func() {
		defer close(s.done)
		defer w.Close()
		s.end(s.run(from, first))
	}()
	return s
}

// run reads events until one is the last.
func (s *subscription) run(from shard.Position, silence time.Duration) error {
	prompt := true // what comes was sent after reading began
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
			s.now(source.Subscribed)
			return nil
		}
		s.waited = true
		s.now(source.AwaitingHandler)
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

// put queues an event. Of empty ones in a row the last says all.
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

// empty is also not one whose only record is that of the position, which shows that it has not
// expired.
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

// next waits for an event. It fails with ctx's cause, or with what ended the subscription.
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

// waiting returns an event if one has come already.
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

// closeTimeout bounds the wait for the goroutine, which an HTTP client of the user's own could hold
// up.
const closeTimeout = 5 * time.Second

// close ends the stream, waits for the goroutine that reads it, and lets go of what nobody took.
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
