package s3sink

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/shard"
	"github.com/weir-go/weir/sink/s3sink/internal/bucket"
)

// writer writes the objects of one shard for one term.
type writer struct {
	sink  *Sink
	chain *chain
	from  weir.Position // position at which reading began
	at    weir.Position // end of that part of the chain whose objects exist; zero if there is none
	next  *link         // the link that begins at that position, while its object must be written
	held  held
}

// pulled is an element of weir.Puller.Batches.
type pulled struct {
	batch *weir.Batch
	err   error
}

// pull requests batches until left is closed or the last batch has arrived. If left is closed
// during a wait for a batch, the wait continues until weir ends the iteration. weir does that when
// the pulling function has returned.
func pull(s *weir.Puller, left <-chan struct{}) <-chan pulled {
	to := make(chan pulled)
	go func() {
		for b, err := range s.Batches() {
			select {
			case to <- pulled{b, err}:
			case <-left:
				return
			}
		}
	}()
	return to
}

// run writes objects until the term or the shard ends.
func (w *writer) run(ctx context.Context, s *weir.Puller) error {
	if err := w.begin(ctx, s.From); err != nil {
		return err
	}
	left := make(chan struct{})
	defer close(left)
	batches := pull(s, left)
	aged := time.NewTimer(time.Hour)
	defer aged.Stop()
	for {
		aged.Stop()
		if w.held.records > 0 {
			aged.Reset(max(0, time.Until(w.held.since.Add(w.sink.o.MaxAge))))
		}
		select {
		case p := <-batches:
			if p.err != nil {
				return w.leave(ctx, p.err)
			}
			if err := w.take(ctx, p.batch); err != nil || p.batch.End {
				return err
			}
		case <-aged.C:
			if err := w.flush(ctx); err != nil {
				return err
			}
			w.held.since = time.Now() // the remaining records
		}
	}
}

// begin finds the end of the chain.
func (w *writer) begin(ctx context.Context, from weir.Position) error {
	end, err := w.chain.end(ctx)
	if err != nil {
		return err
	}
	w.from = from
	switch {
	case end.link == nil:
	case end.written:
		w.at = end.link.To
	default:
		w.at, w.next = end.link.At, end.link
	}
	if !continues(from, w.at) {
		return moved(from, w.at)
	}
	return nil
}

// moved returns the error of a term that did not begin to read at the end of the chain. weir then
// queries the sink's position again and begins there.
func moved(from, at weir.Position) error {
	return fmt.Errorf("s3sink: reading began at %s, and the chain of objects ends at %q, because another writer has extended the chain; reading restarts at its end", from, at)
}

// take adds a batch to the held records, and writes the objects that are complete.
func (w *writer) take(ctx context.Context, b *weir.Batch) error {
	for i := range b.Records {
		r := &b.Records[i]
		at := r.Position()
		if to := w.before(r, at); !to.IsZero() {
			if err := w.write(ctx, to); err != nil {
				return err
			}
		}
		if !w.at.IsZero() && reaches(w.at, at) { // another writer has written it
			if err := b.Done(*r); err != nil {
				return err
			}
			continue
		}
		w.sink.waiting.Add(int64(w.held.add(b, i)))
		if w.full(at) {
			if err := w.write(ctx, at); err != nil {
				return err
			}
		}
	}
	if b.End {
		return w.write(ctx, shard.End)
	}
	return nil
}

// before returns the position at which an object must end before the record r is added. It returns
// zero if no object must end.
func (w *writer) before(r *weir.Record, at weir.Position) weir.Position {
	switch {
	case w.next != nil:
		if !reaches(w.next.To, at) { // the last records of the object have left the stream
			return w.next.To
		}
	case w.held.records > 0 && w.sink.o.Partition.later(w.held.first().ArrivalTime(), r.ArrivalTime()):
		if last := w.held.last().Position(); whole(last) {
			return last
		}
	}
	return weir.Position{}
}

