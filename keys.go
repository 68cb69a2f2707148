package weir

import (
	"cmp"
	"slices"
	"time"

	"github.com/weir-go/weir/internal/batch"
	"github.com/weir-go/weir/internal/delivery"
	"github.com/weir-go/weir/internal/keyed"
	"github.com/weir-go/weir/internal/source"
	"github.com/weir-go/weir/lease"
)

// How the loop handles keys in parallel, with a [keyed.Runner].

// keyHost calls the handler for the runner of a shard.
type keyHost struct {
	*shardLoop
	batches []Batch  // that were not used yet, for the handler
	records []Record // with spare capacity
	made    int      // batches, the last time
}

// newRunner makes a runner for a shard that has something to handle.
func (l *shardLoop) newRunner() *keyed.Runner {
	l.needHandler()
	o := &l.in.opts
	r := keyed.New(keyed.Config{
		Host: &keyHost{shardLoop: l}, Keys: o.Parallel.Keys, Records: o.Batch, Bytes: o.BatchBytes,
		Limits: keyed.Limits{Records: o.Parallel.Span, Bytes: o.Parallel.SpanBytes, Age: o.Parallel.SpanAge},
		Slots:  l.in.slots, Budget: l.in.budget, From: l.handles.from, Goexit: Stop(errGoexit),
	})
	l.mu.Lock()
	l.runner = r
	l.mu.Unlock()
	l.term.SetMark(r)
	return r
}

// runnerNow returns the runner, or nil, for other goroutines than the loop's.
func (l *shardLoop) runnerNow() *keyed.Runner {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.runner
}

// Begin prepares a batch and copies of records for a handler that may keep them. It allocates their
// memory in blocks.
func (h *keyHost) Begin(c *keyed.Call, read []source.Record) {
	d, _ := c.Of.(*handover)
	if d == nil {
		d = &handover{loop: h.shardLoop, key: c, ctx: handlerContext{h.term.Context(), h.in.values}, Delivery: &c.Delivery}
		c.Of = d
	}
	if len(h.batches) == 0 {
		h.made = min(max(2*h.made, 8), 128)
		h.batches = make([]Batch, h.made)
	}
	if cap(h.records)-len(h.records) < len(read) {
		h.records = make([]Record, 0, max(len(read), 2*h.made))
	}
	from := len(h.records)
	h.records = append(h.records, whole(read)...)
	d.calling = calling{batch: &h.batches[0], first: h.records[from:len(h.records):len(h.records)]}
	h.batches = h.batches[1:]
}

// Step calls the handler.
func (h *keyHost) Step(c *keyed.Call, now time.Time) keyed.Step {
	after, pause, over, err := h.step(c.Of.(*handover), now)
	return keyed.Step{After: after, Pause: pause, Over: over, Ends: err != nil, Stop: ended(err)}
}

// Fail ends Run.
func (h *keyHost) Fail(err error) { h.term.Fail(err) }

// takeKeys adds a page to what is handled in parallel, and reports whether the shard has ended:
// then all of it is handled. It fails when the term is over or the lease is wanted back, and when
// the handler ends Run.
func (l *shardLoop) takeKeys(page source.Page) (over bool, err error) {
	defer page.Release() // added records hold their own share of the memory
	l.tellRead(&page)
	if end, some := l.noteArrival(&page); some {
		if err := l.addKeys(&page, end); err != nil {
			return false, err
		}
	}
	if !page.End {
		l.noteHandled(0, time.Now())
		return false, nil
	}
	if r := l.runner; r != nil {
		drained, err := r.Drained(l.term.Reading())
		if drained {
			err = l.endRunner(r)
		} else {
			err = cmp.Or(err, errForHeir)
		}
		if err != nil {
			return false, err
		}
	}
	if err := l.deliver(l.handover(nil, false, delivery.Batch{Behind: page.Behind, End: true}, time.Time{})); err != nil {
		return false, err
	}
	l.enter(ShardEnding, 0, nil)
	return true, l.term.Finish(l.term.Context(), page.Children)
}

