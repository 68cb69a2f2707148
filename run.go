package weir

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/kinesis"

	"github.com/weir-go/weir/internal/failure"
	"github.com/weir-go/weir/internal/fanout"
	"github.com/weir-go/weir/internal/group"
	"github.com/weir-go/weir/internal/guard/guarded"
	"github.com/weir-go/weir/internal/history/sampling"
	"github.com/weir-go/weir/internal/keyed"
	"github.com/weir-go/weir/internal/lineage"
	"github.com/weir-go/weir/internal/memory"
	"github.com/weir-go/weir/internal/polling"
	"github.com/weir-go/weir/internal/source"
	"github.com/weir-go/weir/internal/streams"
	"github.com/weir-go/weir/internal/supervise"
	"github.com/weir-go/weir/internal/wire"
	"github.com/weir-go/weir/internal/wire/codec"
	"github.com/weir-go/weir/lease"
)

// run is Run with a handler for all shards, or with one for each term.
func (c *Consumer) run(ctx context.Context, h Handler, shards *ShardHandlers) (err error) {
	r := c.newRun(context.WithoutCancel(ctx), h, shards)
	stopTelling := r.startTelling(ctx)
	defer func() { err = errors.Join(err, stopTelling()) }()
	on := r.opts.Wire.options(r.opts.Logger)
	on.Reuse, on.Poison, on.Switched, on.Silent = c.opts.ReuseBuffers, r.poison, r.switched, r.silent
	r.caller, err = wire.NewCaller(c.client, on)
	if err != nil {
		return fmt.Errorf("weir: %w", err)
	}
	defer r.caller.Close()
	r.consumers = r.fanOutConsumers()
	if err := r.checkConsumers(ctx); err != nil {
		return err
	}
	r.logAbilities()
	defer r.scheduler.Close()
	probing, end := context.WithCancel(ctx)
	defer r.probes.Wait()
	defer end()
	r.startProbe = func(n int) { r.probes.Go(func() { r.probe(probing, n) }) }
	r.register()
	defer r.unregister()
	defer context.AfterFunc(ctx, r.Stopping)()
	defer r.startSampling(ctx)()
	r.streams.Replace(c.streams)
	errOfGroup := r.join(ctx, group.Config{
		Store: c.store, App: c.opts.App, Worker: c.opts.Worker, Weight: c.opts.Weight, MaxLeases: c.opts.MaxLeases,
		Times: c.opts.times(), Stop: c.opts.StopTimeout, Streams: r.streams.Names(), Named: r.named(), Start: c.opts.Start, ListInterval: c.opts.ListInterval,
		Host: r, Log: r.opts.Logger,
	})
	r.rests()
	err = errOfGroup
	var (
		stop   *stopError
		broken *group.StopError
	)
	switch {
	case errors.As(err, &stop):
		if err = stop.err; errors.As(errOfGroup, &broken) {
			err = errors.Join(err, broken)
		}
	case errors.Is(err, group.ErrNoStream):
		err = fmt.Errorf("%w: %w", ErrStreamNotFound, err)
	}
	if left := r.outlast(r.stopBegan().Add(c.opts.StopTimeout)); left != nil {
		return errors.Join(err, left)
	}
	if r.opts.RemoveFanOut {
		r.removeConsumers(ctx)
	}
	return err
}

// run is one Run of a consumer with the state that its shards share.
type run struct {
	consumer *Consumer
	store    *guarded.Store
	counted  *counters
	opts     Options         // with the logger that goes through the queue
	handler  Handler         // of all shards; nil if shards is set
	shards   *ShardHandlers  // make a handler for each term; nil if handler is set
	values   context.Context // Run's, without its end
	poison   bool            // check whether handlers write into Data
	brake    failure.Brake
	gaveUp   failure.Recent
	slots    *keyed.Slots // for calls of the handler, with Options.Parallel
	turns    failure.Turns

	telling
	reads
	beats
	standing standing
}

// reads has the shared means by which a run reads its shards.
type reads struct {
	client    *kinesis.Client
	caller    *wire.Caller
	scheduler polling.Scheduler
	budget    *memory.Budget
	consumers *fanout.Consumers // nil when it polls
	streams   streams.Set
	setups    sync.Map // source.Stream to *source.Setup
	catalog   streams.Catalog
	lineage   *lineage.Lineage
}

// beats is the state of the beat loop between looks, and the goroutines that it starts.
type beats struct {
	looks      []*shardLoop      // scratch memory
	toldMemory time.Time         // when a log line last said that shards wait for memory
	sampler    *sampling.Sampler // nil if no history is kept
	probes     sync.WaitGroup
	startProbe func(n int)
}

