package sqlsink

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/event"
	"github.com/weir-go/weir/shard"
)

// endWithin is the time limit of COMMIT and ROLLBACK. The end of the handler's context does not
// interrupt them, because the answer is important.
const endWithin = 10 * time.Second

// term handles a shard for one term.
type term struct {
	*Sink
	weir.Term
	apply Func
	known weir.Position // the last known position of the row in this term
}

// open returns the handler for a term. If the shard has no row, it creates one, because a
// transaction can lock only an existing row. The new row contains the position at which the term
// begins. If the database is later restored to this state, the shard is read again from there.
func (s *Sink) open(ctx context.Context, t weir.Term, apply Func) (weir.ShardHandler, error) {
	is, there, err := s.read(ctx, s.db, t.Stream, t.Shard, "")
	if err == nil && !there {
		from := t.From.String()
		if kind := t.From.Kind(); kind == shard.Tip || kind == shard.Finished {
			from = ""
		}
		if _, err := s.change(ctx, "making the row of a shard", "INSERT INTO {table} (app, stream, shard, epoch, position, ended, updated) VALUES (?, ?, ?, 0, ?, 0, "+
			s.dialect.now+")"+s.dialect.insert, s.o.App, t.Stream, t.Shard, from); err != nil {
			return nil, err
		}
		is, there, err = s.read(ctx, s.db, t.Stream, t.Shard, "")
	}
	switch {
	case err != nil:
		return nil, err
	case !there:
		return nil, fmt.Errorf("sqlsink: the row of %s/%s was removed while it was created", t.Stream, t.Shard)
	case is.epoch > t.Epoch:
		s.fenced.Add(1)
		return nil, fenced(is.epoch, t.Epoch)
	case !is.ended && !is.at.IsZero() && is.at.Compare(t.From) < 0:
		// The row was set back after weir read it. weir reads it again before it opens the handler
		// again.
		return nil, fmt.Errorf("sqlsink: %s/%s is read from %s on, but the database is at %s", t.Stream, t.Shard, t.From, is.at)
	}
	return &term{Sink: s, Term: t, apply: apply, known: is.at}, nil
}

// Close does nothing: a term holds no resources.
func (t *term) Close(context.Context, event.EndReason) {}

// Handle applies a batch. If the error names a record with [weir.FailedAt], weir counts the records
// before that record as done, but their effects were rolled back. Handle therefore applies these
// records in a separate transaction.
func (t *term) Handle(ctx context.Context, b *weir.Batch) error {
	err := t.try(ctx, b)
	at, named := weir.FailedRecord(err)
	if !named {
		return err
	}
	place := slices.IndexFunc(b.Records, func(r weir.Record) bool { return r.Position() == at.Position() })
	if place < 0 {
		return unnamed{err} // if the record is from another batch, weir would count all records before it as done
	}
	if place == 0 {
		return err
	}
	before := *b
	before.Records, before.End = b.Records[:place:place], false
	if failed := t.Handle(ctx, &before); failed != nil {
		return failed
	}
	return err
}

// unnamed wraps an error and hides from weir which record it names.
type unnamed struct{ err error }

func (e unnamed) Error() string        { return e.err.Error() }
func (e unnamed) Is(target error) bool { return errors.Is(e.err, target) }
func (e unnamed) As(target any) bool   { return errors.As(e.err, target) }

// try applies a batch in one transaction.
func (t *term) try(ctx context.Context, b *weir.Batch) (err error) {
	var did verdict
	at, err := t.transact(ctx, b.Stream, b.Shard, func(tx *sql.Tx, was row, found bool) (row, error) {
		if did, err = judge(was, found, t.known, b); err != nil || did.none {
			return was, err
		}
		if err := t.move(ctx, tx, b.Stream, b.Shard, did.next); err != nil {
			return was, err
		}
		// Pass a batch without b's progress, because a rollback would not undo that progress. Copy
		// the slice, because weir may need the original again.
		own := weir.Batch{
			Stream: b.Stream, Shard: b.Shard, Epoch: b.Epoch, Records: slices.Clone(did.todo), Behind: b.Behind, End: b.End, Attempt: b.Attempt, FirstFailure: b.FirstFailure,
		}
		return did.next, t.apply(ctx, tx, &own)
	})
	switch {
	case errors.Is(err, ErrFenced):
		t.fenced.Add(1)
	case errors.Is(err, ErrSetBack), errors.Is(err, ErrTxEnded):
		return weir.Stop(err) // a retry cannot fix it
	}
	if err != nil {
		return err
	}
	t.known = at.at
	t.skipped.Add(uint64(len(b.Records) - len(did.todo)))
	if !did.none {
		t.batches.Add(1)
		t.records.Add(uint64(len(did.todo)))
	}
	return nil
}

