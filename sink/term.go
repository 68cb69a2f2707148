package sink

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/event"
	"github.com/weir-go/weir/shard"
)

// markEvery is the time between two moves of the position of a shard with partitions.
const markEvery = time.Second

// term handles a shard for one term.
type term[T any] struct {
	*Sink[T]
	weir.Term
	apply Func[T]
	of    Key  // of the row of the shard
	owned bool // the row of the shard has the epoch of this owner, see claim

	mu      sync.Mutex            // guards the fields below; partitions are handled at the same time
	known   map[Key]weir.Position // the last known positions of rows that this term writes
	old     earlier               // positions of earlier partitions
	marking bool                  // a goroutine moves the position of the shard
	marked  time.Time             // when that was last done
}

// open returns the handler for a term.
func (s *Sink[T]) open(ctx context.Context, t weir.Term, apply Func[T]) (weir.ShardHandler, error) {
	of := Key{Stream: t.Stream, Shard: t.Shard}
	is, err := s.firstRow(ctx, of, t)
	if err != nil {
		return nil, err
	}
	made := &term[T]{Sink: s, Term: t, apply: apply, of: of, known: map[Key]weir.Position{of: is.At}}
	if s.parts > 0 || is.Split {
		return made, made.claim(ctx)
	}
	return made, nil
}

// firstRow returns the row of a shard at the beginning of a term. If the shard has no row, firstRow
// makes one, because a transaction can lock only an existing row. The new row contains the position
// at which the term begins. If the database is later restored to this state, the shard is read
// again from there.
func (s *Sink[T]) firstRow(ctx context.Context, of Key, t weir.Term) (Row, error) {
	rows, err := s.rows.Read(ctx, t.Stream, t.Shard)
	is, there := rows[of]
	if err == nil && !there {
		from := t.From
		if kind := from.Kind(); kind == shard.Tip || kind == shard.Finished {
			from = weir.Position{}
		}
		if err := s.rows.Make(ctx, of, Row{At: from}); err != nil {
			return Row{}, err
		}
		rows, err = s.rows.Read(ctx, t.Stream, t.Shard)
		is, there = rows[of]
	}
	switch {
	case err != nil:
		return Row{}, err
	case !there:
		return Row{}, fmt.Errorf("sink: the row of %s was removed while it was created", of)
	case is.Epoch > t.Epoch:
		return Row{}, s.counted(fenced(is.Epoch, t.Epoch))
	case !is.Ended && !is.At.IsZero() && is.At.Compare(t.From) < 0:
		// The row was set back after weir read it. weir reads it again before it opens the handler
		// again.
		return Row{}, fmt.Errorf("sink: %s is read from %s on, but the database is at %s", of, t.From, is.At)
	}
	return is, nil
}

