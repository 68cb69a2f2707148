package weir

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/weir-go/weir/event"
	"github.com/weir-go/weir/internal/delivery"
	"github.com/weir-go/weir/internal/pull"
	"github.com/weir-go/weir/internal/shardrun"
	"github.com/weir-go/weir/internal/source"
)

// shardHandler is the user's handler of one shard, as the engine sees it.
type shardHandler struct {
	*adapter
	handle func(ctx context.Context, b *Batch) error
	close  func(ctx context.Context, why event.EndReason) // nil for a handler that all shards share
	pull   *pull.Puller[*Batch]                           // nil unless a function pulls

	// Blocks of memory for batches of one key, which the handler may keep.
	batches []Batch
	records []Record // with spare capacity
	made    int      // batches, the last time
}

// Pulling implements [shardrun.Handler].
func (h *shardHandler) Pulling() *pull.Progress {
	if h.pull == nil {
		return nil
	}
	return h.pull.Progress
}

// Close implements [shardrun.Handler].
func (h *shardHandler) Close(ctx context.Context, why event.EndReason) error {
	if h.close == nil {
		return nil
	}
	return contained("ShardHandler.Close", func() error {
		h.close(ctx, why)
		return nil
	})
}

// Hand implements [shardrun.Handler]. If of is nil, it allocates the handover, the delivery and the
// batch in one piece.
func (h *shardHandler) Hand(of *delivery.Delivery) *shardrun.Handover {
	if of != nil {
		d := &handed{of: h}
		d.Delivery, d.Code = of, d
		return &d.Handover
	}
	all := new(struct {
		handed
		delivery delivery.Delivery
		batch    Batch
	})
	d := &all.handed
	d.of, d.batch = h, &all.batch
	d.Delivery, d.Code = &all.delivery, d
	return &d.Handover
}

// handed is a batch that the user's code handles. It contains the engine's handover, and the batch
// and the records that the user's code gets.
type handed struct {
	shardrun.Handover
	of *shardHandler // never changes

	// Only the goroutine that hands the batch over uses the following fields.
	batch  *Batch    // for the first call
	first  []Record  // the records of the first call, if not a copy
	copies *[]Record // the handler's records with reused buffers, if first is nil
}

// copiesPool contains slices for reuse. Only handlers that do not keep records get them.
var copiesPool = sync.Pool{New: func() any { return new([]Record) }}

// First implements [shardrun.Code].
func (d *handed) First(run []source.Record) { d.first = whole(run) }

// Reuse implements [shardrun.Code].
func (d *handed) Reuse() { d.copies = copiesPool.Get().(*[]Record) }

// Keyed implements [shardrun.Code]. It allocates memory in blocks.
func (d *handed) Keyed(run []source.Record) {
	h := d.of
	if len(h.batches) == 0 {
		h.made = min(max(2*h.made, 8), 128)
		h.batches = make([]Batch, h.made)
	}
	if cap(h.records)-len(h.records) < len(run) {
		h.records = make([]Record, 0, max(len(run), 2*h.made))
	}
	from := len(h.records)
	h.records = append(h.records, whole(run)...)
	d.batch, d.first = &h.batches[0], h.records[from:len(h.records):len(h.records)]
	d.copies = nil
	h.batches = h.batches[1:]
}

// Forget implements [shardrun.Code].
func (d *handed) Forget() { d.first = nil }

// Release implements [shardrun.Code]. With WEIR_POISON=1, a handler that keeps records must see
// nonsense, so the slice of records is not reused.
func (d *handed) Release() { d.release(d.Poison()) }

func (d *handed) release(poison bool) {
	if d.copies == nil || poison {
		return
	}
	clear(*d.copies) // they would keep a page in memory
	*d.copies = (*d.copies)[:0]
	copiesPool.Put(d.copies)
	d.copies = nil // they belong to another batch now
}

// Call implements [shardrun.Code].
func (d *handed) Call(p delivery.Part) error {
	b := d.next(p)
	return contained("the handler", func() error { return d.of.handle(d.Context(), b) })
}

// next returns the batch for the handler's next call, which gets the records of p.
func (d *handed) next(p delivery.Part) *Batch {
	b := d.batch
	if d.Calls > 1 {
		b = new(Batch) // the handler may have kept the one before
	}
	*b = Batch{
		Stream: d.From.Stream, Shard: d.From.Shard, Epoch: d.Epoch(), Behind: d.Behind, End: p.End,
		Idle: d.Idle, Tip: d.Tip, Attempt: d.Attempts + 1, FirstFailure: d.History.First, delivery: d, use: p.Use,
	}
	b.Partition, b.DoneBefore = d.Partition(p)
	switch n := len(p.Records); {
	case d.Calls == 1 && d.first != nil:
		b.Records = d.first[p.From : p.From+n : p.From+n] // records before it may have been dead-lettered
	case d.copies != nil:
		*d.copies = append((*d.copies)[:0], whole(p.Records)...)
		b.Records = (*d.copies)[:n:n]
	case n > 0:
		b.Records = slices.Clone(whole(p.Records))
	}
	if d.IsKeyed() {
		b.given = asRead(b.Records)
	}
	if !p.UpTo.IsZero() {
		end := p.UpTo
		b.end = &end
	}
	return b
}

// Blame implements [shardrun.Code].
func (d *handed) Blame(err error) ([]delivery.Named, bool) {
	all := allBlamed(nil, err, false)
	if len(all) == 0 {
		return nil, errors.As(err, new(*rejectError))
	}
	named := make([]delivery.Named, len(all))
	for i, r := range all {
		named[i] = delivery.Named{
			SequenceNumber: r.SequenceNumber, Done: r.done, Elsewhere: r.from == nil || !r.from.Same(d.From), Rejected: r.rejected, Untried: r.untried,
		}
	}
	return named, false
}

var errOtherShard = errors.New("weir: the record was not read from the batch's shard")

// markDone notes that everything of the batch up to and including r is done.
func (d *handed) markDone(b *Batch, r Record) error {
	if r.from == nil || !r.from.Same(d.From) {
		return errOtherShard
	}
	return d.NoteDone(b.use, asSource(&r), b.end, b.given)
}
