package weir

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"slices"
	"sort"
	"sync"
	"time"

	"github.com/weir-go/weir/internal/delivery"
	"github.com/weir-go/weir/internal/failure"
	"github.com/weir-go/weir/internal/keyed"
	"github.com/weir-go/weir/internal/source"
	"github.com/weir-go/weir/internal/supervise"
)

// handover is a batch that is with the user's code. The handler gets copies of the records, so a
// retry has all of them in order, even if the handler changed its batch.
type handover struct {
	// Handlers that kept an old batch may read the first fields at any time, so they never change.
	loop   *shardLoop
	ctx    handlerContext // of the handler's calls
	key    *keyed.Call    // the call of one key; nil if batches are handled one after the other
	puller *puller        // of the function that pulls; nil if none does
	pulled bool           // the batch is over for the loop before its records are done
	until  time.Time      // a lease that is wanted back keeps the handler until then
	*delivery.Delivery
	calling
}

// calling is the state of the calls of one batch. It belongs to the goroutine that hands the batch
// over.
type calling struct {
	failing failing   // the state of failures, read by other goroutines
	dying   *dying    // letters to put, or nil
	batch   *Batch    // for the first call
	first   []Record  // the records of the first call, if not a copy
	copies  *[]Record // the handler's records with reused buffers, if first is nil
}

// handover begins one, of a run of records that stays as it is until the handover is closed. own
// says that the handler must not get the run itself, but a copy.
func (l *shardLoop) handover(run []source.Record, own bool, b delivery.Batch, until time.Time) *handover {
	l.needHandler()
	both := new(struct {
		handover
		delivery delivery.Delivery
		batch    Batch
	})
	d := &both.handover
	both.delivery.From = l.handles.from
	*d = handover{
		loop: l, ctx: handlerContext{l.term.Context(), l.in.values}, pulled: l.pulls(), until: until,
		Delivery: &both.delivery, calling: calling{batch: &both.batch},
	}
	if d.pulled {
		if d.puller = l.handles.pull; len(run) > 0 && l.in.opts.Filter.By != nil {
			d.puller.handedOver(&run[len(run)-1])
		}
	}
	if !own {
		d.first = whole(run)
		d.Begin(b, delivery.Copy(run, d.From))
		return d
	}
	if d.pulled { // the page may end before the records are done
		run = slices.Clone(run)
	}
	d.Begin(b, delivery.Keep(run, d.From))
	if l.in.opts.ReuseBuffers {
		d.copies = copiesPool.Get().(*[]Record)
	}
	return d
}

// needHandler makes the handler of all shards this one's, unless it has one.
func (l *shardLoop) needHandler() {
	if l.handles == nil {
		l.handledBy(&handling{
			ShardHandler: everyShards{l.in.handler}, start: l.term.Lease.Position,
			from: &origin{Stream: l.term.Lease.Stream, Shard: l.term.Lease.Shard},
		})
	}
}

// handledBy notes the handler, nil for none.
func (l *shardLoop) handledBy(h *handling) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.handles = h
}

// copiesPool has slices of records for handlers that keep none.
var copiesPool = sync.Pool{New: func() any { return new([]Record) }}

var (
	errOtherShard = errors.New("weir: the record was not read from the batch's shard")
	errNotInBatch = errors.New("weir: the record is not in the batch")
	errBatchOver  = errors.New("weir: the batch is over; its records that are not done will be handled again")
)

// markDone notes that everything of the batch up to and including r is done.
func (d *handover) markDone(b *Batch, r Record) error {
	if r.from == nil || !r.from.Same(d.From) {
		return errOtherShard
	}
	noted := d.MarkDone(b.use, r.SequenceNumber, r.done, b.end)
	if d.key != nil && !noted.Over {
		d.key.NoteDone(b.use, noted.Done)
	}
	if d.key != nil && noted.Over && noted.Whole {
		_, noted.Found = sort.Find(len(b.given), func(i int) int { return r.Position().Compare(b.given[i].Position()) })
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
	case d.pulled:
		d.loop.term.Advance(d.puller.past(r.Position()))
	}
	return nil
}

