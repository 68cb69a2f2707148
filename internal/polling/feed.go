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

// Feed reads one shard ahead of the handler. A Scheduler makes the reads, and Next returns their
// pages. While the handler is busy, at most one more part waits for it. An answer without records
// wakes nothing.
//
// Next, Last and Close are for one goroutine at a time.
//
// Thousands of feeds are idle. Fields that only a busy feed needs are kept elsewhere, and times and
// counts are small.
type Feed struct {
	mu lock.Mutex[lock.Feed] // guards the fields without another owner

	sched *Scheduler
	share memory.Share
	after *Feed // in a list of the scheduler

	// Owned by the goroutine that has the turn, one at a time.
	poll  Poll
	limit int32 // records per read; at most poll.Limit

	parts   int32 // queued, or handed over and not returned
	bytes   int32 // memory of these parts
	needs   int32 // bytes that the next read needs to bring a record; 0 if it lacks none
	granted int32 // bytes that the next read may take
	// average memory of a record in the last answer with records; 0 before the first
	mean int32
	// bytes of the last reservation, if that was less than requested; otherwise 0
	had int32

	state  feedState
	held   bool // it gets no more turns
	gone   bool // the feed is closed and drops further pages
	atTip  bool
	hungry bool // Next has found nothing since the last read
	asleep bool // the owner wants to be woken when there is a page
	short  bool // the last read lacked memory: the next one waits until everything is handled
	small  bool // the next answer will probably be small, because the last one reached the tip
	// the next one will probably be empty and fast; not changed while the feed is in a list of the
	// scheduler
	light bool
	doing source.Doing
	// Waits makes Next wait instead of returning [source.ErrEmpty]. Set it before the first Next.
	Waits bool
	// Tips makes an empty answer at the tip a page too. Set it before the first Next.
	Tips bool

	since  mono.Time     // the start of the present state
	trying mono.Time     // see [Status]
	behind time.Duration // see [Status]
	// since when it has waited for the bytes of expects while its handler is idle
	starved mono.Time
	queue   *part
	fault   *fault             // nil until something fails
	wake    chan struct{}      // made when a goroutine waits instead of being called
	end     context.CancelFunc // of the present read; nil if there is none
	room    chan struct{}      // not nil while a turn waits for room
}

// Owner is the consumer that a Feed reads for.
type Owner interface {
	source.Listener
	// Context ends reading.
	Context() context.Context
	// Calls is the context for calls. It may end later than Context, which then ends reading only
	// between two calls. A context keeps memory for each context that was derived from it, which
	// adds up if every shard has its own.
	Calls() context.Context
	// Wake is called once after Next returned [source.ErrEmpty], when there is a page. It must not
	// block.
	Wake()
}

// fault describes present and past failures of reading.
type fault struct {
	ends      error  // the error for Next; nil while reading continues
	last      error  // the error of the last read; nil if it succeeded
	attempt   int32  // consecutive failed reads
	throttled uint32 // see [Status]
	failed    uint32 // see [Status]
	retried   uint32 // see [Status]
}

type feedState uint8

const (
	parked    feedState = iota // until Next is called or there is room
	queued                     // its share waits in line for the memory of a record
	scheduled                  // its turn will come
	turning                    // its turn is under way
	over                       // the shard has ended
)

// part is a page, or a part of one, on its way to the handler.
type part struct {
	source.Page
	f     *Feed
	next  *part
	wire  codec.Page
	bytes int
}

var partPool = sync.Pool{New: func() any { return new(part) }}

const (
	// window is how much of an answer is read at a time. A shard whose handler is busy has two
	// windows in memory.
	window = 512 << 10
	// ahead is how much of an answer may be in memory before the rest waits for the handler.
	ahead = 3 * window
	// patience is how long an answer may hold its connection while the handler works on earlier
	// records. haste is the same while other reads wait for their turn.
	patience = time.Second
	haste    = patience / 10
	// shortageWait is how long a read waits for as much memory as before. Until then other shards
	// will probably give memory back. After that it is held by handlers that hang.
	shortageWait = 10 * time.Second
)

var (
	errAhead = errors.New("more has been read than handled")
	// errSlow is the reason why an answer is abandoned.
	errSlow = errors.New("the handler does not take what was read")
)

// NewFeed makes a feed that begins to read with the first Next. poll configures it, but its
// Listener is replaced by the owner. The feed takes memory from its own share of the budget.
func NewFeed(owner Owner, poll Poll, sched *Scheduler, budget *memory.Budget) *Feed {
	f := &Feed{sched: sched, poll: poll, limit: firstLimit(poll.readShare(), poll.Limit), since: mono.Now(), behind: -1}
	f.poll.Listener = owner
	budget.Open(&f.share)
	return f
}

func (f *Feed) owner() Owner { return f.poll.Listener.(Owner) }

// Next waits for the next page, or part of a page, that has records or ends the shard, and returns
// it. The page then counts as delivered. The errors are ctx's cause, errors that wrap [ErrNoShard]
// or [ErrNoStream], and [source.ErrEmpty].
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

// Last reads once more if everything that was read is handled and the shard was at its tip. It does
// not wait for the idle interval and does not retry. A reader calls it before it hands the shard
// on, so that the next reader has less to catch up with.
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

// Close ends reading, waits for the present read, and releases the pages that were not taken.
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

// Stop does nothing: a read under way does not disturb anything.
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
	if s.Doing == source.AwaitingMemory { // not a stall while the line moves
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

// Return releases a part. Further calls do nothing.
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

// reset clears p, except for the slice of its records.
func (p *part) reset() {
	p.wire.Reset()
	*p = part{wire: p.wire}
	p.wire.Memory = nil
}

// The following methods are called with the lock held.

// roomy reports whether there is room for another part: nothing waits to be handled, or only very
// little.
func (f *Feed) roomy() bool {
	if f.short || f.needs > 0 {
		return f.parts == 0
	}
	return f.queue == nil && f.parts <= 1 || f.bytes < window/2 && f.parts < 8
}

// fits reports whether there is room for another part of an answer that has begun.
func (f *Feed) fits() bool { return f.bytes+window <= ahead || f.roomy() }

// roomier continues after a part has left the queue.
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

// waits returns the channel that the next rouse sends to.
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

// ends returns the error for Next.
func (f *Feed) ends() error {
	if f.fault == nil {
		return nil
	}
	return f.fault.ends
}

// wrong returns the fault for writing.
func (f *Feed) wrong() *fault {
	if f.fault == nil {
		f.fault = new(fault)
	}
	return f.fault
}

// fine records a successful read. It clears nothing while Next must fail.
func (f *Feed) fine() {
	f.poll.failures = 0
	if was := f.fault; was != nil {
		*was = fault{throttled: was.throttled, failed: was.failed, retried: was.retried}
	}
}