// full reports whether the object ends with the last held record. at is the position of that
// record.
func (w *writer) full(at weir.Position) bool {
	if w.next != nil {
		return at == w.next.To
	}
	o := &w.sink.o
	crowded := w.sink.waiting.Load() >= int64(o.MaxMemory) && w.held.memory() >= o.MaxMemory/2/int(max(1, w.sink.shards.Load()))
	return whole(at) && (w.held.bytes >= o.MaxBytes || crowded)
}

// flush writes all held records that an object may contain now. If another writer has begun an
// object, flush does not shorten that object.
func (w *writer) flush(ctx context.Context) error {
	if to := w.held.lastWhole(); w.next == nil && !to.IsZero() {
		return w.write(ctx, to)
	}
	return nil
}

// leave is called at the end of the term. If the lease is handed off, all held records are written.
// If the lease is lost, ctx has ended, and they are not written.
func (w *writer) leave(ctx context.Context, why error) error {
	if ctx.Err() != nil {
		return why
	}
	return errors.Join(w.flush(ctx), why)
}

// write extends the chain to a position: after the last record of an object, or the end of the
// shard. If another writer was faster, the chain may already extend beyond that position. Another
// writer may also have begun an object with records that are not read yet. In this case write
// leaves w.next set and returns.
func (w *writer) write(ctx context.Context, to weir.Position) error {
	for w.at.Compare(to) < 0 {
		if w.next == nil {
			if err := w.claim(ctx, to); err != nil {
				return err
			}
		}
		l := w.next
		switch ahead := l.To.Compare(to) > 0; {
		case ahead:
			written, err := w.chain.written(ctx, l)
			if err != nil {
				return err
			}
			if !written {
				return nil
			}
		case l.Object != "":
			if err := w.put(ctx, l); err != nil {
				return err
			}
		}
		if err := w.settle(l.To); err != nil {
			return err
		}
	}
	return nil
}

// claim determines the link at the end of the chain. It writes the link if there is none.
func (w *writer) claim(ctx context.Context, to weir.Position) error {
	c := w.chain
	l := link{Version: version, Stream: c.stream, Shard: c.shard, At: w.at, To: to, Records: w.held.records, Written: time.Now().UTC().Truncate(time.Millisecond)}
	if w.at.IsZero() {
		l.From = w.from
	}
	if w.held.records > 0 {
		first := w.held.first()
		l.Object = c.objects + w.sink.o.Partition.folder(first.ArrivalTime()) + c.shard + "-" + first.SequenceNumber + ".ndjson"
		if !w.sink.o.Plain {
			l.Object += ".gz"
		}
	}
	there, err := c.claim(ctx, l)
	if err != nil {
		return err
	}
	if there.From != l.From { // it is unknown which records lie between
		return moved(w.from, there.To)
	}
	w.next = there
	return nil
}

// put writes the object of a link, unless another writer has written it.
func (w *writer) put(ctx context.Context, l *link) error {
	select {
	case w.sink.uploading <- struct{}{}:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	defer func() { <-w.sink.uploading }()
	of := held{parts: append([]part(nil), w.held.parts...), records: w.held.records, bytes: w.held.bytes}
	of = of.cut(l.To)
	content, err := encode(of.parts, w.sink.o.Lines, !compressed(l.Object))
	if err != nil {
		return err
	}
	_, _, err = w.chain.bucket.Put(ctx, l.Object, content, map[string]string{
		"weir-stream": l.Stream, "weir-shard": l.Shard, "weir-at": l.At.String(), "weir-to": l.To.String(), "weir-records": strconv.Itoa(of.records),
	}, bucket.Condition{New: true})
	return err
}

// settle records that the chain, with all its objects, extends to a position.
func (w *writer) settle(to weir.Position) error {
	of := w.held.cut(to)
	w.sink.waiting.Add(-int64(of.memory()))
	w.at, w.next = to, nil
	w.held.since = time.Now()
	for _, p := range of.parts {
		if err := p.batch.Done(*p.last()); err != nil {
			return err
		}
	}
	return nil
}