// complete notes that all is done, and drops the records.
func (d *handover) complete() {
	d.first = nil
	d.Complete()
}

// close drops the records: the memory of their page may be needed again.
func (d *handover) close() {
	d.first = nil
	d.Close()
	if d.copies != nil && !d.loop.in.poison { // in that mode a handler that keeps records must see nonsense
		clear(*d.copies) // they would keep a page in memory
		*d.copies = (*d.copies)[:0]
		copiesPool.Put(d.copies)
		d.copies = nil // they belong to another handover now
	}
}

// next returns the batch for the next call: the records that are not done, or a part of them. It is
// nil when all are done.
func (d *handover) next() *Batch {
	p, some := d.Next(d.loop.in.opts.Filter.By != nil)
	if !some {
		return nil
	}
	b := d.batch
	if d.Calls > 1 {
		b = new(Batch) // the handler may have kept the one before
	}
	*b = Batch{
		Stream: d.From.Stream, Shard: d.From.Shard, Epoch: d.loop.term.Lease.Epoch, Behind: d.Behind, End: p.End,
		Idle: d.Idle, Tip: d.Tip, Attempt: d.Attempts + 1, FirstFailure: d.First, delivery: d, use: p.Use,
	}
	switch n := len(p.Records); {
	case d.Calls == 1 && d.first != nil:
		b.Records = d.first[p.From : p.From+n : p.From+n] // records before it may have been given up
	case d.copies != nil:
		*d.copies = append((*d.copies)[:0], whole(p.Records)...)
		b.Records = (*d.copies)[:n:n]
	case n > 0:
		b.Records = slices.Clone(whole(p.Records))
	}
	if d.key != nil {
		b.given = b.Records
	}
	if !p.UpTo.IsZero() {
		end := p.UpTo
		b.end = &end
	}
	return b
}

// where notes that all records before the first one that an error of the handler names are done.
// The error that it returns says so if the record was not in the call, or was done.
func (d *handover) where(err error) (failure.Blame, error) {
	if err == nil {
		return failure.Blame{}, nil
	}
	all := allBlamed(nil, err, false)
	if len(all) == 0 {
		return failure.Blame{Rejected: errors.As(err, new(*rejectError))}, err
	}
	named := make([]delivery.Named, len(all))
	for i, r := range all {
		named[i] = delivery.Named{
			SequenceNumber: r.SequenceNumber, Done: r.done, Elsewhere: r.from == nil || !r.from.Same(d.From), Rejected: r.rejected, Untried: r.untried,
		}
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

// enter notes what is done with it.
func (d *handover) enter(state ShardState, attempt int, err error) {
	if d.key != nil {
		d.key.Enter(supervise.State(state), attempt, err)
	} else {
		d.loop.enter(state, attempt, err)
	}
}

// call calls the handler. Where WEIR_POISON is set it ends Run when the handler has written into
// Data.
func (d *handover) call(b *Batch) error {
	if passes, err := d.passesNow(b); !passes {
		return err
	}
	if !d.loop.in.poison {
		return call(&d.ctx, d.loop.handles, b)
	}
	seed := maphash.MakeSeed()
	before := d.Fingerprint(seed)
	err := call(&d.ctx, d.loop.handles, b)
	if d.Fingerprint(seed) != before {
		return Stop(fmt.Errorf("weir: the handler wrote into the Data of a record of %s/%s, which is read-only", d.From.Stream, d.From.Shard))
	}
	return err
}

// handlerContext is the context of a term with the values of Run's context.
type handlerContext struct {
	context.Context
	values context.Context
}

// Value looks at the term's context first, which is where the cause of its end is found.
func (c *handlerContext) Value(key any) any {
	if v := c.Context.Value(key); v != nil {
		return v
	}
	return c.values.Value(key)
}
