package weir

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/weir-go/weir/internal/batch"
	"github.com/weir-go/weir/internal/delivery"
	"github.com/weir-go/weir/internal/fanout"
	"github.com/weir-go/weir/internal/follow"
	"github.com/weir-go/weir/internal/group"
	"github.com/weir-go/weir/internal/memory"
	"github.com/weir-go/weir/internal/run"
	"github.com/weir-go/weir/internal/source"
	"github.com/weir-go/weir/internal/streams"
	"github.com/weir-go/weir/internal/wire"
	"github.com/weir-go/weir/shard"
)

// reading is one run of a Reader.
type reading struct {
	*Reader
	budget *memory.Budget
}

func (r *Reader) reading() *reading { return &reading{r, memory.New(r.opts.MaxMemory)} }

// run yields the records of the stream until ctx ends, the caller wants no more, or there is
// nothing more to read.
func (r *reading) run(ctx context.Context, yield func(*Batch, error) bool) {
	caller, err := wire.NewCaller(r.client, wire.Options{Path: r.opts.Transport.path(), FellBack: run.FellBack(r.opts.Logger)})
	if err != nil {
		yield(nil, fmt.Errorf("weir: %w", err))
		return
	}
	defer caller.Close()
	of := follow.Stream{
		Setup:  &source.Setup{Client: r.client, Caller: caller, Stream: r.source, Idle: r.opts.Polling.IdleInterval, ReadShare: r.opts.Polling.Share},
		Budget: r.budget, UntilTip: r.opts.UntilTip, FanOut: r.fanOutChanged,
	}
	if r.opts.FanOut.on() {
		of.Consumers = r.consumers()
		defer r.leave(ctx, of.Consumers)
		if _, err := of.Consumers.ARN(ctx, r.source); err != nil {
			yield(nil, notFound(err))
			return
		}
	}
	listing, err := streams.ListFrom(ctx, r.client, r.source, r.opts.Start)
	if err != nil {
		yield(nil, notFound(err))
		return
	}
	places, err := r.places(listing)
	if err != nil {
		yield(nil, err)
		return
	}
	if err := of.Run(ctx, places, func(got *follow.Read) bool { return r.hand(got, yield) }); err != nil {
		yield(nil, err)
	}
}

// places decides which shards are read, and from where.
func (r *reading) places(listing streams.Listing) ([]follow.Place, error) {
	// Every stream has shards. Without this check, an empty list would look like a stream that was
	// read completely.
	if len(listing.Shards) == 0 {
		return nil, errors.New("weir: the service lists no shards of the stream: is it Kinesis, and is that the right endpoint?")
	}
	graph := shard.NewGraph(listing.Shards)
	for _, id := range r.opts.Shards {
		if _, ok := graph.Shard(id); !ok {
			return nil, fmt.Errorf("weir: the stream has no shard %s: it has %s", id, streams.ShardNames(listing.Shards))
		}
	}
	var places []follow.Place
	wanted := map[string]bool{}
	for _, l := range group.NewLeases(r.source.Name, group.Listing(listing), nil, true) {
		id := l.Shard
		named := slices.Contains(r.opts.Shards, id)
		wanted[id] = len(r.opts.Shards) == 0 || named || slices.ContainsFunc(graph.Parents(id), func(p string) bool { return wanted[p] })
		p := follow.Place{At: l.Position, Done: !wanted[id] || l.Finished()}
		p.Shard, _ = graph.Shard(id)
		if named && r.opts.Start.Kind() == shard.Sequence {
			p.At = r.opts.Start
		}
		places = append(places, p)
	}
	return places, nil
}

// hand yields the records or the error of one read of a shard. It reports whether the caller wants
// more.
func (r *reading) hand(got *follow.Read, yield func(*Batch, error) bool) bool {
	switch {
	case got.Err != nil && got.Last:
		return yield(nil, notFound(got.Err))
	case got.Err != nil:
		return yield(nil, got.Err)
	}
	from := &source.Origin{Stream: r.source.Name, Shard: got.ID}
	made := func(records []Record, end bool) *Batch {
		return &Batch{Stream: from.Stream, Shard: from.Shard, Records: records, Behind: got.Page.Behind, End: end}
	}
	unpack := batch.NewUnpacker(batch.Mode(r.opts.Aggregates), from.Stream, from.Shard, got.Range, got.At)
	defer unpack.Release()
	own := unpack.Unpacks(&got.Page)
	got.Page.Keep() // the records are the caller's for good
	for run := range unpack.Runs(&got.Page, batch.Size{Records: 10_000}) {
		if len(run) == 0 { // the end has a separate batch
			continue
		}
		if own {
			run = slices.Clone(run)
		}
		delivery.Mark(run, from)
		if !yield(made(whole(run), false), nil) {
			return false
		}
	}
	return !got.Page.End || yield(made(nil, true), nil)
}

// consumers returns the fan-out consumers of the Reader. A consumer is registered when its ARN is
// first needed, unless the mode is [FanOutExisting].
func (r *reading) consumers() *fanout.Consumers {
	of := &r.opts.FanOut
	all := fanout.New(r.client, of.Name, of.ARNs, r.opts.Logger)
	all.Existing = of.Mode == FanOutExisting
	return all
}

// leave deregisters the consumer with [FanOutTemporary], if the Reader has registered it.
func (r *reading) leave(ctx context.Context, consumers *fanout.Consumers) {
	if r.opts.FanOut.Mode != FanOutTemporary {
		return
	}
	// Most readers end because ctx has ended, so the call must not use ctx itself.
	if err := consumers.Remove(context.WithoutCancel(ctx)); err != nil {
		r.opts.Logger.Error("could not deregister a fan-out consumer; it costs money until it is deregistered", "err", err)
	}
}

// fanOutChanged reports each change once, not each failure.
func (r *reading) fanOutChanged(id string, why error) {
	if why != nil {
		r.opts.Logger.Warn("fan-out is unavailable; weir polls, and retries fan-out every minute", "stream", r.source.Name, "shard", id, "err", why)
	} else {
		r.opts.Logger.Info("fan-out is back", "stream", r.source.Name, "shard", id)
	}
}
