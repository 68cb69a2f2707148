package weir

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/weir-go/weir/internal/group"
	"github.com/weir-go/weir/internal/history"
	"github.com/weir-go/weir/internal/streams"
)

// A run is the [group.Host] of its worker.
var _ group.Host = (*run)(nil)

// Read reads the shard of a term until the term or the shard ends.
func (r *run) Read(t *group.Term) error {
	l := r.loop(t)
	r.begin(l)
	return l.run()
}

// List lists a stream for the leader. start is set for an application that has not seen the stream.
func (r *run) List(ctx context.Context, name string, start Position) (group.Listing, error) {
	listing, err := r.catalog.List(ctx, r.streams.Stream(name), start)
	r.standing.listed(name, err, time.Now())
	if errors.Is(err, streams.ErrNoStream) {
		err = fmt.Errorf("stream %s: %w", name, errors.Join(group.ErrNoStream, err))
	}
	return group.Listing(listing), err
}

// LeaseTaken reports that a term has begun.
func (r *run) LeaseTaken(t *group.Term) {
	r.counted.leasesTaken.Add(1)
	r.sampler.Mark(t.Lease.Key, history.Began)
	r.opts.Logger.Info("lease taken", "stream", t.Lease.Stream, "shard", t.Lease.Shard, "epoch", t.Lease.Epoch, "seq", t.Lease.Position)
	emit(r, r.opts.Events.LeaseTaken, LeaseTaken{Stream: t.Lease.Stream, Shard: t.Lease.Shard, Epoch: t.Lease.Epoch, From: t.Lease.Position})
}

// LeaseEnded reports that a term has ended.
func (r *run) LeaseEnded(t *group.Term, why group.EndReason) {
	r.counted.leasesEnded.Add(1)
	r.sampler.Ended(t.Lease.Key, t.At(), why)
	if why == group.EndLost {
		r.counted.leasesLost.Add(1)
	}
	r.opts.Logger.Info("lease ended", "stream", t.Lease.Stream, "shard", t.Lease.Shard, "epoch", t.Lease.Epoch, "seq", t.At(), "reason", why.String())
	emit(r, r.opts.Events.LeaseEnded, LeaseEnded{Stream: t.Lease.Stream, Shard: t.Lease.Shard, Epoch: t.Lease.Epoch, At: t.At(), Reason: EndReason(why)})
}

// CheckpointSaved reports progress that is durable.
func (r *run) CheckpointSaved(t *group.Term, at Position, took time.Duration) {
	r.counted.checkpoints.Add(1)
	emit(r, r.opts.Events.CheckpointSaved, CheckpointSaved{Stream: t.Lease.Stream, Shard: t.Lease.Shard, Epoch: t.Lease.Epoch, At: at, Took: took})
}

// CallFailed reports a failed call of the store or of Kinesis.
func (r *run) CallFailed(op string, err error, since time.Time) {
	r.counted.storeFailures.Add(1)
	if stack := r.newStack(err); stack != "" {
		r.opts.Logger.Error("a call panicked; weir repeats the call", "op", op, "err", err, "stack", stack)
	}
	emit(r, r.opts.Events.StoreFailed, StoreFailed{Op: StoreOp(op), Err: err, Since: since})
}

// Leading reports that this worker leads, or stopped leading.
func (r *run) Leading(leads bool, term uint64) {
	if !leads {
		r.standing.listsNothing()
	}
	emit(r, r.opts.Events.Leading, Leading{Leads: leads, Term: term})
}

// SessionBegan notes which session this run has.
func (r *run) SessionBegan(session string) { r.sampler.Begin(session) }