// claim writes the epoch of this owner to the row of the shard. From then on, earlier owners make
// no rows of partitions. Then claim writes the epoch to the rows of earlier partitions, so that
// earlier owners cannot move them, and stores their positions in t.old.
func (t *term[T]) claim(ctx context.Context) error {
	of, _ := t.at(t.of)
	err := t.rows.Update(ctx, t.of, func(was Row, found bool) (*Row, error) {
		if err := check(t.of, was, found, of, t.Epoch); err != nil {
			return nil, t.counted(err)
		}
		was.Epoch, was.Split = t.Epoch, was.Split || t.parts > 0
		return &was, nil
	}, nil)
	if err != nil {
		return ending(err)
	}
	rows, err := t.rows.Read(ctx, t.Stream, t.Shard)
	if err != nil {
		return err
	}
	known := map[Key]weir.Position{}
	for k, is := range rows {
		if k.Of == t.parts || k == t.of {
			known[k] = is.At
		}
	}
	old, err := t.earlierOf(ctx, rows, t.key(0), t.Epoch)
	if err != nil {
		return err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.known, t.old, t.owned = known, old, true
	return nil
}

// earlierOf returns the positions of the rows whose number of partitions is not that of k. It
// writes the epoch of this owner to these rows, so that no earlier owner moves them.
func (s *Sink[T]) earlierOf(ctx context.Context, rows map[Key]Row, k Key, epoch uint64) (old earlier, err error) {
	for _, other := range slices.SortedFunc(maps.Keys(rows), Key.compare) {
		is := rows[other]
		if other.Of == k.Of || other.Of == 0 {
			continue
		}
		at := is.At
		if is.Epoch != epoch { // else an earlier attempt has written it
			if at, err = s.lasts(ctx, other, at, epoch); err != nil {
				return nil, err
			}
		}
		old = old.add(other, at)
	}
	return old, nil
}

// lasts writes the epoch of this owner to the row of a partition, and returns the position of the
// row. The lock of the row makes it wait for a transaction that is under way, such as a COMMIT
// whose answer was lost. After that, no earlier owner moves the row. seen is the position that the
// row had before.
func (s *Sink[T]) lasts(ctx context.Context, k Key, seen weir.Position, epoch uint64) (at weir.Position, err error) {
	err = s.rows.Update(ctx, k, func(was Row, found bool) (*Row, error) {
		if err := check(k, was, found, seen, epoch); err != nil {
			return nil, s.counted(err)
		}
		at = was.At
		return &Row{Epoch: epoch, At: at}, nil
	}, nil)
	return at, ending(err)
}

// ending wraps [ErrSetBack] with [weir.Stop], because a retry cannot fix it.
func ending(err error) error {
	if errors.Is(err, ErrSetBack) {
		return weir.Stop(err)
	}
	return err
}

// Close does nothing: a term holds no resources.
func (t *term[T]) Close(context.Context, event.EndReason) {}

// Handle applies a batch. If the error names a record with [weir.FailedAt], weir counts the records
// before that record as done, but their effects were rolled back. Handle therefore applies these
// records in a separate transaction. It does the same after a panic with such an error. A number of
// records in [weir.RejectOld] counts the records that the function got, which may lack some of b.
func (t *term[T]) Handle(ctx context.Context, b *weir.Batch) (err error) {
	defer func() {
		p := recover()
		if p == nil {
			return
		}
		if of, ok := p.(error); ok {
			if instead := t.settle(ctx, b, of); instead != nil {
				err = instead
				return
			}
		}
		panic(p) //nolint:forbidigo // it is the user's, and weir reports it
	}()
	if err = t.try(ctx, b); err == nil {
		return nil
	}
	if instead := t.settle(ctx, b, err); instead != nil {
		return instead
	}
	return err
}

// settle applies the records before the one that err names. It returns nil if weir may get err, and
// otherwise the error that weir gets instead.
func (t *term[T]) settle(ctx context.Context, b *weir.Batch, err error) (instead error) {
	at, named := weir.FailedRecord(err)
	if !named {
		return nil
	}
	place := slices.IndexFunc(b.Records, func(r weir.Record) bool { return r.Position() == at.Position() })
	if place < 0 {
		return unnamed{err} // if the record is from another batch, weir would count all records before it as done
	}
	if place > 0 {
		before := *b
		before.Records, before.End = b.Records[:place:place], false
		if instead = t.Handle(ctx, &before); instead != nil {
			return instead
		}
	}
	if n := t.countTodo(b.Records[place:]); n < weir.RejectedOld(err) {
		return weir.RejectOld(at, n, err)
	}
	return nil
}

// countTodo returns the number of records before the first record that an earlier partition has
// stored. That record must not be dead-lettered together with them.
func (t *term[T]) countTodo(records []weir.Record) int {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := slices.IndexFunc(records, func(r weir.Record) bool { return t.old.has(r.PartitionKey, r.Position()) })
	if n < 0 {
		return len(records)
	}
	return n
}

// unnamed wraps an error without the record that it names.
type unnamed struct{ err error }

func (e unnamed) Error() string        { return e.err.Error() }
func (e unnamed) Is(target error) bool { return errors.Is(e.err, target) }
func (e unnamed) As(target any) bool   { return errors.As(e.err, target) }

// errUnclaimed is the error of a transaction that found that the shard has partitions.
var errUnclaimed = errors.New("sink: an earlier owner has made partitions of the shard")

// try applies a batch.
func (t *term[T]) try(ctx context.Context, b *weir.Batch) error {
	if t.parts > 0 {
		return t.tryPartition(ctx, b)
	}
	err := t.transact(ctx, b)
	if errors.Is(err, errUnclaimed) {
		if err := t.claim(ctx); err != nil {
			return err
		}
		err = t.transact(ctx, b)
	}
	return err
}

// tryPartition applies the records of a partition, and then the end of the shard.
func (t *term[T]) tryPartition(ctx context.Context, b *weir.Batch) error {
	if n := len(b.Records); n > 0 {
		covered, err := t.makeRow(ctx, b.Partition, b.Records[n-1].Position())
		switch {
		case err != nil:
			return ending(err)
		case covered:
			t.skipped.Add(uint64(n))
		default:
			some := *b
			some.End = false
			if err := t.transact(ctx, &some); err != nil {
				return err
			}
		}
	}
	if b.End {
		return t.finish(ctx, b)
	}
	return ending(t.mark(ctx, b.DoneBefore))
}

// key returns the key of the row that a batch moves.
func (t *term[T]) key(partition int) Key {
	k := t.of
	k.Partition, k.Of = partition, t.parts
	return k
}

// at returns the last known position of a row, and whether it is known.
func (t *term[T]) at(k Key) (weir.Position, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	at, ok := t.known[k]
	return at, ok
}

// note stores the position of a row.
func (t *term[T]) note(k Key, at weir.Position) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.known[k] = at
}