// newRun returns a run that nothing was started for.
func (c *Consumer) newRun(values context.Context, h Handler, shards *ShardHandlers) *run {
	r := &run{
		consumer: c, store: c.store, counted: &c.counted, opts: c.opts, handler: h, shards: shards, values: values,
		poison: os.Getenv(poisonVariable) != "", slots: keyed.NewSlots(c.opts.Parallel.Calls),
		brake:   failure.Brake{Policy: c.opts.GiveUp.policy()},
		telling: telling{repeats: c.opts.Logger},
		reads:   reads{client: c.client, budget: memory.New(c.opts.MaxMemory)},
		standing: standing{
			loops: map[*shardLoop]struct{}{}, abandoned: map[lease.Key]*shardLoop{}, stalls: map[lease.Key]supervise.Stalls{},
			unlisted: map[string]time.Time{},
		},
	}
	r.lineage = lineage.New(r.leases, r.firstNumbers)
	r.catalog = streams.Catalog{Client: c.client, Refused: r.creationUntold, Spread: r.spread}
	return r
}

func (r *run) loop(t *group.Term) *shardLoop {
	l := &shardLoop{
		in: r, rate: supervise.RateOf(t.Lease.Load.Bytes(), time.Now()), term: t,
	}
	if r.shards == nil { // else it is asked first where reading begins
		l.source = r.pagesOf(l, t.Lease.Position)
	}
	return l
}

// pagesOf returns the source of a shard's pages from a position on.
func (r *run) pagesOf(l *shardLoop, at Position) pages {
	poll := polling.Poll{
		Setup: r.setup(l.term.Lease.Stream), Shard: l.term.Lease.Shard, From: at, Limit: r.mostRead(), Listener: l,
	}
	if r.consumers == nil {
		return polling.NewFeed(l, poll, &r.scheduler, r.budget)
	}
	return r.pages(l, poll, r.consumers)
}

// mostRead is how many records a read may bring. Batches of one key say nothing of what is read.
func (r *run) mostRead() int32 {
	if r.opts.Parallel.on() {
		return 10_000
	}
	return int32(r.opts.Batch)
}

// setup has the settings for reading a stream's shards.
func (r *run) setup(stream string) *source.Setup {
	of := r.streams.Stream(stream)
	if known, ok := r.setups.Load(of); ok {
		return known.(*source.Setup)
	}
	known, _ := r.setups.LoadOrStore(of, &source.Setup{
		Client: r.client, Caller: r.caller, Stream: of, Idle: r.opts.IdleInterval, ReadShare: r.opts.ReadShare,
		IfExpired: source.IfExpired(r.opts.Expired),
	})
	return known.(*source.Setup)
}

// startSampling starts reporting how the shards stand, and returns what ends it with a last report.
// It does nothing if the store is not able to keep that, or the options do not want it.
func (r *run) startSampling(ctx context.Context) (end func()) {
	if r.opts.NoHistory || !r.store.KeepsHistory() {
		return func() {}
	}
	r.sampler = &sampling.Sampler{Store: r.store, App: r.opts.App, Worker: r.opts.Worker, Shards: r.standings, Log: r.opts.Logger}
	stop := r.sampler.Start(ctx)
	return func() { stop(time.Since(r.consumer.StoreAnswered()) < r.opts.FailoverAfter) }
}

// standings returns how the shards of the run stand, for its sampler.
func (r *run) standings(now time.Time) (all []sampling.Standing) {
	for _, l := range r.running(nil) {
		s := l.status()
		all = append(all, sampling.Standing{Key: l.term.Lease.Key, At: s.At, Lag: s.HandledLag, Load: l.load(now)})
	}
	return all
}

// logAbilities logs which features are off.
func (r *run) logAbilities() {
	for _, f := range r.consumer.off {
		r.opts.Logger.Info("a feature is off, because the store lacks an ability",
			"feature", f.Name, "missing", r.store.Abilities().Missing(f.Needs).String())
	}
	if r.store.Abilities().Has(lease.KeepHistory) && !r.store.KeepsHistory() && !r.opts.NoHistory {
		r.opts.Logger.Info("the dashboard shows no history: the wrapper of the store does not implement lease.Historian")
	}
}

func (r *run) switched(streamARN string, to codec.Format, why error) {
	r.opts.Logger.Info("reading a stream in another format from now on", "arn", streamARN, "format", to.String(), "why", why)
}

func (r *run) silent(endpoint string, times int) {
	r.opts.Logger.Info("reads got no answer and were repeated over new connections", "endpoint", endpoint, "reads", times)
}
