package sink

import (
	"fmt"
	"slices"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/shard"
)

// This file contains the decisions. They are pure functions.

// earlier contains the positions of earlier partitions: those of owners that divided the keys of
// the shard into another number of partitions. No owner moves these positions any more.
type earlier []division

// division contains the positions of earlier partitions for one number of partitions, len(at). A
// partition without a row has the zero position.
type division struct{ at []weir.Position }

// add adds the position of a partition.
func (e earlier) add(k Key, at weir.Position) earlier {
	i := slices.IndexFunc(e, func(d division) bool { return len(d.at) == k.Of })
	if i < 0 {
		i = len(e)
		e = append(e, division{make([]weir.Position, k.Of)})
	}
	e[i].at[k.Partition] = at
	return e
}

// has reports whether the effects of a record are stored according to one of the positions. key is
// the record's partition key, and at is its position.
func (e earlier) has(key string, at weir.Position) bool {
	for _, d := range e {
		if at.Compare(d.at[shard.Partition(key, len(d.at))]) <= 0 {
			return true
		}
	}
	return false
}

// last returns the last of the positions, or zero if e is empty.
func (e earlier) last() (last weir.Position) {
	for _, d := range e {
		for _, at := range d.at {
			last = later(last, at)
		}
	}
	return last
}

func later(a, b weir.Position) weir.Position {
	if a.Compare(b) > 0 {
		return a
	}
	return b
}

// check returns an error if an owner must not write a row. was is the current row; it is valid only
// if found is true. known is the position of the row when this term last read it.
func check(k Key, was Row, found bool, known weir.Position, epoch uint64) error {
	switch {
	case !found:
		return fmt.Errorf("%w: the row of %s, which was at %q, is gone", ErrSetBack, k, known)
	case was.Epoch > epoch:
		return fenced(was.Epoch, epoch)
	case was.At.Compare(known) < 0:
		return fmt.Errorf("%w: the row of %s is at %q, and was at %q", ErrSetBack, k, was.At, known)
	}
	return nil
}

// checkSplit works like check, for the row of a shard whose partitions this owner handles. covered
// means that the row covers the records up to last. The shard may then have no partitions any more,
// because this owner may have stored the end in a transaction with an unknown result.
func checkSplit(k Key, was Row, found bool, known weir.Position, epoch uint64, last weir.Position) (covered bool, err error) {
	err = check(k, was, found, known, epoch)
	covered = err == nil && last.Compare(was.At) <= 0
	if err == nil && !covered && !was.Split {
		err = fmt.Errorf("%w: according to the row of %s, the shard has no partitions any more", ErrSetBack, k)
	}
	return covered, err
}

// verdict is the decision about a batch.
type verdict struct {
	todo []weir.Record // copies of the records that have not taken effect
	next Row           // the row after the batch
	ends bool          // the end of the shard takes effect
	none bool          // there is nothing to do
	// prunes means that the rows of earlier partitions are not needed any more.
	prunes bool
}

// judge decides about a batch that moves a row. was is the row, which the owner may write. old are
// the positions of earlier partitions.
func judge(k Key, was Row, old earlier, b *weir.Batch) (verdict, error) {
	v := verdict{next: Row{Epoch: b.Epoch, At: was.At, Ended: b.End || was.Ended, Split: was.Split}}
	for i := range b.Records {
		r := &b.Records[i]
		at := r.Position()
		if at.IsZero() {
			return verdict{}, fmt.Errorf("sink: a record has the invalid sequence number %.40q", r.SequenceNumber)
		}
		if at.Compare(was.At) <= 0 {
			continue
		}
		v.next.At, v.next.Ended = at, b.End
		if old.has(r.PartitionKey, at) {
			continue
		}
		if v.todo == nil {
			v.todo = make([]weir.Record, 0, len(b.Records)-i)
		}
		v.todo = append(v.todo, *r)
	}
	if k.Of == 0 && was.Split && (b.End || v.next.At.Compare(old.last()) >= 0) {
		// The rows that go may have effects of records after those that the shard's row covers.
		v.next.Split, v.next.At, v.prunes = false, later(v.next.At, old.last()), true
	}
	v.ends = v.next.Ended && (!was.Ended || len(v.todo) > 0)
	v.none = len(v.todo) == 0 && !v.ends && !v.prunes
	return v, nil
}

// judgeMark decides about the row of a shard when all records before mark are done in all
// partitions. It returns the row after that, and whether the rows of earlier partitions are not
// needed any more.
func judgeMark(was Row, old earlier, epoch uint64, mark weir.Position) (next Row, prunes bool) {
	next = Row{Epoch: epoch, At: later(was.At, mark), Split: true}
	return next, len(old) > 0 && next.At.Compare(old.last()) >= 0
}

// fenced returns the error of an owner whose shard has a later owner.
func fenced(theirs, own uint64) error {
	return fmt.Errorf("%w: the epoch of the row is %d, and the epoch of this owner is %d (if there is no later owner, because leases were deleted or lost and epochs started again, "+
		"call ResetEpochs once)", ErrFenced, theirs, own)
}
