package weir

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/kinesis"

	"github.com/weir-go/weir/internal/group"
	"github.com/weir-go/weir/internal/source"
	"github.com/weir-go/weir/internal/wire"
	"github.com/weir-go/weir/shard"
)

// ReaderOptions say what a [Reader] reads. Stream is required; every other field's zero value is its default.
type ReaderOptions struct {
	// Stream is the stream to read, by name or ARN.
	Stream string
	// Start is where to begin: [Oldest] (the default), [Latest] or [At]. Children of splits and merges are read from their beginning.
	Start Position
	// Shards, if any, are the only ones to read, with their descendants.
	Shards []string
	// Aggregates is as in [Options].
	Aggregates Aggregates
	// UntilTip ends reading when every shard has been read to its tip, instead of following the stream for ever.
	UntilTip bool
	// IdleInterval is as in [Options].
	IdleInterval time.Duration
	// Reading chooses [Polling] (the default), which takes from the throughput that all readers of the stream share, or [FanOut], by the
	// registered consumer FanOutName. While that is not to be had, shards are polled.
	Reading Reading
	// FanOutName is the name of that consumer, required with FanOut: 1 to 128 of a-z, A-Z, 0-9, _ . -. One that an application or another
	// Reader reads by would have its subscriptions taken over.
	FanOutName string
	// FanOutConsumer says whether that consumer is to be registered, and left so. Defaults to [ExistingConsumer]: neither.
	FanOutConsumer Registration
	// Logger gets what a person should know about fan-out. Defaults to slog.Default().
	Logger *slog.Logger
}

// Reader reads a stream without an application: no store, no checkpoint, nothing shared with others. Its methods may be
// called concurrently; each call reads anew.
//
// By polling it may have up to two answers of each shard in memory, of 10 MiB each if the shard is that far behind: there is no bound for all shards
// together, as a [Consumer] has. By fan-out there is one, of 128 MiB.
type Reader struct {
	client *kinesis.Client
	opts   ReaderOptions
	source source.Stream
}

// NewReader checks the options. It does no I/O.
func NewReader(client *kinesis.Client, opts ReaderOptions) (*Reader, error) {
	var problems []error
	if client == nil {
		problems = append(problems, errors.New("weir: the Kinesis client is nil; make one with kinesis.NewFromConfig"))
	}
	s, err := parseStream(client, opts.Stream)
	if err != nil {
		problems = append(problems, err)
	}
	switch opts.Start.Kind() {
	case shard.None:
		opts.Start = Oldest
	case shard.First, shard.Tip, shard.Time:
	default:
		problems = append(problems, fmt.Errorf("weir: ReaderOptions.Start %q must be Oldest, Latest or At(a time)", opts.Start))
	}
	if err := opts.checkFanOut(); err != nil {
		problems = append(problems, err)
	}
	if opts.Logger == nil {
		opts.Logger = slog.Default()
	}
	if opts.IdleInterval == 0 {
		opts.IdleInterval = time.Second
	}
	if opts.IdleInterval < 200*time.Millisecond || opts.IdleInterval > time.Minute {
		problems = append(problems, fmt.Errorf("weir: ReaderOptions.IdleInterval %v must be between 200ms and 1m", opts.IdleInterval))
	}
	if err := errors.Join(problems...); err != nil {
		return nil, err
	}
	return &Reader{client: client, opts: opts, source: source.Stream{Name: s.name, ARN: s.arn}}, nil
}

// Records yields the records of all shards: in order inside a shard, parents before children, shards side by side as they
// come. A failure that lasts is yielded as an error; a caller that goes on all the same lets reading be tried again.
// The last thing yielded is ctx's cause when ctx ends, or an error that wraps [ErrStreamNotFound].
func (r *Reader) Records(ctx context.Context) iter.Seq2[Record, error] {
	return func(yield func(Record, error) bool) {
		for b, err := range r.Batches(ctx) {
			if err != nil {
				if !yield(Record{}, err) {
					return
				}
				continue
			}
			for _, rec := range b.Records {
				if !yield(rec, nil) {
					return
				}
			}
		}
	}
}