// transact runs do in a transaction that has locked the row of a shard, and returns the new row. It
// commits unless do fails or returns the row unchanged.
func (s *Sink) transact(ctx context.Context, stream, id string, do func(tx *sql.Tx, was row, found bool) (row, error)) (row, error) {
	if err := s.takeTurn(ctx); err != nil {
		return row{}, err
	}
	defer s.endTurn()
	// The end of ctx ends the transaction, but does not interrupt its COMMIT or ROLLBACK.
	own, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	release := context.AfterFunc(ctx, cancel)
	defer release()
	tx, was, found, err := s.lock(ctx, own, stream, id)
	if err != nil {
		return row{}, err
	}
	open := true
	defer func() { // also if do panics
		if open {
			_ = s.end(own, cancel, tx, rollback) // do has failed already
		}
	}()
	next, err := do(tx, was, found)
	lives := release()
	open = lives // otherwise the end of ctx has rolled it back
	switch {
	case err != nil || next == was:
		if open = false; errors.Is(s.end(own, cancel, tx, rollback), sql.ErrTxDone) && lives {
			return row{}, errors.Join(ErrTxEnded, err)
		}
		return was, err
	case !lives:
		return row{}, context.Cause(ctx)
	}
	open = false
	switch err := s.end(own, cancel, tx, commit); {
	case errors.Is(err, sql.ErrTxDone):
		return row{}, ErrTxEnded
	case err != nil:
		s.unknown.Add(1)
		return row{}, fmt.Errorf("sqlsink: COMMIT failed, but may have taken effect; the next attempt finds out: %w", err)
	}
	return next, nil
}

// The statements that end a transaction.
const (
	commit   = "COMMIT"
	rollback = "ROLLBACK"
)

// end commits or rolls back a transaction. The transaction ends when own ends, and cancel ends own.
func (s *Sink) end(own context.Context, cancel func(), tx *sql.Tx, word string) error {
	if s.dialect.endsByStatement {
		ctx, stop := context.WithTimeout(own, endWithin)
		defer stop()
		_, err := tx.ExecContext(ctx, word)
		return err // database/sql rolls back an empty transaction when own ends
	}
	defer time.AfterFunc(endWithin, cancel).Stop()
	if word == commit {
		return tx.Commit()
	}
	return tx.Rollback()
}

// takeTurn waits until no other writer of this process is active, if the database allows only one
// writer.
func (s *Sink) takeTurn(ctx context.Context) error {
	if s.turn == nil {
		return nil
	}
	select {
	case s.turn <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// endTurn lets the next writer begin.
func (s *Sink) endTurn() {
	if s.turn != nil {
		<-s.turn
	}
}

// lock begins a transaction that has locked the row of a shard. It retries for a while instead of
// waiting in the database. The database would continue to wait after this process has given up.
func (s *Sink) lock(ctx, own context.Context, stream, id string) (*sql.Tx, row, bool, error) {
	began, pause := time.Now(), 2*time.Millisecond
	for {
		tx, is, found, err := s.tryLock(own, stream, id)
		if err == nil {
			return tx, is, found, nil
		}
		if cause := context.Cause(ctx); cause != nil {
			return nil, row{}, false, cause
		}
		if !s.dialect.locked(err) {
			return nil, row{}, false, err
		}
		if time.Since(began) >= s.o.LockTimeout {
			return nil, row{}, false, fmt.Errorf("%w: %s/%s for %v: %w", ErrLocked, stream, id, s.o.LockTimeout, err)
		}
		timer := time.NewTimer(pause/2 + rand.N(pause)) // random, so that two writers do not retry at the same times
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return nil, row{}, false, context.Cause(ctx)
		}
		pause = min(2*pause, 100*time.Millisecond)
	}
}

// tryLock makes one attempt to lock the row.
func (s *Sink) tryLock(ctx context.Context, stream, id string) (*sql.Tx, row, bool, error) {
	tx, err := s.db.BeginTx(ctx, nil)
	if err != nil {
		return nil, row{}, false, fmt.Errorf("sqlsink: beginning a transaction: %w", err)
	}
	if s.dialect.begin != "" {
		_, err = tx.ExecContext(ctx, s.dialect.begin+fmt.Sprint(s.o.MaxIdle.Milliseconds()))
	}
	if err == nil && s.dialect.lock != "" {
		_, err = tx.ExecContext(ctx, s.named(s.dialect.lock), s.o.App, stream, id)
	}
	if err != nil {
		_ = tx.Rollback() // the error of the query matters more
		return nil, row{}, false, fmt.Errorf("sqlsink: beginning a transaction for %s/%s: %w", stream, id, err)
	}
	is, found, err := s.read(ctx, tx, stream, id, s.dialect.locking)
	if err != nil {
		_ = tx.Rollback() // as above
		return nil, row{}, false, err
	}
	return tx, is, found, nil
}

// move writes the row of a shard before the effects. If the function itself commits the
// transaction, effects and position are still committed together.
func (s *Sink) move(ctx context.Context, tx *sql.Tx, stream, id string, to row) error {
	ended := 0
	if to.ended {
		ended = 1
	}
	_, err := tx.ExecContext(ctx, s.named("UPDATE {table} SET epoch = ?, position = ?, ended = ?, updated = "+s.dialect.now+where),
		int64(to.epoch), to.at.String(), ended, s.o.App, stream, id)
	if err != nil {
		return fmt.Errorf("sqlsink: moving the position of %s/%s: %w", stream, id, err)
	}
	return nil
}
