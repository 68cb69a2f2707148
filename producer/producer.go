package producer

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/kinesis"

	"github.com/weir-go/weir/internal/notify"
	"github.com/weir-go/weir/internal/streams"
	"github.com/weir-go/weir/internal/wire"
)

// Client has the service calls of a producer. A *kinesis.Client implements it. The producer
// disables the client's retries for its calls, because it retries itself.
//
// The producer makes the PutRecords calls of a *kinesis.Client itself, in CBOR, unless the client
// has options that need the SDK's middleware. This takes a fraction of the SDK's CPU time. The
// producer uses the client's region, endpoint, credentials and HTTP transport. The methods of any
// other Client are called as they are.
type Client interface {
	PutRecords(context.Context, *kinesis.PutRecordsInput, ...func(*kinesis.Options)) (*kinesis.PutRecordsOutput, error)
	ListShards(context.Context, *kinesis.ListShardsInput, ...func(*kinesis.Options)) (*kinesis.ListShardsOutput, error)
	DescribeStreamSummary(context.Context, *kinesis.DescribeStreamSummaryInput, ...func(*kinesis.Options)) (*kinesis.DescribeStreamSummaryOutput, error)
}

// Producer writes records to a stream. Its methods may be called concurrently.
type Producer struct {
	client    Client
	options   Options
	stream    streams.Stream
	name, arn *string      // of the stream, for calls
	wire      *wire.Caller // makes the calls of PutRecords; nil if the client does

	ctx      context.Context // of calls; ends when the producer does
	cancel   context.CancelCauseFunc
	wake     chan struct{} // has one element when there is something to dispatch
	calls    sync.WaitGroup
	over     chan struct{} // closed when the dispatcher has ended
	queue    *notify.Queue // of log lines and events
	log      *slog.Logger
	repeated *slog.Logger // limits lines that repeat

	mu        sync.Mutex // guards the fields below, and the fields of each Pending
	core      *core
	buffer    buffer
	begun     bool // the goroutines run
	closing   bool
	aborted   bool
	requests  int // in flight
	looking   bool
	lookAgain time.Time
	lookFails int
	slab      []Pending // the next Pending are taken from it
	held      int       // records that were accepted and not released
	flushes   []*flush
	callbacks callbacks
	remaining RemainingError // counts the records that Close abandoned
}

// New makes a producer. It makes no call and starts no goroutine; the first Put does. The error
// lists all problems by field name.
func New(client Client, o Options) (*Producer, error) {
	o, stream, err := o.parse(client)
	if err != nil {
		return nil, err
	}
	p := &Producer{
		client: client, options: o, stream: stream, wake: make(chan struct{}, 1), over: make(chan struct{}),
		buffer: buffer{mostRecords: o.MaxRecords, mostBytes: o.MaxBytes},
	}
	if real, ok := client.(*kinesis.Client); ok {
		if p.wire, err = ownCalls(real, o); err != nil {
			return nil, err
		}
	}
	p.ctx, p.cancel = context.WithCancelCause(context.Background())
	p.name, p.arn = stream.NameAndARN()
	p.callbacks = callbacks{wake: make(chan struct{}, 1), over: make(chan struct{})}
	return p, nil
}

// Stream returns the name of the stream.
func (p *Producer) Stream() string { return p.stream.Name }

// Put accepts a record for the stream and returns immediately if there is room for the record.
// Otherwise it waits for room. If ctx ends first, Put returns the cause. After Put has accepted the
// record, ctx no longer affects it.
//
// If Put returns an error, the record was not accepted, and its callback is not called. The error
// is or wraps [ErrInvalid], [ErrTooLarge], [ErrClosed], [ErrStopped], an error of [Options].Encode
// or the cause of ctx's end.
func (p *Producer) Put(ctx context.Context, r Record) (*Pending, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	var given Pending
	if err := p.prepare(ctx, &given, r); err != nil {
		return nil, err
	}
	p.mu.Lock()
	if err := p.acceptable(&given); err != nil {
		p.mu.Unlock()
		return nil, err
	}
	if p.buffer.take(given.size()) {
		defer p.mu.Unlock()
		return p.accept(&given), nil
	}
	waits := given // so that given stays on the stack
	at := p.buffer.wait(&waits)
	p.mu.Unlock()
	return p.await(ctx, at)
}