// addKeys adds the records of a page up to end, in parts that leave room for others. The last part
// reaches past what is dropped.
func (l *shardLoop) addKeys(page *source.Page, end Position) error {
	r := l.runner
	if r == nil {
		r = l.newRunner()
	}
	unpack := l.unpacker()
	defer unpack.Release()
	defer l.tellFiltered(unpack.Filter)
	again := unpack.Unpacks(page) // the memory of runs is used again
	page.Keep()
	if known := l.known(); known != nil {
		known.Page(time.Now())
	}
	size := min(l.in.opts.Parallel.Span/8, 1000)
	added := false
	for run, isLast := range unpack.Runs(page, batch.Size{Records: size}) {
		if again {
			run = slices.Clone(run)
			unpack.Filter.Detach(run)
		}
		bytes, upTo := delivery.Mark(run, l.handles.from), Position{}
		for i := range run {
			bytes += len(run[i].Key)
		}
		if isLast {
			upTo, added = end, true
		}
		if fits, err := r.Fits(l.term.Reading(), len(run), bytes); !fits {
			return cmp.Or(err, errForHeir)
		}
		l.in.counted.recordsSkipped.Add(uint64(r.Add(run, bytes, page.Behind, upTo, l.known())))
	}
	if !added {
		r.Pass(end)
	}
	l.tellUnpacked(unpack)
	return nil
}

// leaveRunner drops the runner when there is nothing to handle, so that an idle shard has none. It
// reports whether the loop may park; then a runner that is left wakes it when all is done.
func (l *shardLoop) leaveRunner() (parks bool, err error) {
	r := l.runner
	if r == nil {
		return true, nil
	}
	done, stops := r.Park()
	if done || stops {
		err = l.endRunner(r)
	}
	return err == nil && !stops, err
}

// endRunner begins nothing new, waits for the running calls, and gives the term the final progress.
// It returns the error with which the handler ends Run.
func (l *shardLoop) endRunner(r *keyed.Runner) error {
	err := r.End()
	l.term.SetMark(nil)
	note := lease.Deaths{At: l.term.At(), Since: l.term.Lease.Epoch}
	note.Beyond = r.Close(l.mode(), note.RoomBeyond())
	l.noteBeyond(note)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.runner = nil
	return err
}

// lookAtKeys is how what is handled in parallel stands.
func (l *shardLoop) lookAtKeys() (look keyed.Look) {
	if r := l.runnerNow(); r != nil {
		look = r.Look()
	}
	return look
}

// With keys in parallel records are done beyond the checkpoint. A term that ends in order saves
// that with the lease, so that the next owner does not handle them again. It is saved like the
// notes on deaths, under the same condition: it counts only at the position that it names. It names
// the epoch, too, so that it does not count after the position was moved, even to the same place,
// or away and back.

// noteBeyond saves which records beyond the checkpoint are done.
func (l *shardLoop) noteBeyond(d lease.Deaths) {
	// While deaths are counted these records are not trusted, and a filter that changes in between
	// would count other records.
	if l.in.opts.Filter.By == nil && d.Beyond != "" && !d.At.IsZero() && l.term.Deaths().Count == 0 {
		l.term.NoteSoon(d)
	}
}

// known returns which of the next records the previous owner has done.
func (l *shardLoop) known() *keyed.Known {
	h := l.handles
	if h.known == nil {
		h.known = new(keyed.Known)
		if d := l.term.Deaths(); l.in.opts.Filter.By == nil && d.Beyond != "" && d.Count == 0 {
			*h.known = keyed.ParseBeyond(d.Beyond, l.mode())
		}
	}
	if h.known.Over() {
		return nil
	}
	return h.known
}

// mode stands for what is made of aggregates, which decides which records there are.
func (l *shardLoop) mode() byte { return byte(l.in.opts.Aggregates) }