// Batches yields what Records yields, page by page, with the names of the shards. Batches are never empty but for those
// that mark the end of a shard. They have no checkpoint.
func (r *Reader) Batches(ctx context.Context) iter.Seq2[*Batch, error] {
	return func(yield func(*Batch, error) bool) {
		caller, err := wire.NewCaller(r.client, wire.Options{})
		if err != nil {
			yield(nil, fmt.Errorf("weir: %w", err))
			return
		}
		defer caller.Close()
		run := &reading{Reader: r, caller: caller, pages: make(chan read), known: map[string]*readShard{}}
		if r.opts.Reading == FanOut {
			leave, err := run.fanOut(ctx)
			defer leave()
			if err != nil {
				yield(nil, notFound(err))
				return
			}
		}
		ctx, cancel := context.WithCancelCause(ctx)
		defer run.running.Wait()
		defer cancel(errReaderLeft)

		listing, _, err := list(ctx, r.client, r.source, r.opts.Start)
		if err == nil {
			err = run.begin(listing)
		}
		if err != nil {
			yield(nil, notFound(err))
			return
		}
		run.loop(ctx, yield)
	}
}

// notFound is err as the callers of a Reader know it.
func notFound(err error) error {
	if errors.Is(err, source.ErrNoStream) {
		return fmt.Errorf("%w: %w", ErrStreamNotFound, err)
	}
	return err
}

var errReaderLeft = errors.New("weir: the reader was left")

// reading is one run of a Reader. The goroutine that iterates owns it; each shard being read has a goroutine of its own
// that hands over page by page.
type reading struct {
	*Reader
	caller    *wire.Caller
	consumers *source.Consumers // nil when it polls
	budget    *source.Budget    // … too
	pages     chan read
	known     map[string]*readShard
	active    int
	running   sync.WaitGroup
}

type readShard struct {
	shard.Shard
	at            shard.Position
	unpack        unpacker
	started, done bool
}

type read struct {
	shard string
	page  source.Page
	err   error
	last  bool
	over  chan struct{} // not nil if the page goes back then, which is closed when the caller is done with it
}

// begin decides which shards are read, and from where.
func (r *reading) begin(listing group.Listing) error {
	graph := shard.NewGraph(listing.Shards)
	for _, id := range r.opts.Shards {
		if _, ok := graph.Shard(id); !ok {
			return fmt.Errorf("weir: stream %s has no shard %q", r.source.Name, id)
		}
	}
	wanted := map[string]bool{}
	for _, l := range group.NewLeases(r.source.Name, listing, nil, true) {
		id := l.Shard
		wanted[id] = len(r.opts.Shards) == 0 || slices.Contains(r.opts.Shards, id) ||
			slices.ContainsFunc(graph.Parents(id), func(p string) bool { return wanted[p] })
		sh, _ := graph.Shard(id)
		r.known[id] = &readShard{Shard: sh, at: l.Position, done: !wanted[id] || l.Finished()}
	}
	return nil
}

func (r *reading) loop(ctx context.Context, yield func(*Batch, error) bool) {
	for {
		r.start(ctx)
		if r.active == 0 {
			return
		}
		var got read
		select {
		case got = <-r.pages:
		case <-ctx.Done():
			yield(nil, context.Cause(ctx))
			return
		}
		if got.last {
			r.active--
		}
		if got.err != nil {
			if errors.Is(got.err, source.ErrNoShard) {
				r.end(got.shard, got.page.Children) // which do not wait for what has expired
			}
			if !yield(nil, got.err) {
				return
			}
			continue
		}
		more := r.yield(got, yield)
		if got.over != nil {
			close(got.over)
		}
		if !more {
			return
		}
		if got.page.End {
			r.end(got.shard, got.page.Children)
		}
	}
}

var errLeft = errors.New("the caller has left the iteration")

