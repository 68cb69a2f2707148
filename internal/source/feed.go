package source

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/weir-go/weir/internal/wire"
)

// Feed reads one shard ahead of who handles its records: a Scheduler makes the reads, and Next hands over what they brought. While the
// handler has something to do at most one more part waits for it; an answer that brought nothing wakes nobody.
//
// Next, Last and Close are for one goroutine at a time.
type Feed struct {
	// Wake, if it is set before the first Next, makes Next fail with [ErrEmpty] where it would wait. It is called once after that, when
	// there is something; it must not block.
	Wake func()
	// Calls, if it is set before the first Next, is what calls are made with in place of NewFeed's context, which then only ends reading
	// between two of them. A context keeps room for each that was ever made from it, which adds up when every shard has its own.
	Calls context.Context

	sched *Scheduler
	share *Share
	ctx   context.Context
	after *Feed // in a list of the scheduler

	// Of whoever has the turn, which is one goroutine at a time.
	poll  Poll
	limit int // records a read; at most poll.Limit

	mu      sync.Mutex
	state   feedState
	held    bool // no more turns
	gone    bool // nobody wants what comes
	atTip   bool
	hungry  bool // Next had nothing to hand over since the last read
	asleep  bool // whoever takes pages wants to be woken
	short   bool // the last read lacked memory: the next one waits until everything was handled
	light   bool // the next one will probably bring nothing, and soon; not changed while the feed is in a list of the scheduler
	queue   []*part
	parts   int // queued, or handed over and not released
	bytes   int // … of memory
	err     error
	needs   int                // bytes that the next read waits for
	granted int                // bytes that it may take
	expects int                // bytes of memory that the next answer will probably need; 0 when it will probably be small
	had     int                // bytes that the last reservation got, if it was less than it should have been; 0 if not
	starved time.Time          // since when it waits for those, with nothing of its own to be handled
	wake    chan struct{}      // not nil once somebody waits instead of being called
	end     context.CancelFunc // of the read that is under way; nil if there is none
	room    chan struct{}      // not nil while a turn waits for room
	status  Status
}

type feedState uint8

const (
	parked    feedState = iota // until Next asks, or there is room
	scheduled                  // its turn comes
	turning                    // its turn is
	over                       // the shard has ended
)

// part is a page, or a part of one, on its way to the handler.
type part struct {
	Page
	f     *Feed
	wire  wire.Page
	bytes int // of memory
}

var partPool = sync.Pool{New: func() any { return new(part) }}

const (
	// window is how much of an answer is read at a time: a shard whose handler is busy has two of them in memory.
	window = 512 << 10
	// ahead is how much of an answer may be in memory before the rest of it waits for the handler.
	ahead = 3 * window
	// patience is how long an answer waits for the handler to take what came before, on its connection; haste is how long
	// it does while other reads wait for their turn.
	patience = time.Second
	haste    = patience / 10
	// frugality is how long a read waits for as much memory as before: until then it will probably come from others that are read, after
	// that it is with handlers that hang.
	frugality = 10 * time.Second
)

var (
	// ErrEmpty is for a reader that does not want to wait.
	ErrEmpty = errors.New("nothing has been read that was not handled")

	errAhead = errors.New("more has been read than handled")
	// errSlow is why an answer is given up.
	errSlow = errors.New("the handler does not take what was read")
)

// NewFeed makes a feed that begins to read with the first Next. What poll says holds; memory is taken from share, which is the
// feed's from now on. ctx ends reading.
func NewFeed(ctx context.Context, poll Poll, sched *Scheduler, share *Share) *Feed {
	return &Feed{
		sched: sched, share: share, ctx: ctx, poll: poll, limit: poll.Limit, expects: window,
		status: Status{Since: time.Now(), Behind: -1},
	}
}

// Next waits for the next page that has records or ends the shard, or a part of one, and hands it over; it counts as delivered then. The
// errors are ctx's cause, ones that wrap [ErrNoShard] or [ErrNoStream], and [ErrEmpty].
func (f *Feed) Next(ctx context.Context) (Page, error) {
	for {
		if ctx.Err() != nil {
			return Page{}, context.Cause(ctx)
		}
		f.mu.Lock()
		if len(f.queue) > 0 {
			return f.hand(), nil
		}
		if err := f.err; err != nil {
			f.err = nil
			f.mu.Unlock()
			return Page{}, err
		}
		if needs := f.needs; needs > 0 {
			f.mu.Unlock()
			if err := f.share.Take(ctx, needs); err != nil {
				return Page{}, err
			}
			f.mu.Lock()
			f.needs, f.granted = 0, needs
		}
		f.hungry, f.asleep = true, true
		f.resume()
		if f.Wake != nil {
			f.mu.Unlock()
			return Page{}, ErrEmpty
		}
		wake := f.waits()
		f.mu.Unlock()
		select {
		case <-wake:
		case <-ctx.Done():
		}
		f.mu.Lock()
		f.asleep = false
		f.mu.Unlock()
	}
}