// makeRow makes the row of a partition for records up to last, unless this term knows the row. It
// reports whether the position of the shard covers the records.
func (t *term[T]) makeRow(ctx context.Context, partition int, last weir.Position) (covered bool, err error) {
	k := t.key(partition)
	if _, ok := t.at(k); ok {
		return false, nil
	}
	of, _ := t.at(t.of)
	covered, err = t.makePartition(ctx, k, t.Epoch, of, last)
	if err == nil && !covered {
		t.note(k, weir.Position{}) // an earlier attempt may have made the row, at an earlier position
	}
	return covered, err
}

// transact applies a batch in the transaction that moves its row.
func (t *term[T]) transact(ctx context.Context, b *weir.Batch) error {
	k := t.key(b.Partition)
	known, _ := t.at(k)
	t.mu.Lock()
	old, owned, of := t.old, t.owned, t.known[t.of]
	t.mu.Unlock()
	var (
		did  verdict
		gone bool
	)
	err := t.rows.Update(ctx, k, func(was Row, found bool) (_ *Row, err error) {
		err = check(k, was, found, known, b.Epoch)
		switch gone = !found; {
		case err != nil:
			return nil, err
		case was.Split && !owned:
			return nil, errUnclaimed
		}
		known = was.At
		was.At = later(was.At, of) // the effects of all partitions are stored up to the shard's position
		if did, err = judge(k, was, old, b); err != nil || did.none {
			return nil, err
		}
		known = did.next.At
		return &did.next, nil
	}, func(ctx context.Context, tx T) error {
		if did.prunes {
			if err := t.rows.Prune(ctx, tx, t.Stream, t.Shard, 0); err != nil {
				return err
			}
		}
		if len(did.todo) == 0 && !did.ends {
			return nil
		}
		// Pass a batch without b's progress, because a rollback would not undo that progress.
		return t.apply(ctx, tx, &weir.Batch{
			Stream: b.Stream, Shard: b.Shard, Epoch: b.Epoch, Records: did.todo, Partition: b.Partition, DoneBefore: b.DoneBefore,
			Behind: b.Behind, End: did.ends, Attempt: b.Attempt, FirstFailure: b.FirstFailure,
		})
	})
	if gone {
		ended := false
		if ended, err = t.whyGone(ctx, b, err); ended {
			t.skipped.Add(uint64(len(b.Records)))
			return nil
		}
	}
	if err != nil {
		return ending(t.counted(err))
	}
	t.note(k, known)
	t.skipped.Add(uint64(len(b.Records) - len(did.todo)))
	if did.prunes {
		t.forget()
	}
	if !did.none {
		t.batches.Add(1)
		t.records.Add(uint64(len(did.todo)))
	}
	return nil
}

