package sink

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/deadletter"
	"github.com/weir-go/weir/shard"
)

// Letters returns a destination for [weir.FailurePolicy].Destination. It stores dead letters in the
// destination to, and then moves the position past their records. Without Letters, the next owner
// of a shard handles a dead-lettered record again if no later record is done.
//
// A record whose effects are stored gets no dead letter, and Put then returns a
// [*deadletter.LeftOutError], so that weir counts the record as handled. weir cannot know of the
// effects if the answer of a COMMIT was lost, or if a function fails with several records of which
// some took effect before. A record with the reason [deadletter.Killed] gets its dead letter in any
// case: weir remembers that record, and does not hand it over again if the database is restored to
// a state without the effects.
func (s *Sink[T]) Letters(to deadletter.Destination) deadletter.Destination {
	var known durable
	return deadletter.Func(func(ctx context.Context, letters []deadletter.Letter) (err error) {
		if to == nil {
			return errors.New("sink: the destination passed to Letters is nil")
		}
		defer func() {
			if _, ok := deadletter.LeftOut(err); ok || ctx.Err() != nil || errors.Is(err, ErrFenced) {
				known.set(letters, false) // this call is not repeated
			}
		}()
		put, left, err := s.withoutEffects(ctx, letters)
		if err != nil {
			return err
		}
		var out deadletter.LeftOutError
		n := 0
		for _, l := range letters { // put has some of them, in the same order
			switch {
			case n < len(put) && put[n].ID == l.ID:
				n++
			case !known.has(l):
				out.IDs = append(out.IDs, l.ID)
			}
		}
		if len(put) > 0 {
			err := to.Put(ctx, put)
			more, ok := deadletter.LeftOut(err)
			if !ok {
				return err
			}
			out.IDs = append(out.IDs, more...)
			known.set(put, len(more) == 0)
		}
		for i, l := range left {
			if i < len(left)-1 && s.keyOf(l) == s.keyOf(left[i+1]) {
				continue // the later one moves the position past both
			}
			if err := s.pass(ctx, l); err != nil {
				return err
			}
		}
		if len(out.IDs) > 0 {
			return &out
		}
		return nil
	})
}

// durable are letters that were put in calls of Put which failed later. A repeated call must not
// mistake their records for records with effects, because the position may have moved past them.
type durable struct {
	mu  sync.Mutex
	ids map[attempt]bool
}

// attempt identifies a letter. A later letter of the same record has another one.
type attempt struct {
	id      string
	epoch   uint64
	givenUp int64
}

func attemptOf(l deadletter.Letter) attempt { return attempt{l.ID, l.Epoch, l.GivenUp.UnixNano()} }

func (d *durable) has(l deadletter.Letter) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.ids[attemptOf(l)]
}

// set adds letters or removes them.
func (d *durable) set(letters []deadletter.Letter, put bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.ids == nil {
		d.ids = map[attempt]bool{}
	}
	for _, l := range letters {
		if put {
			d.ids[attemptOf(l)] = true
		} else {
			delete(d.ids, attemptOf(l))
		}
	}
}

// keyOf returns the key of the row for the record of a letter.
func (s *Sink[T]) keyOf(l deadletter.Letter) Key {
	return Key{l.Stream, l.Shard, shard.Partition(l.PartitionKey, s.parts), s.parts}
}

// positionOf returns the position of the record of a letter.
func positionOf(l deadletter.Letter) (weir.Position, error) {
	at, err := shard.Parse(l.Position)
	if err == nil && at.Kind() != shard.Sequence {
		err = errors.New("it is not a position of a record")
	}
	if err != nil {
		return at, fmt.Errorf("sink: the position of the dead letter %s: %w", l.ID, err)
	}
	return at, nil
}

// withoutEffects returns the letters to store in put, and in left the letters whose records have no
// effect in the database. It writes the epoch of the letters to their rows, so that no earlier
// owner can store these effects later.
func (s *Sink[T]) withoutEffects(ctx context.Context, letters []deadletter.Letter) (put, left []deadletter.Letter, err error) {
	for len(letters) > 0 {
		k, n := s.keyOf(letters[0]), 1
		for n < len(letters) && s.keyOf(letters[n]) == k {
			n++
		}
		last, err := positionOf(letters[n-1])
		if err != nil {
			return nil, nil, err
		}
		at, old, err := s.hold(ctx, k, letters[0].Epoch, last)
		if err != nil {
			return nil, nil, err
		}
		for _, l := range letters[:n] {
			record, err := positionOf(l)
			if err != nil {
				return nil, nil, err
			}
			has := record.Compare(at) <= 0 || old.has(l.PartitionKey, record)
			if !has {
				left = append(left, l)
			}
			if !has || l.Reason == deadletter.Killed {
				put = append(put, l)
			}
		}
		letters = letters[n:]
	}
	return put, left, nil
}

// hold writes the epoch of an owner to a row. It returns the position before which the effects of
// the row's records are stored, and the positions of earlier partitions. If a partition has no row,
// hold makes one for records up to last.
func (s *Sink[T]) hold(ctx context.Context, k Key, epoch uint64, last weir.Position) (at weir.Position, old earlier, err error) {
	missing := false
	lock := func() error {
		return s.rows.Update(ctx, k, func(was Row, found bool) (*Row, error) {
			missing, at = !found, was.At
			if err := check(k, was, found, weir.Position{}, epoch); err != nil {
				return nil, s.counted(err)
			}
			was.Epoch = epoch
			return &was, nil
		}, nil)
	}
	if err = lock(); missing && k.Of > 0 {
		var covered bool
		if covered, err = s.makePartition(ctx, k, epoch, weir.Position{}, last); err == nil && !covered {
			err = lock()
		}
	}
	if err != nil {
		return at, nil, err
	}
	rows, err := s.rows.Read(ctx, k.Stream, k.Shard)
	if err != nil {
		return at, nil, err
	}
	old, err = s.earlierOf(ctx, rows, k, epoch)
	return later(at, rows[Key{Stream: k.Stream, Shard: k.Shard}].At), old, err
}

// pass moves a row past the record of a letter. All earlier records of the row have taken effect or
// were dead-lettered. The row exists, see hold.
func (s *Sink[T]) pass(ctx context.Context, l deadletter.Letter) error {
	at, err := positionOf(l)
	if err != nil {
		return err
	}
	k := s.keyOf(l)
	return s.rows.Update(ctx, k, func(was Row, found bool) (*Row, error) {
		if err := check(k, was, found, weir.Position{}, l.Epoch); err != nil {
			return nil, s.counted(err)
		}
		if at.Compare(was.At) <= 0 {
			return nil, nil
		}
		return &Row{Epoch: l.Epoch, At: at, Split: was.Split}, nil
	}, nil)
}
