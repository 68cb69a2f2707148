package polling

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/weir-go/weir/internal/lock"
	"github.com/weir-go/weir/internal/memory"
	"github.com/weir-go/weir/internal/mono"
	"github.com/weir-go/weir/internal/retry"
	"github.com/weir-go/weir/internal/source"
	"github.com/weir-go/weir/internal/wire/codec"
)

// Feed reads one shard ahead of who handles its records: a Scheduler makes the reads, and Next
// hands over what they brought. While the handler has something to do at most one more part waits
// for it; an answer that brought nothing wakes nobody.
//
// Next, Last and Close are for one goroutine at a time.
//
// Thousands of feeds idle: what only a busy one needs is kept elsewhere, and times and counts are
// small.
type Feed struct {
	mu lock.Mutex[lock.Feed] // guards the fields without another owner

	sched *Scheduler
	share memory.Share
	after *Feed // in a list of the scheduler

	// Of whoever has the turn, which is one goroutine at a time.
	poll  Poll
	limit int32 // records a read; at most poll.Limit

	parts   int32 // queued, or handed over and not released
	bytes   int32 // … of memory
	needs   int32 // bytes without which the next read cannot bring a record; 0 while it can
	granted int32 // bytes that it may take
	// bytes of memory that a record of the last answer with records needed, on average; 0 before it
	mean int32
	// bytes that the last reservation got, if it was less than it should have been; 0 if not
	had int32

	state  feedState
	held   bool // no more turns
	gone   bool // nobody wants what comes
	atTip  bool
	hungry bool // Next had nothing to hand over since the last read
	asleep bool // whoever takes pages wants to be woken
	short  bool // the last read lacked memory: the next one waits until everything was handled
	small  bool // the next answer will probably be small, because the last one reached the tip
	// the next one will probably bring nothing, and soon; not changed while the feed is in a list
	// of the scheduler
	light bool
	doing source.Doing
	// Waits, if it is set before the first Next, makes Next wait where it would fail with
	// [source.ErrEmpty].
	Waits bool
	// Tips, if it is set before the first Next, makes an answer from the tip that brought nothing a
	// page, too.
	Tips bool

	since   mono.Time     // it is doing that
	trying  mono.Time     // see [Status]
	behind  time.Duration // see [Status]
	starved mono.Time     // since when it has waited for the bytes of expects, while its handler has nothing to do
	queue   *part
	fault   *fault             // nil while all has been well
	wake    chan struct{}      // not nil once somebody waits instead of being called
	end     context.CancelFunc // of the read that is under way; nil if there is none
	room    chan struct{}      // not nil while a turn waits for room
}

// Owner is who a Feed reads for.
type Owner interface {
	source.Listener
	// Context ends reading.
	Context() context.Context
	// Calls is what calls are made with. It may end later than Context, which then only ends
	// reading between two of them: a context keeps room for each that was ever made from it, which
	// adds up when every shard has its own.
	Calls() context.Context
	// Wake is called once after Next failed with [source.ErrEmpty], when there is something. It
	// must not block.
	Wake()
}

// fault is what is, or was, wrong with reading.
type fault struct {
	ends      error  // what Next is to fail with; nil if reading goes on
	last      error  // why the last read failed; nil when it did not
	attempt   int32  // reads in a row that have failed
	throttled uint32 // see [Status]
	failed    uint32 // … too
	retried   uint32 // … and this
}

type feedState uint8

const (
	parked    feedState = iota // until Next asks, or there is room
	queued                     // its share waits in line for the memory of a record
	scheduled                  // its turn comes
	turning                    // its turn is
	over                       // the shard has ended
)

// part is a page, or a part of one, on its way to the handler.
type part struct {
	source.Page
	f     *Feed
	next  *part // in the queue
	wire  codec.Page
	bytes int // of memory
}

var partPool = sync.Pool{New: func() any { return new(part) }}

const (
	// window is how much of an answer is read at a time: a shard whose handler is busy has two of
	// them in memory.
	window = 512 << 10
	// ahead is how much of an answer may be in memory before the rest of it waits for the handler.
	ahead = 3 * window
	// patience is how long an answer waits for the handler to take what came before, on its
	// connection; haste is how long it does while other reads wait for their turn.
	patience = time.Second
	haste    = patience / 10
	// shortageWait is how long a read waits for as much memory as before: until then it will
	// probably come from others that are read, after that it is with handlers that hang.
	shortageWait = 10 * time.Second
)

var (
	errAhead = errors.New("more has been read than handled")
	// errSlow is why an answer is given up.
	errSlow = errors.New("the handler does not take what was read")
)

// NewFeed makes a feed that begins to read with the first Next. What poll says holds, but that it
// is the owner who hears of it; memory is taken from a share of the budget of its own.
func NewFeed(owner Owner, poll Poll, sched *Scheduler, budget *memory.Budget) *Feed {
	f := &Feed{sched: sched, poll: poll, limit: firstLimit(poll.readShare(), poll.Limit), since: mono.Now(), behind: -1}
	f.poll.Listener = owner
	budget.Open(&f.share)
	return f
}

