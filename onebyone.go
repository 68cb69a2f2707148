package weir

import (
	"context"
	"errors"
	"iter"
	"sync"
	"time"
)

// Records is [Consumer.Run] as a loop of the caller: it joins the application, and yields the
// records of the shards assigned to this worker one by one, in order within each shard. A record is
// done when the loop requests the next one, and that is saved with the next heartbeat: work that
// the body starts in another goroutine has to have ended by then, or may be lost with the process.
// A body that cannot handle a record retries by itself, or leaves the loop.
//
// With [Options].ReuseBuffers a record is valid until the loop requests the next one.
//
// The loop ends when ctx ends, or when the body leaves it. Before it ends, the worker has stopped
// in order. The record at which the body left is not done and will be handled again. If Run would
// fail, the last pair has no record but its error.
//
// Shards take turns by batches: [Options].Batch is the number of records from one shard before
// another's turn. HandlerTimeout and HandoffTimeout apply to batches, including the time in which
// they wait for their turn. The body of the loop cannot report a failed record, so the loop yields
// an error if [Options].GiveUp is set, or [Filter].NotJSON is [FailNotJSON]. It is not for
// concurrent use; each loop is a worker.
func (c *Consumer) Records(ctx context.Context) iter.Seq2[Record, error] {
	return func(yield func(Record, error) bool) {
		running, stop := context.WithCancel(ctx)
		o := &oneByOne{turns: make(chan *loopTurn), closed: make(chan struct{})}
		ended := make(chan struct{})
		var err error
		go func() {
			defer close(ended)
			err = c.RunShards(running, ShardHandlers{Pull: o.pull})
		}()
		finish := sync.OnceFunc(func() {
			stop()
			close(o.closed)
			<-ended
		})
		defer finish() // also when the body panics

		wanted := o.loop(ctx, ended, yield)
		finish()
		switch {
		case err == nil:
		case wanted:
			yield(Record{}, err)
		default: // the loop has ended and takes no more
			c.opts.Logger.Warn("a worker ended with an error after the loop over its records; records after its checkpoints will be handled again",
				"app", c.opts.App, "worker", c.opts.Worker, "err", err)
		}
	}
}

// oneByOne is how the shards of a worker, which are pulled side by side, take turns in one loop.
type oneByOne struct {
	turns  chan *loopTurn
	closed chan struct{} // once the loop is over
}

// loopTurn is a batch in the loop, whose it is until over or oneByOne.closed is closed.
type loopTurn struct {
	ctx   context.Context // the term's
	trust func() error    // why the shard is not this worker's any more, by the clock
	batch *Batch
	over  chan struct{}
	err   error // why not every record is done
}

// loop gives turns until ctx or the run ends, or the body leaves the loop. It returns false if the
// body left.
func (o *oneByOne) loop(ctx context.Context, ended <-chan struct{}, yield func(Record, error) bool) bool {
	for ctx.Err() == nil {
		select {
		case t := <-o.turns:
			if !t.take(ctx, yield) {
				return false
			}
			if ctx.Err() == nil { // else closed says that it is over
				close(t.over)
			}
		case <-ended:
			return true
		case <-ctx.Done():
		}
	}
	return true
}

// take goes through a batch while the shard is this worker's. It reports whether the body stayed.
// Each record is like a call of a handler: the clock is asked first, because the timer that ends
// ctx may be late after the process was suspended.
func (t *loopTurn) take(ctx context.Context, yield func(Record, error) bool) bool {
	for _, r := range t.batch.Records {
		if t.err = t.trust(); t.err == nil {
			t.err = context.Cause(t.ctx)
		}
		if t.err != nil || ctx.Err() != nil {
			return true
		}
		if !yield(r, nil) {
			return false
		}
		if t.err = t.batch.Done(r); t.err != nil {
			return true
		}
	}
	return true
}

// errLoopLeft says that the loop ended before a shard did. Without an error the shard would count
// as done.
var errLoopLeft = errors.New("weir: the loop over the records has ended")

// pull has the batches of a shard take their turns.
func (o *oneByOne) pull(ctx context.Context, s *Shard) error {
	left, trust := false, func() error { return s.term.Check(time.Now()) }
	for b, err := range s.Batches() {
		if err != nil {
			return err
		}
		t := &loopTurn{ctx: ctx, trust: trust, batch: b, over: make(chan struct{})}
		select {
		case o.turns <- t:
		case <-o.closed:
			left = true // the run is about to end, and with it these batches
			continue
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		select {
		case <-t.over:
			if t.err != nil {
				return t.err
			}
		case <-o.closed:
			left = true
		}
	}
	if left {
		return errLoopLeft
	}
	return nil
}