// forget forgets the positions of earlier partitions, whose rows are removed.
func (t *term[T]) forget() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.old = nil
}

// whyGone returns the error for a missing row. It reads the row of the shard to find the reason: a
// later owner may have removed the rows of partitions that it does not need any more. ended means
// that this owner has removed the row with the end of the shard, in a transaction with an unknown
// result. The records of b have then taken effect.
func (t *term[T]) whyGone(ctx context.Context, b *weir.Batch, gone error) (ended bool, err error) {
	rows, err := t.rows.Read(ctx, t.Stream, t.Shard)
	if err != nil {
		return false, err
	}
	is, n := rows[t.of], len(b.Records)
	switch {
	case is.Epoch > t.Epoch:
		return false, fenced(is.Epoch, t.Epoch)
	case is.Epoch == t.Epoch && is.Ended && t.parts > 0 && n > 0 && b.Records[n-1].Position().Compare(is.At) <= 0:
		return true, nil
	}
	return false, gone
}

// mark moves the position of the shard to a position before which all records are done in all
// partitions. It does so at most once in markEvery, and one goroutine at a time.
func (t *term[T]) mark(ctx context.Context, upTo weir.Position) error {
	t.mu.Lock()
	known, old := t.known[t.of], t.old
	if t.marking || upTo.Compare(known) <= 0 || time.Since(t.marked) < markEvery {
		t.mu.Unlock()
		return nil
	}
	t.marking = true
	t.mu.Unlock()

	prunes := false
	err := t.rows.Update(ctx, t.of, func(was Row, found bool) (*Row, error) {
		covered, err := checkSplit(t.of, was, found, known, t.Epoch, upTo)
		if err != nil {
			return nil, t.counted(err)
		}
		if known = was.At; covered {
			return nil, nil
		}
		var next Row
		next, prunes = judgeMark(was, old, t.Epoch, upTo)
		known = next.At
		return &next, nil
	}, func(ctx context.Context, tx T) error {
		if !prunes {
			return nil
		}
		return t.rows.Prune(ctx, tx, t.Stream, t.Shard, t.parts)
	})

	t.mu.Lock()
	defer t.mu.Unlock()
	t.marking, t.marked = false, time.Now()
	if err != nil {
		return err
	}
	t.known[t.of] = known
	if prunes {
		t.old = nil
	}
	return nil
}

// finish applies the last batch of a shard whose partitions are all done. The row of the shard then
// contains the position after the last record, and the rows of partitions are removed.
func (t *term[T]) finish(ctx context.Context, b *weir.Batch) error {
	rows, err := t.rows.Read(ctx, t.Stream, t.Shard)
	if err != nil {
		return err
	}
	t.mu.Lock()
	known, last := t.known[t.of], t.old.last()
	t.mu.Unlock()
	// A row can have more than this term knows: the answer of its COMMIT may have been lost, and
	// the record may have become a dead letter after that.
	for _, k := range slices.SortedFunc(maps.Keys(rows), Key.compare) {
		if k.Of != t.parts {
			continue
		}
		at, err := t.lasts(ctx, k, rows[k].At, t.Epoch)
		if err != nil {
			return err
		}
		last = later(last, at)
	}
	done := false
	err = t.rows.Update(ctx, t.of, func(was Row, found bool) (*Row, error) {
		err := check(t.of, was, found, known, t.Epoch)
		if done = was.Ended; err != nil || done && !was.Split {
			return nil, t.counted(err)
		}
		return &Row{Epoch: t.Epoch, At: later(was.At, last), Ended: true}, nil
	}, func(ctx context.Context, tx T) error {
		if err := t.rows.Prune(ctx, tx, t.Stream, t.Shard, 0); err != nil || done {
			return err
		}
		return t.apply(ctx, tx, &weir.Batch{
			Stream: b.Stream, Shard: b.Shard, Epoch: b.Epoch, Behind: b.Behind, End: true, Attempt: b.Attempt, FirstFailure: b.FirstFailure,
		})
	})
	if err != nil {
		return ending(err)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.known, t.old = map[Key]weir.Position{t.of: later(known, last)}, nil
	if !done {
		t.batches.Add(1)
	}
	return nil
}
