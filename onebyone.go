package weir

import (
	"context"
	"errors"
	"iter"
	"sync"
	"time"
)

// Records joins the application as [Consumer.Run] does, and yields the records of this worker's
// shards one by one, in order within each shard. A record is done when the loop requests the next
// one, and the progress is saved with the next heartbeat. So the body must finish its work before
// it continues: work that it leaves to another goroutine may be lost with the process. A body that
// cannot handle a record tries again by itself, or leaves the loop.
//
// With [Options].ReuseBuffers a record is valid until the loop requests the next one.
//
// The loop ends when ctx ends, or when the body leaves it. In both cases the worker first stops in
// the same way as when Run ends. The record at which the body left the loop is not done, and is
// handled again. If Run would return an error, the last pair has that error and no record; after
// the body has left the loop, weir logs the error.
//
// Shards take turns by batches: after at most [Options].Batching.MaxRecords records of one shard
// comes the turn of another. HandlerTimeout and HandoffTimeout apply to batches, including the time
// for which a batch waits for its turn. Because the body of the loop cannot report a failed record,
// the loop yields an error if [FailurePolicy].Destination is set, or if [Filter].NotJSON is
// [FailNotJSON]. It also yields an error if [Options].Concurrency is set. The iterator is not for
// concurrent use. Each loop is a separate worker.
func (c *Consumer) Records(ctx context.Context) iter.Seq2[Record, error] {
	return func(yield func(Record, error) bool) {
		running, stop := context.WithCancel(ctx)
		o := &oneByOne{turns: make(chan *loopTurn), closed: make(chan struct{})}
		ended := make(chan struct{})
		var err error
		go func() {
			defer close(ended)
			err = c.RunPull(running, PullHandler{Pull: o.pull})
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
			c.opts.Logger.Warn("the loop over Consumer.Records has ended, and its worker then ended with an error; records after the worker's checkpoints will be handled again",
				"app", c.opts.App, "worker", c.opts.Worker, "err", err)
		}
	}
}

// oneByOne lets the shards of a worker take turns in one loop. Each shard is pulled by its own
// goroutine.
type oneByOne struct {
	turns  chan *loopTurn
	closed chan struct{} // once the loop is over
}

// loopTurn is a batch for the loop. The loop has it until the channel over or the channel
// oneByOne.closed is closed.
type loopTurn struct {
	ctx        context.Context // the term's
	checkLease func() error    // why the shard is not this worker's any more, by the clock
	batch      *Batch
	over       chan struct{}
	err        error // why not every record is done
}

// loop takes turns until ctx or the run ends, or until the body leaves the loop. It returns false
// if the body left.
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

// take yields the records of a batch while the shard belongs to this worker. It reports whether the
// body stayed in the loop. Before each record it reads the clock, as before a call of a handler,
// because the timer that ends ctx may be late after the process was suspended.
func (t *loopTurn) take(ctx context.Context, yield func(Record, error) bool) bool {
	for _, r := range t.batch.Records {
		if t.err = t.checkLease(); t.err == nil {
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

// errLoopLeft means that the loop ended before a shard did. If pull returned nil, the shard would
// count as done.
var errLoopLeft = errors.New("weir: the loop over the records has ended")

// pull passes the batches of a shard to the loop, one turn each.
func (o *oneByOne) pull(ctx context.Context, s *Puller) error {
	left, checkLease := false, func() error { return s.term.Check(time.Now()) }
	for b, err := range s.Batches() {
		if err != nil {
			return err
		}
		t := &loopTurn{ctx: ctx, checkLease: checkLease, batch: b, over: make(chan struct{})}
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