// Last reads once more, if everything that was read is handled and the shard was at its tip, without waiting for the idle interval and
// without trying again: for a reader that is about to give the shard away, so that the next one has less to catch up with.
func (f *Feed) Last(ctx context.Context) (Page, error) {
	f.mu.Lock()
	if !f.atTip || len(f.queue) > 0 || f.gone {
		f.mu.Unlock()
		return Page{}, errAhead
	}
	f.held = true
	for f.state == turning {
		wake := f.waits()
		f.mu.Unlock()
		select {
		case <-wake:
		case <-ctx.Done():
			return Page{}, context.Cause(ctx)
		}
		f.mu.Lock()
	}
	var err error
	if len(f.queue) == 0 {
		f.mu.Unlock()
		if err = pause(ctx, time.Until(f.poll.began.Add(readSpacing))); err == nil {
			var l lane
			f.poll.began = time.Now()
			_, err = f.read(ctx, &l)
			l.close()
		}
		f.mu.Lock()
	}
	if len(f.queue) == 0 {
		f.mu.Unlock()
		return Page{}, err
	}
	return f.hand(), nil
}

// Close ends reading, waits for the read that is under way, and lets go of what nobody took.
func (f *Feed) Close() {
	f.mu.Lock()
	f.held, f.gone = true, true
	if f.end != nil {
		f.end()
	}
	for f.state == turning {
		wake := f.waits()
		f.mu.Unlock()
		<-wake
		f.mu.Lock()
	}
	queue := f.queue
	f.queue = nil
	f.mu.Unlock()
	for _, p := range queue {
		p.release()
	}
	f.share.Close()
}

// Status may be called at any time.
func (f *Feed) Status() Status {
	f.mu.Lock()
	defer f.mu.Unlock()
	s := f.status
	for _, p := range f.queue {
		s.Buffered += len(p.Records)
	}
	return s
}

// hand returns the first part of the queue, and unlocks.
func (f *Feed) hand() Page {
	p := f.queue[0]
	f.queue[0] = nil
	if f.queue = f.queue[1:]; len(f.queue) == 0 {
		f.queue = nil
	}
	f.roomier()
	f.mu.Unlock()
	return p.Page
}

// release lets go of a part, once.
func (p *part) release() {
	f, bytes := p.f, p.bytes
	if f == nil {
		return
	}
	p.wire.Reset()
	*p = part{wire: p.wire}
	p.wire.Memory = nil
	partPool.Put(p)
	f.mu.Lock()
	f.parts--
	f.bytes -= bytes
	f.roomier()
	f.mu.Unlock()
}

// What follows is called with the lock held.

// roomy reports whether there is room for another part: nothing waits to be handled, or too little to be worth waiting for.
func (f *Feed) roomy() bool {
	if f.short {
		return f.parts == 0
	}
	return len(f.queue) == 0 && f.parts <= 1 || f.bytes < window/2 && f.parts < 8
}

// fits reports whether there is room for another part of an answer that has begun.
func (f *Feed) fits() bool { return f.bytes+window <= ahead || f.roomy() }

// roomier goes on after something has left the queue.
func (f *Feed) roomier() {
	if f.room != nil && f.fits() {
		select {
		case f.room <- struct{}{}:
		default:
		}
	}
	if f.roomy() && f.needs == 0 && f.err == nil {
		f.resume()
	}
}

// resume schedules the next turn.
func (f *Feed) resume() {
	if f.state == parked && !f.held && f.roomy() {
		f.state = scheduled
		f.sched.at(f, f.poll.due)
	}
}

// waits returns what the next rouse sends to.
func (f *Feed) waits() <-chan struct{} {
	if f.wake == nil {
		f.wake = make(chan struct{}, 1)
	}
	f.asleep = true
	return f.wake
}

func (f *Feed) rouse() {
	if !f.asleep {
		return
	}
	f.asleep = false
	if f.wake == nil {
		f.Wake()
		return
	}
	select {
	case f.wake <- struct{}{}:
	default:
	}
}

func (f *Feed) doing(d Doing) { f.since(d, time.Now()) }

func (f *Feed) since(d Doing, now time.Time) {
	if f.status.Doing != d {
		f.status.Doing, f.status.Since = d, now
	}
}