// yield hands a page over, in batches. It reports whether the caller wants more.
func (r *reading) yield(got read, yield func(*Batch, error) bool) bool {
	s := r.known[got.shard]
	batch := func(records []Record, end bool) *Batch {
		return &Batch{Stream: r.source.Name, Shard: got.shard, Records: records, Behind: got.page.Behind, End: end}
	}
	err := s.unpack.each(got.page, 10000, func(run []Record) error {
		if !yield(batch(run, false), nil) {
			return errLeft
		}
		return nil
	})
	return err == nil && (!got.page.End || yield(batch(nil, true), nil))
}

// end notes that a shard was read to its end, and learns of its children.
func (r *reading) end(id string, children []shard.Shard) {
	r.known[id].done = true
	for _, c := range children {
		if r.known[c.ID] == nil {
			r.known[c.ID] = &readShard{Shard: c, at: shard.Oldest}
		}
	}
}

// start begins to read every shard whose parents are done.
func (r *reading) start(ctx context.Context) {
	for id, s := range r.known {
		waits := slices.ContainsFunc(s.Parents, func(p string) bool { return r.known[p] != nil && !r.known[p].done })
		if s.started || s.done || waits {
			continue
		}
		s.started = true
		s.unpack = newUnpacker(r.opts.Aggregates, s.Range, s.at)
		r.active++
		at, keys := s.at, s.Range
		r.running.Go(func() { r.follow(ctx, id, at, keys) })
	}
}

// heirs are the shards that have, or had, keys of one that has left the stream without having said which its children are. Those that are not known yet
// descend from it, because what had its keys before is.
func (r *reading) heirs(ctx context.Context, keys shard.HashRange, failed func(error)) (heirs []shard.Shard) {
	for failures := 0; ; {
		listing, _, err := list(ctx, r.client, r.source, shard.Oldest)
		switch {
		case err == nil:
			return slices.DeleteFunc(listing.Shards, func(s shard.Shard) bool {
				return s.Range.End.Compare(keys.Start) < 0 || keys.End.Compare(s.Range.Start) < 0
			})
		case errors.Is(err, source.ErrNoStream):
			failed(notFound(err))
			return nil
		}
		if failures++; failures%lasting == 0 {
			failed(err)
		}
		if wait(ctx, r.opts.IdleInterval) != nil {
			return nil
		}
	}
}

// lasting is how many failures in a row are worth telling the caller.
const lasting = 5

// follow reads one shard and hands its pages over, until the shard ends or ctx does.
func (r *reading) follow(ctx context.Context, id string, at shard.Position, keys shard.HashRange) {
	hand := func(got read) bool {
		got.shard = id
		select {
		case r.pages <- got:
			return true
		case <-ctx.Done():
			return false
		}
	}
	failures := 0
	poll := source.Poll{
		Setup: &source.Setup{Client: r.client, Caller: r.caller, Stream: r.source, Idle: r.opts.IdleInterval},
		Shard: id, From: at, Limit: 10000,
	}
	poll.Hears = &source.Hearing{OnFailed: func(err error, _ bool, _ time.Duration) {
		if failures++; failures%lasting == 0 || errors.Is(err, source.ErrNoPosition) {
			hand(read{err: fmt.Errorf("weir: reading shard %s of stream %s: %w", id, r.source.Name, err)})
		}
	}}
	from := r.from(poll)
	defer from.Close()
	for {
		page, err := from.Next(ctx)
		if err != nil {
			got := read{err: notFound(err), last: true}
			if errors.Is(err, source.ErrNoShard) {
				got.page.Children = r.heirs(ctx, keys, func(err error) { hand(read{err: err}) })
			}
			if ctx.Err() == nil {
				hand(got)
			}
			return
		}
		failures = 0
		got := read{page: page}
		// Only an empty page is the tip: a closed shard may say that it ends on the page after its last records.
		got.last = page.End || (r.opts.UntilTip && page.Behind <= 0 && len(page.Records) == 0)
		if r.consumers != nil {
			got.over = make(chan struct{}) // what comes next is read meanwhile by the subscription
		} else {
			page.Keep() // the next page is read while the caller still has this one
		}
		if !hand(got) {
			return
		}
		if got.over != nil {
			select {
			case <-got.over:
				page.Release()
			case <-ctx.Done():
				return
			}
		}
		if got.last {
			return
		}
	}
}
