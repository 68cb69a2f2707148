package weir

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"sync/atomic"

	"github.com/weir-go/weir/internal/group"
	"github.com/weir-go/weir/internal/lock"
	"github.com/weir-go/weir/internal/retry"
)

// Shard is a shard for one term, as [ShardHandlers].Pull gets it.
type Shard struct {
	Term
	pull *puller
	term *group.Term
}

// Batches yields the batches of the shard, in order, until the term ends. A yielded batch is not
// done yet: mark progress with [Batch.Done] or [Batch.Checkpoint], which also work for earlier
// batches and from other goroutines. All records are done when Pull returns nil after the batch
// with End. With [Options].ReuseBuffers a batch is valid until the next one is requested, and its
// progress has to be marked before.
//
// When the term ends before the shard does, the last pair has no batch but an error:
// [ErrLeaseLost], [ErrStopping], [ErrStalled], or [ErrHandedOff] when another worker gets the
// lease. Pull should return soon after that. The shard's next owner handles the unfinished records
// again. Batches is not for concurrent use.
func (s *Shard) Batches() iter.Seq2[*Batch, error] {
	return func(yield func(*Batch, error) bool) {
		for {
			b, err := s.pull.next()
			if err != nil {
				yield(nil, err)
			}
			if b == nil || !yield(b, nil) {
				return
			}
		}
	}
}

// Done marks everything before p as done, like [Batch.Done], for functions that do not retain
// finished batches. p must not be after the last yielded record. Done may be called concurrently.
// It returns [ErrLeaseLost] when the shard belongs to another worker now.
func (s *Shard) Done(p Position) error {
	if lost := s.term.Lost(); lost != nil {
		return lost
	}
	s.pull.mu.Lock()
	yielded := s.pull.yielded
	s.pull.mu.Unlock()
	if p.IsZero() || p.Compare(yielded) > 0 && p != s.From {
		return fmt.Errorf("weir: the position %q is not in a batch that was handed over", p)
	}
	s.term.Advance(s.pull.past(p))
	return nil
}

// puller is a handler whose calls wait for a function that requests batches. The function runs in a
// separate goroutine, which ends before Close returns.
type puller struct {
	batches chan *Batch
	asks    chan struct{} // the function has come back for the next batch
	ended   chan struct{} // closed when the term ends, with
	why     error
	done    chan struct{} // closed when the function has returned, with
	err     error

	mu      lock.Mutex[lock.Puller]
	yielded Position // after the last record that was handed over
	held    hold     // why the checkpoint stays where it is

	handed Position              // after the last record that the function got; of the shard's goroutine
	trail  atomic.Pointer[trail] // records dropped after that, or nil

	// Of the function's goroutine.
	out  bool // it has a batch
	last bool // this batch is the last one
}

// pullEnded reports that the function has returned although the term continues.
type pullEnded struct{ err error }

func (e *pullEnded) Error() string {
	if e.err == nil {
		return "weir: ShardHandlers.Pull returned before the end of the shard"
	}
	return fmt.Sprintf("weir: ShardHandlers.Pull failed: %v", e.err)
}

func (e *pullEnded) Unwrap() error { return e.err }

// errPulled says that a batch was handed over, and that its records are done when that is noted.
var errPulled = errors.New("weir: the next batch is asked for")

// startPull starts the function of a term, which is woken when it has returned.
func startPull(ctx context.Context, f func(context.Context, *Shard) error, t Term, of *group.Term) *puller {
	p := &puller{batches: make(chan *Batch), asks: make(chan struct{}), ended: make(chan struct{}), done: make(chan struct{})}
	go func() {
		p.err = errGoexit
		defer func() {
			close(p.done)
			of.Wake()
		}()
		p.err = contained("ShardHandlers.Pull", func() error { return f(ctx, &Shard{t, p, of}) })
	}()
	return p
}

// next waits for the next batch. It returns neither a batch nor an error after the last one.
func (p *puller) next() (*Batch, error) {
	if p.last {
		return nil, nil
	}
	if p.out {
		p.out = false
		select {
		case p.asks <- struct{}{}:
		case <-p.ended:
		}
	}
	select {
	case b := <-p.batches:
		p.out, p.last = true, b.End
		return b, nil
	case <-p.ended:
		return nil, p.why
	}
}

// Handle hands a batch over, and returns when the function asks for the next one or has returned.
func (p *puller) Handle(ctx context.Context, b *Batch) error {
	end := b.End // the function may change its batch
	if n := len(b.Records); n > 0 {
		at := b.Records[n-1].Position()
		p.mu.Lock()
		p.yielded = at
		p.mu.Unlock()
	}
	select {
	case p.batches <- b:
	case <-p.done:
		return &pullEnded{p.err}
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	select {
	case <-p.asks:
		return errPulled
	case <-p.done:
		if end && p.err == nil {
			return nil
		}
		return &pullEnded{p.err}
	case <-ctx.Done():
		select { // the batch is the function's until it comes back
		case <-p.asks:
		case <-p.done:
		}
		return context.Cause(ctx)
	}
}

// Close ends the iteration and waits for the function.
func (p *puller) Close(ctx context.Context, why EndReason) {
	if p.why = context.Cause(ctx); p.why == nil && why == EndStopped {
		p.why = ErrStopping
	} else if p.why == nil {
		p.why = ErrHandedOff
	}
	close(p.ended)
	<-p.done
}

// returned is the error of a function that has returned, nil while it has not.
func (p *puller) returned() error {
	select {
	case <-p.done:
		return &pullEnded{p.err}
	default:
		return nil
	}
}

// returned is the error of the term's function that pulls when it has returned, nil while it has
// not and where nothing is pulled.
func (h *handling) returned() error {
	if h == nil || h.pull == nil {
		return nil
	}
	return h.pull.returned()
}

// pulls reports whether the user's code asks for batches.
func (l *shardLoop) pulls() bool { return l.in.shards != nil && l.in.shards.Pull != nil }

// pullAgain prepares to call ShardHandlers.Pull again, from what is not done. It fails with the
// cause when the term is over or the lease is wanted back, and with the function's Stop.
func (l *shardLoop) pullAgain(err *pullEnded) error {
	if stop := ended(err); stop != nil {
		l.in.Stopping()
		return stop
	}
	if cause := context.Cause(l.term.Context()); cause != nil {
		return cause
	}
	l.stopReading()
	l.close(err)
	f := l.failsAt(l.term.At())
	f.pulls++
	attempt := f.pulls
	next := retry.Pause(l.in.opts.RetryMin, l.in.opts.RetryMax, attempt)
	l.enter(ShardRetrying, attempt, err)
	l.in.counted.handlerFailures.Add(1)
	l.tellFailure("the pulling function returned; it will get the unfinished records again", f, HandlerFailed{Err: err, Attempt: attempt, Next: next})
	return retry.Wait(l.term.Reading(), next)
}
