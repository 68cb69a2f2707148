package weir

import (
	"context"
	"errors"
	"os"
	"slices"
	"time"

	"github.com/weir-go/weir/deadletter"
	"github.com/weir-go/weir/event"
	"github.com/weir-go/weir/internal/batch"
	"github.com/weir-go/weir/internal/group"
	"github.com/weir-go/weir/internal/keyed"
	"github.com/weir-go/weir/internal/notify"
	"github.com/weir-go/weir/internal/pull"
	"github.com/weir-go/weir/internal/run"
	"github.com/weir-go/weir/internal/shardrun"
	"github.com/weir-go/weir/internal/source"
	"github.com/weir-go/weir/internal/streams"
	"github.com/weir-go/weir/shard"
)

// adapter gives the engine access to the user's code during one run. It translates between the
// types of this package and those of the engine. It turns panics of the user's code into errors.
type adapter struct {
	*Consumer
	handler Handler       // of all shards; nil if terms is set
	terms   *termHandlers // makes a handler for each term; nil if handler is set
}

var _ run.User = (*adapter)(nil)

// config returns the options in the engine's form.
func (c *Consumer) config(terms *termHandlers) run.Config {
	o := &c.opts
	of := shardrun.Config{
		App: o.App, Worker: o.Worker, Log: o.Logger,
		Batch: o.Batching.MaxRecords, BatchBytes: o.Batching.MaxBytes, BatchWait: o.Batching.MaxWait, Aggregates: batch.Mode(o.Aggregates),
		DropRepeats: o.DropRepeats, Filters: o.Filter.By != nil, NotJSON: shardrun.NotJSON(o.Filter.NotJSON),
		Reuse: o.ReuseBuffers, Poison: os.Getenv(poisonVariable) != "",
		RetryMin: o.Retry.MinBackoff, RetryMax: o.Retry.MaxBackoff, GiveUp: o.OnFailure.policy(), SuspectAfter: o.OnFailure.SuspectAfter,
		Expired: source.IfExpired(o.Expired), FanOut: o.FanOut.on(),
		Times: o.times(), ListInterval: o.Timing.ListInterval, IdleInterval: o.Polling.IdleInterval,
	}
	p := o.Concurrency
	if terms != nil && terms.partitions > 0 {
		p = p.of(terms.partitions)
	}
	if p.on() {
		of.Keys, of.Span = p.Keys, keyed.Limits{Records: p.MaxRecords, Bytes: p.MaxBytes, Age: p.MaxAge}
	}
	if terms != nil {
		of.Partitions = terms.partitions
		of.PerTerm, of.Pulls, of.Sink, of.Idle = true, terms.pull != nil, terms.position != nil, terms.idle
	}
	return run.Config{
		Config: of, Client: c.client, Store: c.store, Off: c.off, OnEvent: o.OnEvent,
		Start: o.Start, Weight: o.Weight, MaxLeases: o.MaxLeases,
		Streams: c.streams, Asks: o.DiscoverStreams != nil, Shards: o.Shards,
		Path: o.Transport.path(), ReadShare: o.Polling.Share, MaxMemory: o.MaxMemory, Calls: p.MaxCalls,
		FanOutName: o.FanOut.Name, FanOutARNs: o.FanOut.ARNs, FanOutExisting: o.FanOut.Mode == FanOutExisting,
		FanOutTemporary: o.FanOut.Mode == FanOutTemporary, NoHistory: o.NoHistory,
		StallAfter: o.Timing.StallAfter, HandlerTimeout: o.Timing.HandlerTimeout, StopTimeout: o.Timing.StopTimeout,
	}
}

// Shared implements [shardrun.User].
func (a *adapter) Shared() shardrun.Handler {
	return &shardHandler{adapter: a, handle: a.handler.Handle}
}

// Open implements [shardrun.User].
func (a *adapter) Open(ctx context.Context, t *group.Term, from Position) (shardrun.Handler, error) {
	term := Term{Stream: t.Lease.Stream, Shard: t.Lease.Shard, Epoch: t.Lease.Epoch, From: from}
	if a.terms.pull != nil {
		return a.startPull(ctx, term, t), nil
	}
	var made ShardHandler
	err := contained("ShardHandlers.Open", func() (err error) {
		made, err = a.terms.open(ctx, term)
		return err
	})
	switch {
	case err != nil:
		return nil, err
	case made == nil:
		return nil, errors.New("weir: ShardHandlers.Open returned neither a handler nor an error")
	}
	return &shardHandler{adapter: a, handle: made.Handle, close: made.Close}, nil
}

// startPull starts PullHandler.Pull for a term. When Pull has returned, startPull wakes the loop of
// the term.
func (a *adapter) startPull(ctx context.Context, term Term, t *group.Term) *shardHandler {
	p := pull.Start(func(p *pull.Puller[*Batch]) error {
		return contained("PullHandler.Pull", func() error { return a.terms.pull(ctx, &Puller{term, p, t}) })
	}, shardrun.ErrGoexit, t.Wake)
	return &shardHandler{
		adapter: a, pull: p,
		handle: func(ctx context.Context, b *Batch) error {
			end := b.End // the function may change its batch
			if n := len(b.Records); n > 0 {
				p.Yield(b.Records[n-1].Position())
			}
			return p.Hand(ctx, b, end)
		},
		close: func(ctx context.Context, why event.EndReason) {
			reason := context.Cause(ctx)
			switch {
			case reason != nil:
			case why == event.EndStopped:
				reason = ErrStopping
			default:
				reason = ErrHandedOff
			}
			p.End(reason)
		},
	}
}

// Position implements [shardrun.User].
func (a *adapter) Position(ctx context.Context, stream, id string) (p shard.Position, err error) {
	err = contained(a.terms.of+".Position", func() (err error) {
		p, err = a.terms.position(ctx, stream, id)
		return err
	})
	return p, err
}

// PutLetters implements [shardrun.User].
func (a *adapter) PutLetters(ctx context.Context, letters []deadletter.Letter) error {
	return contained("OnFailure.Destination", func() error { return a.opts.OnFailure.Destination.Put(ctx, letters) })
}

// Match implements [shardrun.User].
func (a *adapter) Match(r *source.Record) (matches, isJSON bool, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = panicked("Options.Filter", p)
		}
	}()
	matches, isJSON = a.opts.Filter.By.Match(r.Data, r.Key, time.UnixMilli(r.Arrival))
	return matches, isJSON, nil
}

// Reject implements [shardrun.User].
func (a *adapter) Reject(err error) error { return Reject(err) }

// PanicIn implements [shardrun.User].
func (a *adapter) PanicIn(err error) shardrun.Panic {
	var p *PanicError
	if !errors.As(err, &p) {
		return shardrun.Panic{}
	}
	return shardrun.Panic{Who: p.Who, Text: p.Error(), Stack: p.Stack}
}

// HookPanic implements [run.User].
func (a *adapter) HookPanic(p *notify.Panic) error {
	return &PanicError{"Options.OnEvent", p.Value, p.Stack}
}

// AskStreams implements [run.User].
func (a *adapter) AskStreams(ctx context.Context) (names []string, err error) {
	err = contained("DiscoverStreams", func() (err error) { names, err = a.opts.DiscoverStreams(ctx); return err })
	return names, err
}

// ParseStreams implements [run.User].
func (a *adapter) ParseStreams(asked []string) ([]streams.Stream, error) {
	opts := a.opts
	opts.Streams = slices.Concat(opts.Streams, asked)
	return opts.streams(streams.RegionOf(a.client))
}