// TryPut is like Put, but returns [ErrFull] instead of waiting.
func (p *Producer) TryPut(r Record) (*Pending, error) {
	var given Pending
	if err := p.prepare(context.Background(), &given, r); err != nil {
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.acceptable(&given); err != nil {
		return nil, err
	}
	if !p.buffer.take(given.size()) {
		return nil, ErrFull
	}
	return p.accept(&given), nil
}

// prepare encodes the data of a record and sets the fields of given.
func (p *Producer) prepare(ctx context.Context, given *Pending, r Record) error {
	if p.options.Encode != nil {
		encoded, err := p.options.Encode(ctx, r.Data)
		if err != nil {
			return fmt.Errorf("producer: Options.Encode: %w", err)
		}
		r.Data = encoded
	}
	return given.prepare(r)
}

// acceptable returns why a record cannot be accepted now. The caller holds the mutex.
func (p *Producer) acceptable(given *Pending) error {
	switch {
	case p.closing:
		return ErrClosed
	case p.core != nil && p.core.stopped:
		return ErrStopped
	case p.core == nil || !p.core.facts.known:
		return nil
	case given.key == "" && !p.core.facts.auto:
		return errNoKey
	case given.size() > p.core.facts.maxRecord:
		p.core.lookUp.facts = true // the limit may have been raised
		p.signal()
		return fmt.Errorf("%w: it has %d bytes with its key, stream %s allows %d", ErrTooLarge, given.size(), p.stream.Name, p.core.facts.maxRecord)
	}
	return nil
}

// accept adds a record that has room. The caller holds the mutex.
func (p *Producer) accept(given *Pending) *Pending {
	p.begin()
	if len(p.slab) == 0 {
		p.slab = make([]Pending, 85) // 16 KiB
	}
	pending := &p.slab[0]
	p.slab = p.slab[1:]
	*pending = *given
	pending.producer = p
	p.held++
	q := p.core.queueOf(pending)
	before := q.bytes
	p.core.put(pending, time.Since(p.core.began))
	// The dispatcher is woken for the first record, and when there are enough for a container.
	if q.n == 1 || q.n%50 == 0 || before/unit != q.bytes/unit {
		p.signal()
	}
	return pending
}

// signal wakes the dispatcher.
func (p *Producer) signal() {
	select {
	case p.wake <- struct{}{}:
	default:
	}
}

// begin starts the goroutines. The caller holds the mutex.
func (p *Producer) begin() {
	if p.begun {
		return
	}
	p.begun = true
	p.core = newCore(options{
		unordered: p.options.Unordered, plain: p.options.NoAggregation, linger: p.options.Linger, maxAge: p.options.MaxAge,
		numbered: p.options.Numbered, stopOnFailure: p.options.StopOnFailure, firstShare: p.options.FirstShare,
	}, time.Now())
	p.queue = notify.New(1000)
	p.log = p.queue.Logger(context.Background(), p.options.Logger.Handler()).With("stream", p.stream.Name)
	p.repeated = p.queue.Repeats(p.log)
	go p.queue.Run(p.logPanic) // ends with Close
	go p.callBack()            // ends after the dispatcher
	go p.dispatch()            // ends when the producer is closed
}

// flush is a call of Flush that waits for records.
type flush struct {
	upTo  uint64 // the number of the last record
	left  int
	ended chan struct{}
}

// Flush sends the waiting records without lingering. It returns nil when each record that was put
// before the call has its outcome and its callback has returned. If ctx ends first, Flush returns
// the cause. The outcome of a record is in its Pending and its callback.
func (p *Producer) Flush(ctx context.Context) error {
	p.mu.Lock()
	if p.held == 0 {
		p.mu.Unlock()
		return nil
	}
	f := &flush{upTo: p.core.number, left: p.held, ended: make(chan struct{})}
	p.flushes = append(p.flushes, f)
	p.core.hurry = f.upTo
	p.mu.Unlock()
	p.signal()
	select {
	case <-f.ended:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Counts returns the producer's counters and its current contents.
func (p *Producer) Counts() Counts {
	p.mu.Lock()
	defer p.mu.Unlock()
	var c Counts
	if p.core != nil {
		c = p.core.counts
		c.Codes = maps.Clone(c.Codes)
		c.InFlight = p.core.inFlight
		if p.core.shards.known() {
			c.Shards = len(p.core.queues)
		}
	}
	c.BufferedRecords, c.BufferedBytes, c.Blocked = p.buffer.records, p.buffer.bytes, len(p.buffer.line)
	c.CallbacksWaiting = len(p.callbacks.waiting)
	return c
}
