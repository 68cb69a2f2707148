package weir

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"slices"
	"sort"
	"sync"
	"time"

	"github.com/weir-go/weir/internal/source"
	"github.com/weir-go/weir/shard"
)

// delivery is what weir keeps of a batch that it hands over: the records as they were read, how many
// of them are done, and what failed so far. The handler gets copies of the records, so whatever it
// does to its batch, what it is given again is whole and in order.
type delivery struct {
	loop   *shardLoop
	from   *origin
	behind time.Duration
	end    bool
	pulled bool           // it is over for the loop before its records are done
	ctx    handlerContext // of the handler's calls

	// Of the goroutine that delivers.
	calls   int       // of the handler
	attempt int       // calls that failed at the first record that is not done
	failed  time.Time // the first of them
	last    error     // … and the error of the last
	batch   Batch     // for the first call
	copies  *[]Record // what the handler got, where buffers are reused

	mu      sync.Mutex
	records []source.Record // nil once the delivery is over
	done    int             // of records
	over    bool
	whole   bool // all of it is done
}

// delivery begins one, of a run of records that stays as it is until the delivery is closed.
func (l *shardLoop) delivery(run []source.Record, behind time.Duration, end bool) *delivery {
	if l.handles == nil {
		l.handles = &handling{everyShards{l.in.handler}, &origin{l.term.Lease.Stream, l.term.Lease.Shard}, l.term.Lease.Position}
	}
	pulled := l.pulls()
	if pulled && !l.in.opts.ReuseBuffers {
		run = slices.Clone(run) // the page may end before the records are done
	}
	d := &delivery{
		loop: l, from: l.handles.from, behind: behind, end: end, records: run, pulled: pulled,
		ctx: handlerContext{l.term.Context(), l.in.values},
	}
	if l.in.opts.ReuseBuffers {
		d.copies = copiesPool.Get().(*[]Record)
	}
	return d
}

// copiesPool has slices of records for handlers that keep none.
var copiesPool = sync.Pool{New: func() any { return new([]Record) }}

var (
	errOtherShard = errors.New("weir: progress with a record that was not read from the batch's shard")
	errNotInBatch = errors.New("weir: progress with a record that is not in the batch")
)

// markDone notes that everything up to and including r is done.
func (d *delivery) markDone(r Record) error {
	if r.from == nil || *r.from != *d.from {
		return errOtherShard
	}
	d.mu.Lock()
	i, found := d.find(r)
	if found {
		d.done = max(d.done, i+1)
	}
	over, whole := d.over, d.whole
	d.mu.Unlock()
	cause := d.loop.term.Cause()
	switch {
	case whole:
		return nil
	case cause != nil && !errors.Is(cause, ErrStopping) && !errors.Is(cause, ErrStalled): // what is done until then is saved if it can be
		return ErrLeaseLost
	case over || !found:
		return errNotInBatch
	case d.pulled:
		d.loop.term.Advance(r.Position())
	}
	return nil
}

// find returns the index of r. It is called with the lock held.
func (d *delivery) find(r Record) (int, bool) {
	at := func(i int) int {
		return cmp.Or(shard.CompareSequence(r.SequenceNumber, d.records[i].SequenceNumber), cmp.Compare(r.done, d.records[i].Done))
	}
	if d.done < len(d.records) && at(d.done) == 0 { // nearly always: records are done one after the other
		return d.done, true
	}
	return sort.Find(len(d.records), at)
}

// Mark is the position after the last record that is done, zero when none is. It is the term's
// [group.Mark] while the handler is at work.
func (d *delivery) Mark() Position {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.mark()
}

// mark is Mark with the lock held.
func (d *delivery) mark() Position {
	if d.done == 0 || d.over {
		return Position{}
	}
	r := &d.records[d.done-1]
	return positionAfter(r.SequenceNumber, r.Done)
}

// left is how many records are not done.
func (d *delivery) left() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.records) - d.done
}

// finish notes that all of it is done, and returns the position after it.
func (d *delivery) finish() Position {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.done, d.whole = len(d.records), true
	return d.mark()
}

// close lets go of the records, which the page may need again.
func (d *delivery) close() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.over, d.records = true, nil
	if d.copies != nil && !d.loop.in.poison { // else whoever keeps them would not see nonsense
		copiesPool.Put(d.copies)
	}
}

// next returns the batch for the next call: what is not done.
func (d *delivery) next() *Batch {
	d.mu.Lock()
	rest := d.records[d.done:]
	d.mu.Unlock()
	b := &d.batch
	if d.calls > 1 {
		b = new(Batch) // the handler may have kept the one before
	}
	*b = Batch{
		Stream: d.from.stream, Shard: d.from.shard, Epoch: d.loop.term.Lease.Epoch, Behind: d.behind, End: d.end,
		Attempt: d.attempt + 1, FirstFailure: d.failed, delivery: d,
	}
	if d.copies != nil {
		*d.copies = appendRecords((*d.copies)[:0], rest, d.from)
		b.Records = (*d.copies)[:len(rest):len(rest)]
	} else if len(rest) > 0 {
		b.Records = appendRecords(nil, rest, d.from)
	}
	return b
}

// failedAfter notes that a call failed that began when so many records were done. Attempts belong to
// the record that is at the head: one that was not at the head before has failed once now.
func (d *delivery) failedAfter(done int, err error) {
	if d.progress() > done {
		d.attempt, d.failed = 0, time.Time{}
	}
	d.attempt++
	if d.last = err; d.failed.IsZero() {
		d.failed = time.Now()
	}
}

// progress is how many records are done.
func (d *delivery) progress() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.done
}

// wantedBack reports whether the lease is to go to another worker.
func (d *delivery) wantedBack() bool { return d.loop.term.Reading().Err() != nil }

// bytes is the size of the data of all records.
func (d *delivery) bytes() (n int) {
	for i := range d.records {
		n += len(d.records[i].Data)
	}
	return n
}

// fingerprint is of everything that a handler must not write to. Only tests with WEIR_POISON ask.
func (d *delivery) fingerprint(seed maphash.Seed) uint64 {
	var h maphash.Hash
	h.SetSeed(seed)
	for i := range d.records {
		_, _ = h.Write(d.records[i].Data)
	}
	return h.Sum64()
}

// call calls the handler with what is not done. Where WEIR_POISON is set it ends Run when the handler
// has written into Data.
func (d *delivery) call() error {
	d.calls++
	b := d.next()
	if !d.loop.in.poison {
		return call(&d.ctx, d.loop.handles, b)
	}
	seed := maphash.MakeSeed()
	before := d.fingerprint(seed)
	err := call(&d.ctx, d.loop.handles, b)
	if d.fingerprint(seed) != before {
		return Stop(fmt.Errorf("weir: the handler wrote into the Data of a record of %s/%s, which is read-only", d.from.stream, d.from.shard))
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
