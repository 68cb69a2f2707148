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

	"github.com/weir-go/weir/internal/failure"
	"github.com/weir-go/weir/internal/lock"
	"github.com/weir-go/weir/internal/source"
	"github.com/weir-go/weir/shard"
)

// delivery is what weir keeps of a batch that it hands over: the records as they were read, how
// many of them are done, and what failed so far. The handler gets copies of the records, so
// whatever it does to its batch, what it is given again is whole and in order.
type delivery struct {
	// One among those of other keys is used again for other records, and keeps these.
	loop     *shardLoop
	from     *origin
	end      bool
	idle     bool           // it is a call without anything to handle
	tip      time.Time      // … and when it was seen that there is nothing
	until    time.Time      // a lease that is wanted back keeps the handler until then
	pulled   bool           // it is over for the loop before its records are done
	puller   *puller        // of the function that pulls; nil where none does
	ctx      handlerContext // of the handler's calls
	parallel *keyDelivery   // what it is among those of other keys; nil if they are handled one after the other

	attempts
	mu lock.Mutex[lock.Delivery]
	progress
	use uint64 // how often it was used before: what a Batch says of an earlier use is over
}

// attempts are how a delivery is handed over. They are of the goroutine that delivers.
type attempts struct {
	behind time.Duration
	bytes  int // of the data of all records
	calls  int // of the handler
	// of the record that was the first not done by the last call's beginning or failure
	failure.History
	gone    int       // records that were given up
	failing failing   // what is known of failures, beside others
	dying   *dying    // letters that are to be put; nil if there are none
	batch   *Batch    // for the first call
	first   []Record  // what the first call gets, if that is not a copy
	copies  *[]Record // what the handler gets where buffers are reused, and first is not there
}

// progress is how much of a delivery is done. It is read and written with its lock.
type progress struct {
	kept  kept  // empty once the delivery is over
	done  int   // of its records
	ends  []int // where the parts end that are handed over apart, the next one's last; none for all of it
	over  bool
	whole bool     // all of it is done
	upTo  Position // … which is until here
}

// delivery begins one, of a run of records that stays as it is until the delivery is closed. own
// says that the handler must not get the run itself, but a copy.
func (l *shardLoop) delivery(run []source.Record, page *source.Page, own, end bool, until time.Time) *delivery {
	l.needHandler()
	both := new(struct {
		delivery
		batch Batch
	})
	d := &both.delivery
	*d = delivery{
		loop: l, from: l.handles.from, end: end, until: until, pulled: l.pulls(),
		ctx: handlerContext{l.term.Context(), l.in.values},
	}
	d.behind, d.batch = page.Behind, &both.batch
	if d.pulled {
		if d.puller = l.handles.pull; len(run) > 0 && l.in.opts.Filter.By != nil {
			d.puller.handedOver(&run[len(run)-1])
		}
	}
	if own {
		if d.pulled { // the page may end before the records are done
			run = slices.Clone(run)
		}
		d.kept, d.bytes = keepRun(run, d.from)
	} else {
		d.kept, d.bytes = keepCopy(run, d.from)
		d.first = whole(run)
	}
	if own && l.in.opts.ReuseBuffers {
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
	errOtherShard = errors.New("weir: progress with a record that was not read from the batch's shard")
	errNotInBatch = errors.New("weir: progress with a record that is not in the batch")
	errBatchOver  = errors.New("weir: progress in a batch that is over; what is not done of it will be handled again")
)

// markDone notes that everything of the batch up to and including r is done.
func (d *delivery) markDone(b *Batch, r Record) error {
	if r.from == nil || !r.from.Same(d.from) {
		return errOtherShard
	}
	// A delivery is used for other records only when all of these are done.
	found, over, whole, done := false, true, true, 0
	held := b.end == nil || r.Position().Compare(*b.end) <= 0
	d.mu.Lock()
	if b.use == d.use && held {
		var i int
		if i, found = d.find(r); found {
			d.done = max(d.done, i+1)
		}
		// records are not kept for those who come late; what is behind the last is never theirs
		if d.whole {
			found = r.Position().Compare(d.upTo) <= 0
		}
	}
	if b.use == d.use {
		over, whole, done = d.over, d.whole, d.done
	}
	d.mu.Unlock()
	if d.parallel != nil && !over {
		d.parallel.of.noteDone(d.parallel, b.use, done)
	}
	if d.parallel != nil && over && whole {
		_, found = sort.Find(len(b.given), func(i int) int { return r.Position().Compare(b.given[i].Position()) })
	}
	lost := d.loop.term.Lost()
	switch {
	case whole && found:
		return nil
	case lost != nil:
		return lost
	case over && !whole:
		return errBatchOver
	case over || !found:
		return errNotInBatch
	case d.pulled:
		d.loop.term.Advance(d.puller.past(r.Position()))
	}
	return nil
}

// find returns the index of r. It is called with the lock held.
func (d *delivery) find(r Record) (int, bool) {
	at := func(i int) int {
		of := &d.kept.records[i]
		return cmp.Or(shard.CompareSequence(r.SequenceNumber, of.SequenceNumber), cmp.Compare(r.done, of.Done))
	}
	// nearly always: records are done one after the other
	if d.done < len(d.kept.records) && at(d.done) == 0 {
		return d.done, true
	}
	return sort.Find(len(d.kept.records), at)
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
	r := &d.kept.records[d.done-1]
	return positionAfter(r.SequenceNumber, r.Done)
}

// partDone reports whether all is done that the last call was about.
func (d *delivery) partDone() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.done >= d.limit() && !(d.end && d.limit() == len(d.kept.records)) && !d.idle
}

