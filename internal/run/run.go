// Package run runs one worker of an application. It joins the group of the application and starts a
// loop for each shard that the group gives to this worker; see package shardrun. It owns everything
// that the loops share: the connections, the memory, the slots for calls, the catalog of streams
// and the queue of events. It also supervises the loops and publishes their status.
package run

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/weir-go/weir/event"
	"github.com/weir-go/weir/internal/failure"
	"github.com/weir-go/weir/internal/fanout"
	"github.com/weir-go/weir/internal/group"
	"github.com/weir-go/weir/internal/guard/guarded"
	"github.com/weir-go/weir/internal/keyed"
	"github.com/weir-go/weir/internal/lineage"
	"github.com/weir-go/weir/internal/memory"
	"github.com/weir-go/weir/internal/polling"
	"github.com/weir-go/weir/internal/shardrun"
	"github.com/weir-go/weir/internal/source"
	"github.com/weir-go/weir/internal/streams"
	"github.com/weir-go/weir/internal/wire"
	"github.com/weir-go/weir/internal/wire/codec"
	"github.com/weir-go/weir/lease"
)

// Config contains the options of a consumer, with their defaults.
type Config struct {
	shardrun.Config
	Client wire.Kinesis
	Store  *guarded.Store
	Off    []guarded.Feature // which the store is not able to serve
	// OnEvent gets the events. It may be nil.
	OnEvent func(context.Context, event.Event)

	// The group.
	Start     shardrun.Position // in streams that the application has not seen
	Weight    float64
	MaxLeases int

	// Streams.
	Streams []streams.Stream
	Asks    bool     // User.Streams returns more of them
	Shards  []string // to read, with their descendants; nil means all

	// Reading.
	Path            wire.Path // of calls of a *kinesis.Client
	ReadShare       float64
	MaxMemory       int
	Calls           int // concurrent calls of the handler, with Keys
	FanOutName      string
	FanOutARNs      []string
	FanOutExisting  bool // no consumer is registered
	FanOutTemporary bool // the last worker deregisters the consumer FanOutName
	NoHistory       bool

	// Time limits.
	StallAfter     time.Duration
	HandlerTimeout time.Duration
	StopTimeout    time.Duration
}

// stays reports whether a shard waits at its position when the records there have left the stream.
func (c *Config) stays() bool { return c.Expired == source.StayExpired }

// ErrAbandoned is wrapped by the error of [Run.Run] when the user's code did not return.
var ErrAbandoned = errors.New("weir: handlers still run although their contexts have ended")

// ErrStreamNotFound is wrapped by the error of [Run.Run] when a configured stream does not exist.
var ErrStreamNotFound = errors.New("weir: the stream does not exist")

// Run is one run of a consumer.
type Run struct {
	Config
	user     User
	registry *Registry
	shared   shardrun.Shared
	reads
	supervisor supervisor
	standing   standing
	telling    telling
}

// reads contains the parts that all shards of a run use for reading.
type reads struct {
	caller    *wire.Caller
	scheduler polling.Scheduler
	consumers *fanout.Consumers // nil when it polls
	streams   streams.Set
	setups    sync.Map // source.Stream to *source.Setup
	catalog   streams.Catalog
}

// New makes a run and starts nothing. The user's code gets the values of ctx.
func New(ctx context.Context, c Config, user User, of *Registry, counters *shardrun.Counters) *Run {
	r := &Run{Config: c, user: user, registry: of, standing: newStanding()}
	r.telling = telling{to: c.Log, registry: of, user: user}
	r.supervisor.run = r
	r.shared = shardrun.Shared{
		Config: c.Config, User: user, Run: r, Counters: counters, Log: c.Log, Repeats: c.Log,
		Values: context.WithoutCancel(ctx), Store: c.Store,
		Budget: memory.New(c.MaxMemory), Slots: keyed.NewSlots(c.Calls), Brake: failure.Brake{Policy: c.GiveUp},
		Lineage: lineage.New(r.leases, r.firstNumbers),
	}
	r.catalog = streams.Catalog{Client: c.Client, Refused: r.creationUntold, Spread: r.spread}
	return r
}

