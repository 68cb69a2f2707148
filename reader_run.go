package weir

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/weir-go/weir/internal/fanout"
	"github.com/weir-go/weir/internal/group"
	"github.com/weir-go/weir/internal/memory"
	"github.com/weir-go/weir/internal/polling"
	"github.com/weir-go/weir/internal/retry"
	"github.com/weir-go/weir/internal/source"
	"github.com/weir-go/weir/internal/streams"
	"github.com/weir-go/weir/internal/wire"
	"github.com/weir-go/weir/shard"
)

// reading is one run of a Reader. The goroutine that iterates owns it: it takes from the shards
// that have something, in turn. Shards that are polled have no goroutine, those that are read by
// fan-out have one each.
type reading struct {
	*Reader
	ctx       context.Context // ends with the iteration
	setup     *source.Setup
	budget    *memory.Budget
	scheduler polling.Scheduler
	consumers *fanout.Consumers // nil when it polls
	known     map[string]*readShard
	active    int
	ready     readyShards
	running   sync.WaitGroup
	lost      waitQueue // shards that have left the stream, whose children are not known yet
	crowded   waitQueue // shards whose next record needs more memory than there was
}

func (r *Reader) reading() *reading {
	return &reading{
		Reader: r, budget: memory.New(r.opts.MaxMemory), known: map[string]*readShard{},
		ready: readyShards{poke: make(chan struct{}, 1)},
	}
}

var errReaderLeft = errors.New("weir: the reader was left")

// run yields what the stream has until ctx ends, the caller wants no more or there is nothing more
// to read.
func (r *reading) run(ctx context.Context, yield func(*Batch, error) bool) {
	caller, err := wire.NewCaller(r.client, r.opts.Wire.options(r.opts.Logger))
	if err != nil {
		yield(nil, fmt.Errorf("weir: %w", err))
		return
	}
	defer caller.Close()
	r.setup = &source.Setup{Client: r.client, Caller: caller, Stream: r.source, Idle: r.opts.IdleInterval, ReadShare: r.opts.ReadShare}
	if r.opts.Reading == FanOut {
		leave, err := r.fanOut(ctx)
		defer leave()
		if err != nil {
			yield(nil, notFound(err))
			return
		}
	}
	ctx, cancel := context.WithCancelCause(ctx)
	r.ctx = ctx
	defer r.close()
	defer cancel(errReaderLeft)

	listing, err := streams.ListFrom(ctx, r.client, r.source, r.opts.Start)
	if err == nil {
		err = r.begin(listing)
	}
	if err != nil {
		yield(nil, notFound(err))
		return
	}
	r.loop(yield)
}

// close returns when every goroutine has ended. ctx is over.
func (r *reading) close() {
	r.running.Wait()
	for _, s := range r.known {
		s.stop()
	}
	r.scheduler.Close()
}

// read is what there is of a shard: a page or an error.
type read struct {
	*readShard
	page source.Page
	err  error
	last bool
	// if not nil, it is closed when the caller is done with the page, which goes back then
	over chan struct{}
}

// done says that nothing of it is needed any more.
func (got *read) done() {
	if got.over != nil {
		close(got.over)
	} else {
		got.page.Release()
	}
}

// begin decides which shards are read, and from where.
func (r *reading) begin(listing streams.Listing) error {
	// every stream has some; nothing to read would pass for all being read
	if len(listing.Shards) == 0 {
		return errors.New("weir: the service lists no shards of the stream: is it Kinesis, and is that the right endpoint?")
	}
	graph := shard.NewGraph(listing.Shards)
	for _, id := range r.opts.Shards {
		if _, ok := graph.Shard(id); !ok {
			return fmt.Errorf("weir: the stream has no shard %s: it has %s", id, streams.ShardNames(listing.Shards))
		}
	}
	wanted := map[string]bool{}
	for _, l := range group.NewLeases(r.source.Name, group.Listing(listing), nil, true) {
		id := l.Shard
		wanted[id] = len(r.opts.Shards) == 0 || slices.Contains(r.opts.Shards, id) ||
			slices.ContainsFunc(graph.Parents(id), func(p string) bool { return wanted[p] })
		sh, _ := graph.Shard(id)
		at := l.Position
		if r.opts.Start.Kind() == shard.Sequence && slices.Contains(r.opts.Shards, id) {
			at = r.opts.Start
		}
		r.known[id] = &readShard{Shard: sh, in: r, at: at, done: !wanted[id] || l.Finished()}
	}
	r.start()
	return nil
}

