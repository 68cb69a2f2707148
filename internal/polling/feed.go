package polling

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/weir-go/weir/health"
	"github.com/weir-go/weir/internal/lock"
	"github.com/weir-go/weir/internal/memory"
	"github.com/weir-go/weir/internal/mono"
	"github.com/weir-go/weir/internal/retry"
	"github.com/weir-go/weir/internal/source"
	"github.com/weir-go/weir/internal/wire/codec"
)

// Feed reads one shard ahead of the handler. A Scheduler starts the reads, and Next returns their
// pages. While the handler is busy, the feed reads only a limited amount ahead. Without Tips, an
// answer without records wakes no goroutine.
//
// Only one goroutine at a time may use Next, Last and Close.
//
// Thousands of feeds may be idle, so a Feed is small. Fields that only busy feeds need are
// allocated separately, and times and counts use small types.
type Feed struct {
	mu lock.Mutex[lock.Feed] // guards all fields that have no other owner

	sched *Scheduler
	share memory.Share
	after *Feed // the next feed in a list of the scheduler

	// The goroutine that executes the current turn owns these. There is one such goroutine at a
	// time.
	poll  Poll
	limit int32 // records per read; at most poll.Limit

	parts   int32 // parts that are queued or that the handler has not returned
	bytes   int32 // memory of these parts in bytes
	needs   int32 // bytes that the next read needs to return a record; 0 without a shortage
	granted int32 // bytes that are reserved for the next read
	// mean is the average memory of a record in the last answer with records. It is 0 before the
	// first such answer.
	mean int32
	// had is the size of the last reservation in bytes, if that was less than requested. Otherwise
	// it is 0.
	had int32

	state  feedState
	held   bool // the feed gets no more turns
	gone   bool // the feed is closed and drops further pages
	atTip  bool
	hungry bool // Next has found no page since the last read
	asleep bool // the owner must be woken when there is a page
	short  bool // the last read lacked memory: the next read waits until all parts are returned
	small  bool // the next answer will probably be small, because the last one reached the tip
	// light predicts that the next answer will be empty and fast. It must not change while the feed
	// is in a list of the scheduler.
	light bool
	doing health.Reason
	// Waits makes Next wait for a page. Without Waits, Next returns [source.ErrEmpty]. Set it
	// before the first Next.
	Waits bool
	// Tips makes Next return a page also for an empty answer at the tip. Set it before the first
	// Next.
	Tips bool

	since  mono.Time     // start of the present state
	trying mono.Time     // see [Status]
	behind time.Duration // see [Status]
	// starved is when the feed began to wait for the amount of memory that [Feed.expects] returns,
	// while its handler has no pages. It is zero if the feed does not wait for that memory.
	starved mono.Time
	queue   *part
	fault   *fault             // nil until something fails
	wake    chan struct{}      // allocated when a goroutine waits in Next
	end     context.CancelFunc // cancels the present read; nil if there is none
	room    chan struct{}      // not nil while a turn waits for room in the queue
}

// Owner is the consumer for which a Feed reads.
type Owner interface {
	source.Listener
	// Context returns the context whose end stops reading.
	Context() context.Context
	// Calls returns the context for calls to Kinesis. If it ends later than Context, the end of
	// Context stops reading only between two calls. Feeds may share one such context. That saves
	// memory, because reads derive contexts from it, and a context with derived contexts needs
	// additional memory.
	Calls() context.Context
	// Wake is called once after Next returned [source.ErrEmpty], when the owner should call Next
	// again. It must not block.
	Wake()
}

// fault contains the present and past failures of reading.
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
	parked    feedState = iota // until Next is called or there is room in the queue
	queued                     // the share waits in line for the memory of a record
	scheduled                  // the next turn is scheduled
	turning                    // a turn is in progress
	over                       // the shard has ended
)

// part is a page, or a part of a page, for the handler.
type part struct {
	source.Page
	f     *Feed
	next  *part
	wire  codec.Page
	bytes int
}

var partPool = sync.Pool{New: func() any { return new(part) }}

const (
	// window is the amount of an answer that is read at a time.
	window = 512 << 10
	// ahead is the maximum amount of an answer in memory. The rest is read when the handler returns
	// memory.
	ahead = 3 * window
	// patience is how long an answer may occupy its connection while the handler works on earlier
	// records. haste is used in its place while other reads wait for their turn.
	patience = time.Second
	haste    = patience / 10
	// shortageWait is how long a read waits for the amount of memory that it originally requested.
	// Other shards will probably return memory during that time. Memory that is not returned by
	// then is probably held by handlers that hang.
	shortageWait = 10 * time.Second
)