// Run takes part in the application until ctx ends, the user's code ends it, or an error occurs
// that no retry can fix. weir.Consumer.Run documents its errors.
func (r *Run) Run(ctx context.Context) (err error) {
	stopTelling := r.telling.start(ctx, r.App, r.Worker, r.OnEvent)
	defer func() { err = errors.Join(err, stopTelling()) }()
	r.shared.Log, r.shared.Repeats = r.telling.log, r.telling.repeats
	r.shared.Events = r.telling.events
	r.caller, err = wire.NewCaller(r.Client, wire.Options{
		Path: r.Path, Reuse: r.Reuse, Poison: r.Poison,
		Switched: r.switched, Silent: r.silent, FellBack: FellBack(r.shared.Log),
	})
	if err != nil {
		return fmt.Errorf("weir: %w", err)
	}
	defer r.caller.Close()
	if r.FanOut {
		r.consumers = fanout.New(r.Client, r.FanOutName, r.FanOutARNs, r.shared.Log)
		r.consumers.Existing = r.FanOutExisting
	}
	if err := r.checkConsumers(ctx); err != nil {
		return err
	}
	r.logTransport()
	r.logAbilities()
	defer r.scheduler.Close()
	defer r.supervisor.start(ctx)()
	r.registry.register(r)
	defer r.registry.unregister(r)
	defer context.AfterFunc(ctx, r.Stopping)()
	defer r.supervisor.startSampling(ctx)()
	r.streams.Replace(r.Streams)
	err = r.joinGroup(ctx)
	r.standing.rests()
	if left := r.outlast(r.standing.stopBegan().Add(r.StopTimeout)); left != nil {
		return errors.Join(err, left)
	}
	if r.FanOutTemporary {
		r.removeConsumers(ctx)
	}
	return err
}

// joinGroup takes part in the group until the run ends. It converts the group's error to the error
// that Run returns.
func (r *Run) joinGroup(ctx context.Context) error {
	errOfGroup := r.join(ctx, group.Config{
		Store: r.Store, App: r.App, Worker: r.Worker, Weight: r.Weight, MaxLeases: r.MaxLeases,
		Times: r.Times, Stop: r.StopTimeout, Streams: r.streams.Names(), Named: r.named(), Shards: r.Shards,
		Start: r.Start, ListInterval: r.ListInterval, Host: r, Log: r.shared.Log,
	})
	var (
		stop   *shardrun.StopError
		broken *group.StopError
	)
	switch {
	case errors.As(errOfGroup, &stop):
		if errors.As(errOfGroup, &broken) {
			return errors.Join(stop.Err, broken)
		}
		return stop.Err
	case errors.Is(errOfGroup, group.ErrNoStream):
		return streams.Also("weir: ", errOfGroup, ErrStreamNotFound)
	}
	return errOfGroup
}

// mostRead returns the largest number of records of a read. With keys in parallel,
// Options.Batching.MaxRecords does not limit a read.
func (r *Run) mostRead() int32 {
	if r.Parallel() {
		return 10_000
	}
	return int32(r.Batch)
}

// logTransport logs how the calls of Kinesis are made.
func (r *Run) logTransport() {
	path, why := r.caller.Path()
	r.shared.Log.Info("calling Kinesis", "transport", transport(path), "why", why)
}

// transport returns the name of a path for the log.
func transport(p wire.Path) string {
	switch p {
	case wire.OwnCall:
		return "own"
	case wire.Methods:
		return "methods"
	default:
		return "sdk"
	}
}

// logAbilities logs which features are off.
func (r *Run) logAbilities() {
	has := r.Store.Abilities()
	for _, f := range r.Off {
		r.shared.Log.Info("a feature is off, because the store lacks an ability",
			"feature", f.Name, "missing", has.Missing(f.Needs).String())
	}
	if has.Has(lease.KeepHistory) && !r.Store.KeepsHistory() && !r.NoHistory {
		r.shared.Log.Info("the dashboard shows no history: the wrapper of the store does not implement lease.Historian")
	}
}

func (r *Run) switched(streamARN string, to codec.Format, why error) {
	r.shared.Log.Info("reads of a stream use another request format from now on", "arn", streamARN, "format", to.String(), "why", why)
}

func (r *Run) silent(endpoint string, times int) {
	r.shared.Log.Info("reads got no answer and were repeated over new connections", "endpoint", endpoint, "reads", times)
}