func (f *Feed) owner() Owner { return f.poll.Listener.(Owner) }

// Next waits for the next page that has records or ends the shard, or a part of one, and hands it
// over; it counts as delivered then. The errors are ctx's cause, ones that wrap [ErrNoShard] or
// [ErrNoStream], and [source.ErrEmpty].
func (f *Feed) Next(ctx context.Context) (source.Page, error) {
	for {
		if ctx.Err() != nil {
			return source.Page{}, context.Cause(ctx)
		}
		f.mu.Lock()
		if f.queue != nil {
			return f.hand(), nil
		}
		if err := f.ends(); err != nil {
			f.fault.ends = nil
			f.mu.Unlock()
			return source.Page{}, err
		}
		f.hungry, f.asleep = true, true
		f.resume()
		if !f.Waits {
			f.mu.Unlock()
			return source.Page{}, source.ErrEmpty
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

// Last reads once more, if everything that was read is handled and the shard was at its tip,
// without waiting for the idle interval and without trying again: for a reader that is about to
// give the shard away, so that the next one has less to catch up with.
func (f *Feed) Last(ctx context.Context) (source.Page, error) {
	f.mu.Lock()
	if !f.atTip || f.queue != nil || f.gone {
		f.mu.Unlock()
		return source.Page{}, errAhead
	}
	f.held = true
	for f.state == turning {
		wake := f.waits()
		f.mu.Unlock()
		select {
		case <-wake:
		case <-ctx.Done():
			return source.Page{}, context.Cause(ctx)
		}
		f.mu.Lock()
	}
	var err error
	if f.queue == nil {
		f.mu.Unlock()
		if err = retry.Wait(ctx, mono.Until(f.poll.began.Add(f.poll.spacing(0)))); err == nil {
			var l lane
			f.poll.began = mono.Now()
			_, err = f.read(ctx, &l)
			l.close()
		}
		f.mu.Lock()
	}
	if f.queue == nil {
		f.mu.Unlock()
		return source.Page{}, err
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
	for p := queue; p != nil; {
		next := p.next
		p.Return()
		p = next
	}
	f.share.Close()
}

// Stop does nothing: a read that is under way is in nobody's way.
func (f *Feed) Stop() {}

// Status may be called at any time.
func (f *Feed) Status() source.Status {
	f.mu.Lock()
	defer f.mu.Unlock()
	s := source.Status{Doing: f.doing, Since: f.since.Time(), Trying: f.trying.Time(), Behind: f.behind}
	if f.fault != nil {
		s.Attempt, s.Err = int(f.fault.attempt), f.fault.last
		s.Throttled, s.Failed, s.Retried = int(f.fault.throttled), int(f.fault.failed), int(f.fault.retried)
	}
	if s.Doing == source.AwaitingMemory { // it is no stall while the line moves
		if served := f.share.Budget().LastServed(); !s.Trying.IsZero() && served.After(s.Trying) {
			s.Trying = served
		}
		s.Lacks = f.share.Budget().Lack()
	}
	for p := f.queue; p != nil; p = p.next {
		s.Buffer(p.Records)
	}
	return s
}

// hand returns the first part of the queue, and unlocks.
func (f *Feed) hand() source.Page {
	p := f.queue
	f.queue, p.next = p.next, nil
	f.roomier()
	f.mu.Unlock()
	return p.Page
}

// Return lets go of a part, once.
func (p *part) Return() {
	f, bytes := p.f, p.bytes
	if f == nil {
		return
	}
	p.reset()
	partPool.Put(p)
	f.mu.Lock()
	f.parts--
	f.bytes -= int32(bytes)
	f.roomier()
	f.mu.Unlock()
}

// reset makes p as good as new, except that it keeps the slice of its records.
func (p *part) reset() {
	p.wire.Reset()
	*p = part{wire: p.wire}
	p.wire.Memory = nil
}

// What follows is called with the lock held.

// roomy reports whether there is room for another part: nothing waits to be handled, or too little
// to be worth waiting for.
func (f *Feed) roomy() bool {
	if f.short || f.needs > 0 {
		return f.parts == 0
	}
	return f.queue == nil && f.parts <= 1 || f.bytes < window/2 && f.parts < 8
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
	if f.roomy() && f.ends() == nil {
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
		f.owner().Wake()
		return
	}
	select {
	case f.wake <- struct{}{}:
	default:
	}
}

func (f *Feed) now(d source.Doing) { f.from(d, mono.Now()) }

func (f *Feed) from(d source.Doing, now mono.Time) {
	if f.doing != d {
		f.doing, f.since = d, now
	}
}

// ends is what Next is to fail with.
func (f *Feed) ends() error {
	if f.fault == nil {
		return nil
	}
	return f.fault.ends
}

// wrong returns what is wrong, to be changed.
func (f *Feed) wrong() *fault {
	if f.fault == nil {
		f.fault = new(fault)
	}
	return f.fault
}

// fine notes that a read brought something. There is none while Next is to fail.
func (f *Feed) fine() {
	f.poll.failures = 0
	if was := f.fault; was != nil {
		*was = fault{throttled: was.throttled, failed: was.failed, retried: was.retried}
	}
}