var (
	errAhead = errors.New("the handler has not finished the records that were read")
	// errSlow is the error of an answer that is abandoned because its handler is too slow.
	errSlow = errors.New("the handler is too slow for the answer")
)

// NewFeed returns a feed that begins to read with the first call of Next. poll configures the feed,
// but owner replaces its Listener. The feed has its own share of the memory budget.
func NewFeed(owner Owner, poll Poll, sched *Scheduler, budget *memory.Budget) *Feed {
	f := &Feed{sched: sched, poll: poll, limit: firstLimit(poll.readShare(), poll.Limit), since: mono.Now(), behind: -1, doing: health.NotStarted}
	f.poll.Listener = owner
	budget.Open(&f.share)
	return f
}

func (f *Feed) owner() Owner { return f.poll.Listener.(Owner) }

// Next waits for the next page, or part of a page, that contains records or ends the shard. The
// returned page counts as delivered. Next returns the cause of ctx, errors that wrap
// [streams.ErrNoShard] or [streams.ErrNoStream], or [source.ErrEmpty].
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

// Last reads once more if all records were handled and the shard was at its tip. It does not wait
// for the idle interval and does not retry. A reader calls Last before it hands the shard off, so
// that the next reader has to catch up with fewer records.
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
			var l conn
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

// Close stops reading, waits for the present read, and releases the pages that were not delivered.
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

// Stop does nothing, because a read in progress does no harm.
func (f *Feed) Stop() {}

// Status returns the state of the feed. It may be called at any time.
func (f *Feed) Status() source.Status {
	f.mu.Lock()
	defer f.mu.Unlock()
	s := source.Status{Doing: f.doing, Since: f.since.Time(), Trying: f.trying.Time(), Behind: f.behind}
	if f.fault != nil {
		s.Attempt, s.Err = int(f.fault.attempt), f.fault.last
		s.Throttled, s.Failed, s.Retried = int(f.fault.throttled), int(f.fault.failed), int(f.fault.retried)
	}
	if s.Doing == health.AwaitingMemory { // not a stall while other shares in the line are served
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

// hand removes the first part from the queue, unlocks mu and returns the part.
func (f *Feed) hand() source.Page {
	p := f.queue
	f.queue, p.next = p.next, nil
	f.roomier()
	f.mu.Unlock()
	return p.Page
}

// Return releases the part's memory. Further calls do nothing.
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

// reset clears p, but keeps the slice for its records.
func (p *part) reset() {
	p.wire.Reset()
	*p = part{wire: p.wire}
	p.wire.Memory = nil
}

// The caller of the following methods holds the lock.

// roomy reports whether the queue has room for another part. It has room if it is empty or contains
// very little.
func (f *Feed) roomy() bool {
	if f.short || f.needs > 0 {
		return f.parts == 0
	}
	return f.queue == nil && f.parts <= 1 || f.bytes < window/2 && f.parts < 8
}

// fits reports whether there is room for another part of an answer that is being read.
func (f *Feed) fits() bool { return f.bytes+window <= ahead || f.roomy() }

// roomier continues reading after a part has left the queue.
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

// resume schedules the next turn if the feed is parked and has room.
func (f *Feed) resume() {
	if f.state == parked && !f.held && f.roomy() {
		f.state = scheduled
		f.sched.at(f, f.poll.due)
	}
}

// waits returns the channel to which the next rouse sends.
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

func (f *Feed) now(d health.Reason) { f.from(d, mono.Now()) }

func (f *Feed) from(d health.Reason, now mono.Time) {
	if f.doing != d {
		f.doing, f.since = d, now
	}
}

// ends returns the error that Next must return.
func (f *Feed) ends() error {
	if f.fault == nil {
		return nil
	}
	return f.fault.ends
}

// wrong returns the fault, and allocates it if necessary.
func (f *Feed) wrong() *fault {
	if f.fault == nil {
		f.fault = new(fault)
	}
	return f.fault
}

// fine records a successful read. It keeps the counters of earlier failures.
func (f *Feed) fine() {
	f.poll.failures = 0
	if was := f.fault; was != nil {
		*was = fault{throttled: was.throttled, failed: was.failed, retried: was.retried}
	}
}
