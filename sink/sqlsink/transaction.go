package sqlsink

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/sink"
)

// endWithin is the time limit of COMMIT and ROLLBACK. The end of the handler's context does not
// interrupt them, because the answer is important.
const endWithin = 10 * time.Second

// Update implements [sink.Rows].
func (s rows) Update(ctx context.Context, k sink.Key, decide func(was sink.Row, found bool) (*sink.Row, error), effects func(ctx context.Context, tx *sql.Tx) error) error {
	var (
		was   sink.Row
		found bool
	)
	begin := func(own context.Context) (tx *sql.Tx, err error) {
		tx, was, found, err = s.lock(ctx, own, k)
		return tx, err
	}
	return s.transact(ctx, begin, func(tx *sql.Tx) (write bool, err error) {
		next, err := decide(was, found)
		if next == nil || err != nil {
			return false, err
		}
		if err := s.store(ctx, tx, k, *next); err != nil || effects == nil {
			return true, err
		}
		return true, effects(ctx, tx)
	})
}

// transact makes one transaction. begin begins it with a context that COMMIT and ROLLBACK use, too.
// If work returns true and no error, the transaction is committed, and otherwise rolled back.
func (s *table) transact(ctx context.Context, begin func(own context.Context) (*sql.Tx, error), work func(tx *sql.Tx) (write bool, err error)) error {
	if err := s.takeTurn(ctx); err != nil {
		return err
	}
	defer s.endTurn()
	// The end of ctx ends the transaction, but does not interrupt its COMMIT or ROLLBACK.
	own, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	release := context.AfterFunc(ctx, cancel)
	defer release()
	tx, err := begin(own)
	if err != nil {
		return err
	}
	open := true
	defer func() { // also if work panics
		if open {
			_ = s.end(own, cancel, tx, rollback) // work has failed already
		}
	}()
	write, err := work(tx)
	lives := release()
	open = lives // otherwise the end of ctx has rolled it back
	switch {
	case err != nil || !write:
		if open = false; errors.Is(s.end(own, cancel, tx, rollback), sql.ErrTxDone) && lives {
			return weir.Stop(errors.Join(ErrTxEnded, err))
		}
		return err
	case !lives:
		return context.Cause(ctx)
	}
	open = false
	switch err := s.end(own, cancel, tx, commit); {
	case errors.Is(err, sql.ErrTxDone):
		return weir.Stop(ErrTxEnded)
	case err != nil:
		s.unknown.Add(1)
		return fmt.Errorf("sqlsink: COMMIT failed, but may have taken effect; the next attempt finds out: %w", err)
	}
	return nil
}

// The statements that end a transaction.
const (
	commit   = "COMMIT"
	rollback = "ROLLBACK"
)

// end commits or rolls back a transaction. The transaction ends when own ends, and cancel ends own.
func (s *table) end(own context.Context, cancel func(), tx *sql.Tx, word string) error {
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
func (s *table) takeTurn(ctx context.Context) error {
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
func (s *table) endTurn() {
	if s.turn != nil {
		<-s.turn
	}
}

// lock begins a transaction that has locked a row.
func (s rows) lock(ctx, own context.Context, k sink.Key) (tx *sql.Tx, is sink.Row, found bool, err error) {
	err = s.untilUnlocked(ctx, k.String(), s.o.LockTimeout, func() (err error) {
		tx, is, found, err = s.tryLock(own, k)
		return err
	})
	return tx, is, found, err
}

// untilUnlocked calls try until it does not fail because of a lock. It retries for a while instead
// of waiting in the database. The database would continue to wait after this process has given up.
func (s *table) untilUnlocked(ctx context.Context, what string, limit time.Duration, try func() error) error {
	began, pause := time.Now(), 2*time.Millisecond
	for {
		err := try()
		if err == nil {
			return nil
		}
		if cause := context.Cause(ctx); cause != nil {
			return cause
		}
		if !s.dialect.locked(err) && !errors.Is(err, errStored) {
			return err
		}
		if time.Since(began) >= limit {
			return fmt.Errorf("%w: %s for %v: %w", ErrLocked, what, limit, err)
		}
		timer := time.NewTimer(pause/2 + rand.N(pause)) // random, so that two writers do not retry at the same times
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return context.Cause(ctx)
		}
		pause = min(2*pause, 100*time.Millisecond)
	}
}

// tryLock makes one attempt to lock the row.
func (s rows) tryLock(ctx context.Context, k sink.Key) (*sql.Tx, sink.Row, bool, error) {
	tx, err := s.db.BeginTx(ctx, nil)
	if err != nil {
		return nil, sink.Row{}, false, fmt.Errorf("sqlsink: beginning a transaction: %w", err)
	}
	if s.dialect.begin != "" {
		_, err = tx.ExecContext(ctx, s.dialect.begin+fmt.Sprint(s.o.MaxIdle.Milliseconds()))
	}
	if err == nil && s.dialect.lock != "" {
		_, err = tx.ExecContext(ctx, s.named(s.dialect.lock), s.o.App, k.Stream, shardColumn(k))
	}
	if err != nil {
		_ = tx.Rollback() // the error of the query matters more
		return nil, sink.Row{}, false, fmt.Errorf("sqlsink: beginning a transaction for %s: %w", k, err)
	}
	is, found, err := s.one(ctx, tx, k)
	if err != nil {
		_ = tx.Rollback() // as above
		return nil, sink.Row{}, false, err
	}
	return tx, is, found, nil
}
