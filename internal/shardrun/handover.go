package shardrun

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"slices"
	"time"

	"github.com/weir-go/weir/health"
	"github.com/weir-go/weir/internal/delivery"
	"github.com/weir-go/weir/internal/failure"
	"github.com/weir-go/weir/internal/keyed"
	"github.com/weir-go/weir/internal/pull"
	"github.com/weir-go/weir/internal/source"
	"github.com/weir-go/weir/shard"
)

// Handover hands a batch to the user's code until all of it is done. The handler and the delivery
// have separate slices of records, so each retry has all of them in order, even if the handler
// changed its batch.
//
// One goroutine hands the batch over. Any goroutine may call the exported methods at any time, also
// after the batch is over.
type Handover struct {
	*delivery.Delivery
	Code Code // what the user's code sees of it

	// Handlers that kept an old batch may read these fields at any time, so they never change.
	loop  *Loop
	ctx   handlerContext // of the handler's calls
	key   *keyed.Call    // the call of one key; nil if batches are handled one after the other
	pull  *pull.Progress // of the function that pulls; nil if none does
	until time.Time      // a lease that is wanted back keeps the handler until then
	calling
}

// calling is the state of the calls for one batch. Only the goroutine that hands the batch over
// uses it.
type calling struct {
	failing failing // with keys in parallel: the state of failures
	dying   *dying  // dead letters to put, or nil
}

// newHandover begins the handover of a run of records. own is set if the memory of run is used
// again, so that the handler must get a copy. Otherwise the handler gets the run itself, and the
// delivery has a copy.
func newHandover(l *Loop, run []source.Record, own bool, b delivery.Batch, until time.Time) *Handover {
	l.needSession()
	d := l.session.handler.Hand(nil)
	d.From = l.session.from
	d.loop, d.ctx, d.pull, d.until = l, handlerContext{l.term.Context(), l.in.Values}, l.session.pulling(), until
	if d.pull != nil && len(run) > 0 && l.in.Drops() {
		d.pull.HandedOver(&run[len(run)-1])
	}
	if !own {
		d.Code.First(run)
		d.Begin(b, delivery.Copy(run, d.From))
		return d
	}
	if l.in.Pulls { // the page may end before the records are done
		run = slices.Clone(run)
	}
	d.Begin(b, delivery.Keep(run, d.From))
	if l.in.Reuse {
		d.Code.Reuse()
	}
	return d
}

// Epoch returns the epoch of the lease.
func (d *Handover) Epoch() uint64 { return d.loop.term.Lease.Epoch }

// Context returns the context of the handler's calls.
func (d *Handover) Context() context.Context { return &d.ctx }

// IsKeyed reports whether all records of the batch have one key, and batches of other keys are
// handled at the same time.
func (d *Handover) IsKeyed() bool { return d.key != nil }

// Partition returns the partition of the records of a call, and the position before which all
// records of the shard are done, if that is known. Both are zero without partitions. In a trial, a
// call has a single record and no key.
func (d *Handover) Partition(p delivery.Part) (of int, doneBefore Position) {
	n := d.loop.in.Partitions
	if n == 0 || len(p.Records) == 0 {
		return 0, Position{}
	}
	if d.key != nil {
		doneBefore = d.key.Runner().DoneBefore()
	}
	return shard.Partition(p.Records[0].Key, n), doneBefore
}

// WantedBack reports whether the handler should stop after the record at hand, because another
// worker is to get the lease.
func (d *Handover) WantedBack() bool { return d.loop.wantedBack(d.until) }

// Poison reports whether the memory of handled records is overwritten, to reveal handlers that keep
// records too long.
func (d *Handover) Poison() bool { return d.loop.in.Poison }

var (
	errNotInBatch = errors.New("weir: the record is not in the batch")
	errBatchOver  = errors.New("weir: the batch is over; its records that are not done will be handled again")
)

// NoteDone notes that everything up to and including a record is done. use identifies the use of
// the delivery in which the record was handed over. end is the position after the record's part of
// the batch, or nil for the last part. given are the records of a call with one key, because the
// delivery may have dropped them.
func (d *Handover) NoteDone(use uint64, r *source.Record, end *Position, given []source.Record) error {
	noted := d.MarkDone(use, r.SequenceNumber, r.Done, end)
	if d.key != nil && !noted.Over {
		d.key.NoteDone(use, noted.Done)
	}
	if d.key != nil && noted.Over && noted.Whole {
		_, noted.Found = slices.BinarySearchFunc(given, r.After(), func(of source.Record, at Position) int { return of.After().Compare(at) })
	}
	lost := d.loop.term.Lost()
	switch {
	case noted.Whole && noted.Found:
		return nil
	case lost != nil:
		return lost
	case noted.Over && !noted.Whole:
		return errBatchOver
	case noted.Over || !noted.Found:
		return errNotInBatch
	case d.pull != nil:
		d.loop.term.Advance(d.pull.Past(r.After()))
	}
	return nil
}

// Save waits until the progress up to a position is durable. NoteDone must have noted that progress
// before.
func (d *Handover) Save(ctx context.Context, use uint64, at Position) error {
	if d.key != nil {
		return d.key.Runner().Save(ctx, d.key, use, at, d.loop.term.AwaitSaved)
	}
	return d.loop.term.Save(ctx, at)
}

// complete marks all records as done, and drops them.
func (d *Handover) complete() {
	d.Code.Forget()
	d.Complete()
}

// close drops the records, so that the memory of their page can be used again.
func (d *Handover) close() {
	d.Code.Forget()
	d.Close()
	d.Code.Release()
}

// enter sets the state of the batch's key, or of the shard if batches are handled one after the
// other.
func (d *Handover) enter(state health.Reason, attempt int, err error) {
	if d.key != nil {
		d.key.Enter(state, attempt, err)
	} else {
		d.loop.enter(state, attempt, err)
	}
}

var (
	errNamedOther = errors.New("weir: FailedAt named a record that is not in the batch")
	errNamedDone  = errors.New("weir: FailedAt named a record that Batch.Done had marked as done; it stays done, and the failure counts for no record")
)

// where finds the record that an error of the handler names, and marks the records before it as
// done. If the record was not in the call, or was already done, the returned error says that too.
func (d *Handover) where(err error) (failure.Blame, error) {
	if err == nil {
		return failure.Blame{}, nil
	}
	named, rejected := d.Code.Blame(err)
	if len(named) == 0 {
		return failure.Blame{Rejected: rejected}, err
	}
	of, placed := d.Blame(named)
	switch placed {
	case failure.NamedOther:
		err = fmt.Errorf("%w: %w", errNamedOther, err)
	case failure.NamedDone:
		err = fmt.Errorf("%w: %w", errNamedDone, err)
	}
	return of, err
}

// call calls the handler with a part of the records. A record at which the filter failed is a part
// by itself. For such a part, call first calls the filter again, and the handler gets the record
// only if the record passes. With Config.Poison, call ends Run if the handler has written into
// Data.
func (d *Handover) call(p delivery.Part) error {
	if len(p.Records) == 1 && p.Records[0].Failed {
		if passes, err := (filter{d.loop}).again(&p.Records[0]); !passes {
			return err
		}
	}
	if !d.loop.in.Poison {
		return d.Code.Call(p)
	}
	seed := maphash.MakeSeed()
	before := d.Fingerprint(seed)
	err := d.Code.Call(p)
	if d.Fingerprint(seed) != before {
		return &StopError{fmt.Errorf("weir: the handler wrote into the Data of a record of %s/%s, which is read-only", d.From.Stream, d.From.Shard)}
	}
	return err
}
