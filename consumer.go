package weir

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/weir-go/weir/internal/guard/guarded"
	"github.com/weir-go/weir/internal/run"
	"github.com/weir-go/weir/internal/shardrun"
	"github.com/weir-go/weir/internal/streams"
	"github.com/weir-go/weir/internal/supervise"
	"github.com/weir-go/weir/lease"
)

// Consumer is one worker of an application.
type Consumer struct {
	client  Kinesis
	store   *guarded.Store
	opts    Options
	off     []guarded.Feature // which the store is not able to serve
	streams []streams.Stream  // at first

	counted shardrun.Counters
	judge   supervise.Judge
	runs    run.Registry
}

// New checks its arguments and returns a worker that [Consumer.Run] starts. It does no I/O. The
// error names all problems at once. One of them may be that the options need an ability that the
// store lacks; see [lease.Abilities]. client is usually a *kinesis.Client; see [Kinesis].
func New(client Kinesis, store lease.Store, opts Options) (*Consumer, error) {
	return newConsumer(client, store, opts, guarded.Features)
}

func newConsumer(client Kinesis, store lease.Store, opts Options, all []guarded.Feature) (*Consumer, error) {
	checked, named, err := opts.checked(client, store)
	var (
		off  []guarded.Feature
		safe *guarded.Store
	)
	if opts.DropRepeats {
		all = append(slices.Clone(all), guarded.DropRepeats)
	}
	if store != nil {
		var failed error
		if safe, failed = guarded.NewStore(store, panicked); failed != nil {
			return nil, errors.Join(fmt.Errorf("weir: reading the abilities of the store: %w", failed), err)
		}
		var missing []error
		if missing, off = guarded.Judge(safe.Abilities(), all); missing != nil {
			err = errors.Join(append(missing, err)...)
		}
	}
	if err != nil {
		return nil, err
	}
	return &Consumer{
		client: guarded.Client(client, panicked), store: safe, opts: checked, off: off, streams: named,
	}, nil
}

// poisonVariable is the environment variable that makes weir fill reused buffers with nonsense once
// they are released; see Options.ReuseBuffers.
const poisonVariable = "WEIR_POISON"

// Run joins the application and handles the shards assigned to this worker, until ctx ends, the
// handler returns [Stop], or an error occurs that no retry can fix. Then Run stops: handlers finish
// their batches, progress is saved, the leases are handed off or become free, and every goroutine
// ends. If a handler has not finished after Options.Timing.StopTimeout, its context ends. Run
// returns nil if ctx ended, or the handler returned Stop(nil), and all of these steps succeeded.
// Otherwise the error says why Run stopped and which of these steps failed. errors.Is finds each of
// these in it:
//
//   - the error that the handler passed to Stop;
//   - [ErrStreamNotFound], and [lease.ErrSetup], which names the missing part of the store;
//   - [ErrNotSaved], if the store may lack progress. Run tries to save it for
//     Options.Timing.FailoverAfter after the handlers have returned;
//   - [ErrNotReleased], if the store may still count leases as this worker's;
//   - [ErrAbandoned], if a handler did not return although its context had ended: Run stops waiting
//     for it 7 s after Options.Timing.StopTimeout;
//   - the error of the store's calls, if ctx ended before the store had answered once.
//
// A temporary failure of the store or stream, of any length, does not end Run. It is no error if
// another worker takes a lease while Run stops: that worker handles the unsaved records again. Each
// call of Run is a separate worker, also if several calls share a Consumer.
func (c *Consumer) Run(ctx context.Context, h Handler) error {
	if h == nil {
		return errors.New("weir: the handler passed to Run is nil")
	}
	return c.run(ctx, h, nil)
}

// run does what Run does. Either h handles all shards, or terms makes a handler for each term.
func (c *Consumer) run(ctx context.Context, h Handler, terms *termHandlers) error {
	return c.newRun(ctx, h, terms).Run(ctx)
}

// newRun returns a run and starts nothing.
func (c *Consumer) newRun(ctx context.Context, h Handler, terms *termHandlers) *run.Run {
	a := &adapter{Consumer: c, handler: h, terms: terms}
	return run.New(ctx, c.config(terms), a, &c.runs, &c.counted)
}