// start begins to read every shard whose parents are done.
func (r *reading) start() {
	for _, s := range r.known {
		waits := slices.ContainsFunc(s.Parents, func(p string) bool { return r.known[p] != nil && !r.known[p].done })
		if s.started || s.done || waits {
			continue
		}
		s.started = true
		r.active++
		poll := polling.Poll{Setup: r.setup, Shard: s.ID, From: s.at, Limit: 10000}
		if r.consumers != nil {
			r.running.Go(func() { r.follow(s, poll) })
			continue
		}
		s.feed = polling.NewFeed(s, poll, &r.scheduler, r.budget)
		s.feed.Tips = r.opts.UntilTip
		r.ready.push(s)
	}
}

func (r *reading) loop(yield func(*Batch, error) bool) {
	for r.active > 0 {
		got, err := r.next()
		if err != nil {
			yield(nil, err)
			return
		}
		more := r.hand(&got, yield)
		got.done()
		if !more {
			return
		}
		if got.last {
			r.active--
			got.stop()
		} else {
			r.ready.push(got.readShard)
		}
	}
}

// hand hands over what there is of a shard. It reports whether the caller wants more.
func (r *reading) hand(got *read, yield func(*Batch, error) bool) bool {
	if got.err != nil {
		if errors.Is(got.err, streams.ErrNoShard) {
			r.end(got) // children do not wait for what has expired
		}
		return yield(nil, got.err)
	}
	if !r.batches(got, yield) {
		return false
	}
	if got.page.End {
		r.end(got)
	}
	return true
}

// batches yields a page. It reports whether the caller wants more.
func (r *reading) batches(got *read, yield func(*Batch, error) bool) bool {
	page, from := got.page, &origin{Stream: r.source.Name, Shard: got.ID}
	batch := func(records []Record, end bool) *Batch {
		return &Batch{Stream: from.Stream, Shard: from.Shard, Records: records, Behind: page.Behind, End: end}
	}
	unpack := newUnpacker(r.opts.Aggregates, got.Range, got.at)
	defer unpack.release()
	own := unpack.unpacks(&page)
	page.Keep() // the records are the caller's for good
	for run := range unpack.runs(&page, 10000) {
		if len(run) == 0 { // the end has a batch of its own
			continue
		}
		if own {
			run = slices.Clone(run)
		}
		mark(run, from)
		if !yield(batch(whole(run), false), nil) {
			return false
		}
	}
	return !page.End || yield(batch(nil, true), nil)
}

// end notes that a shard was read to its end, or is gone, and learns of its children, which are
// read from now on if they wait for no other.
func (r *reading) end(got *read) {
	got.readShard.done = true
	for _, c := range got.page.Children {
		if r.known[c.ID] == nil {
			r.known[c.ID] = &readShard{Shard: c, in: r, at: shard.Oldest}
		}
	}
	r.start()
}

// heirs finds the shards that have, or had, keys of those that have left the stream without having
// said which their children are. Those that are not known yet descend from them, because what had
// their keys before is.
func (r *reading) heirs(lost []*readShard) {
	for failures := 0; ; {
		listed, _, err := streams.List(r.ctx, r.client, r.source)
		if err == nil || errors.Is(err, streams.ErrNoStream) {
			for _, s := range lost {
				got := read{err: notFound(err), last: true}
				if err == nil {
					got.err = s.lost
				}
				for _, heir := range listed {
					if heir.Range.End.Compare(s.Range.Start) >= 0 && s.Range.End.Compare(heir.Range.Start) >= 0 {
						got.page.Children = append(got.page.Children, heir)
					}
				}
				r.ready.tell(s, got)
			}
			return
		}
		if failures++; failures%lasting == 0 {
			r.ready.tell(lost[0], read{err: err})
		}
		if retry.Wait(r.ctx, r.opts.IdleInterval) != nil {
			return
		}
	}
}