// left is how many records are not done.
func (d *delivery) left() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.kept.records) - d.done
}

// rest is how many records are not done, and the names of the first and the last of them.
func (d *delivery) rest() (n int, first, last string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	rest := d.kept.records[d.done:]
	if len(rest) == 0 {
		return 0, "", ""
	}
	of := func(r *source.Record) string { return positionAfter(r.SequenceNumber, r.Done).String() }
	return len(rest), of(&rest[0]), of(&rest[len(rest)-1])
}

// finish notes that all of it is done, and returns the position after it.
func (d *delivery) finish() Position {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.done, d.whole = len(d.kept.records), true
	d.upTo = d.mark()
	return d.upTo
}

// complete notes that all is done, and lets go of the records.
func (d *delivery) complete() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.done, d.whole, d.over, d.first = len(d.kept.records), true, true, nil
	d.kept.release()
}

// close lets go of the records, which the page may need again.
func (d *delivery) close() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.over, d.first = true, nil
	d.kept.release()
	if d.copies != nil && !d.loop.in.poison { // in that mode a handler that keeps records must see nonsense
		emptied(d.copies)
		copiesPool.Put(d.copies)
		d.copies = nil // they belong to another delivery now
	}
}

// limit is where the next call's records end. It is called with the lock held.
func (d *delivery) limit() int {
	if n := len(d.ends); n > 0 {
		return d.ends[n-1]
	}
	return len(d.kept.records)
}

// halve has what the last call failed at, up to until, handed over in two parts.
func (d *delivery) halve(until int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.ends = append(d.ends, d.Head+(until-d.Head+1)/2)
}

// advance notes that what the last call was about is done, and reports whether that is all.
func (d *delivery) advance() (all bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.ends) == 0 {
		return true
	}
	d.done = max(d.done, d.limit())
	d.Forget() // a failure when all of the part was done says nothing of what follows
	return false
}

// next returns the batch for the next call: what is not done, or a part of it. It is nil when all
// is done, which goroutines that an earlier call left behind may have seen to.
func (d *delivery) next() *Batch {
	d.mu.Lock()
	defer d.mu.Unlock()
	for len(d.ends) > 0 && d.limit() <= d.done {
		d.ends = d.ends[:len(d.ends)-1]
	}
	if d.done == len(d.kept.records) && !d.end && !d.idle {
		return nil
	}
	if d.loop.in.opts.Filter.By != nil {
		d.cutFailed()
	}
	d.Reach(d.done)
	d.calls++
	b := d.batch
	if d.calls > 1 {
		b = new(Batch) // the handler may have kept the one before
	}
	*b = Batch{
		Stream: d.from.Stream, Shard: d.from.Shard, Epoch: d.loop.term.Lease.Epoch, Behind: d.behind, End: d.end && d.limit() == len(d.kept.records),
		Idle: d.idle, Tip: d.tip, Attempt: d.Attempts + 1, FirstFailure: d.First, delivery: d, use: d.use,
	}
	switch rest := d.limit() - d.done; {
	case d.calls == 1 && d.first != nil:
		b.Records = d.first[d.done:d.limit():d.limit()] // some may have been given up before it
	case d.copies != nil:
		*d.copies = d.kept.handler((*d.copies)[:0], d.done, d.limit())
		b.Records = (*d.copies)[:rest:rest]
	case rest > 0:
		b.Records = d.kept.handler(nil, d.done, d.limit())
	}
	if d.parallel != nil {
		b.given = b.Records
	}
	if limit := d.limit(); limit < len(d.kept.records) {
		last := &d.kept.records[limit-1]
		end := positionAfter(last.SequenceNumber, last.Done)
		b.end = &end
	}
	return b
}

// noteFailure notes that a call failed; named says that it did at the first record that is not
// done.
func (d *delivery) noteFailure(err error, named bool) {
	d.mu.Lock()
	done, limit := d.done, d.limit()
	d.mu.Unlock()
	d.Note(err, done, named || limit-done == 1, time.Now())
}

// enter notes what is done with it.
func (d *delivery) enter(state ShardState, attempt int, err error) {
	switch b := d.parallel; {
	case b == nil:
		d.loop.enter(state, attempt, err)
	case state != ShardHandling || err != nil || b.err != nil: // else it is noted already
		b.of.entered(b, state, attempt, err)
	}
}

// fingerprint is of everything that a handler must not write to. Only tests with WEIR_POISON ask.
func (d *delivery) fingerprint(seed maphash.Seed) uint64 {
	var h maphash.Hash
	h.SetSeed(seed)
	for i := range len(d.kept.records) {
		_, _ = h.Write(d.kept.records[i].Data)
	}
	return h.Sum64()
}

// call calls the handler. Where WEIR_POISON is set it ends Run when the handler has written into
// Data.
func (d *delivery) call(b *Batch) error {
	if passes, err := d.passesNow(b); !passes {
		return err
	}
	if !d.loop.in.poison {
		return call(&d.ctx, d.loop.handles, b)
	}
	seed := maphash.MakeSeed()
	before := d.fingerprint(seed)
	err := call(&d.ctx, d.loop.handles, b)
	if d.fingerprint(seed) != before {
		return Stop(fmt.Errorf("weir: the handler wrote into the Data of a record of %s/%s, which is read-only", d.from.Stream, d.from.Shard))
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
