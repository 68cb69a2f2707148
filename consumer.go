package weir

import (
	"context"
	"errors"

	"github.com/aws/aws-sdk-go-v2/service/kinesis"

	"github.com/weir-go/weir/internal/lock"
	"github.com/weir-go/weir/internal/streams"
	"github.com/weir-go/weir/lease"
)

// Consumer is one worker of an application.
type Consumer struct {
	client  *kinesis.Client
	store   lease.Store
	opts    Options
	off     []feature        // that the store cannot serve
	streams []streams.Stream // at first

	counted counters
	judge   judge

	mu       lock.Mutex[lock.Consumer]
	loops    map[*shardLoop]struct{} // that run
	runs     map[*run]struct{}       // that have not returned
	returned bool                    // one has
}

// New checks everything it is given and returns a worker that [Consumer.Run] starts. It does no
// I/O. The error names all problems at once, also what the options need and the store cannot do;
// see [lease.Abilities].
func New(client *kinesis.Client, store lease.Store, opts Options) (*Consumer, error) {
	return newConsumer(client, store, opts, features)
}

func newConsumer(client *kinesis.Client, store lease.Store, opts Options, all []feature) (*Consumer, error) {
	checked, named, err := opts.checked(client, store)
	var off []feature
	if store != nil {
		var missing []error
		if missing, off = judgeAbilities(store.Abilities(), checked, all); missing != nil {
			err = errors.Join(append(missing, err)...)
		}
	}
	if err != nil {
		return nil, err
	}
	return &Consumer{client: client, store: store, opts: checked, off: off, streams: named, loops: map[*shardLoop]struct{}{}, runs: map[*run]struct{}{}}, nil
}

// poisonVariable in the environment has reused buffers filled with nonsense once they are released;
// see Options.ReuseBuffers.
const poisonVariable = "WEIR_POISON"

// Run joins the application and handles the shards that fall to this worker, until ctx ends, the
// handler returns [Stop], or something fails that no retry mends. It returns nil after an orderly
// stop: handlers have finished their batches (or were told to stop after Options.StopTimeout),
// progress is saved, the leases are with others or free, and every goroutine has ended. Otherwise
// it stops in the same way and returns what the handler gave to Stop, an error that wraps
// [ErrStreamNotFound], or one that wraps [lease.ErrSetup] and says what the store is missing. A
// handler that does not return although its context has ended is left behind, 7 s after
// Options.StopTimeout: then the error wraps [ErrAbandoned]. If ctx ends before the store has
// answered for the first time, the error is what its calls failed with.
//
// A store or stream that fails for a while, however long, does not end Run. Several calls of Run,
// also of one Consumer, are workers of their own.
func (c *Consumer) Run(ctx context.Context, h Handler) error {
	if h == nil {
		return errors.New("weir: Run without a handler")
	}
	return c.run(ctx, h, nil)
}
