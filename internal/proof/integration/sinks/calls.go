package sinks

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/deadletter"
	"github.com/weir-go/weir/shard"
	"github.com/weir-go/weir/sink/sqlsink"
)

var errOops = errors.New("oops")

func skips(t *testing.T, p Place) {
	db, s := p.ready(t)
	at := func(want weir.Position) {
		t.Helper()
		if got, err := s.Position(t.Context(), stream, shardID); err != nil || got != want {
			t.Errorf("the position is %q, %v; want %q", got, err, want)
		}
	}
	at(weir.Position{})
	var calls []string
	note := func(ctx context.Context, tx *sql.Tx, b *weir.Batch) error {
		calls = append(calls, fmt.Sprintf("%d %t", len(b.Records), b.End))
		if err := b.Checkpoint(ctx, weir.Record{}); err == nil {
			t.Error("the function may note progress that a rollback does not undo")
		}
		return apply(ctx, tx, b)
	}
	h := term(t, s, 1, note)
	at(weir.Oldest)
	handle(t, h, batch(1, 1, 3), nil)
	handle(t, h, batch(1, 1, 3), nil)
	handle(t, h, batch(1, 2, 5), nil) // divided differently
	at(records(5, 5)[0].Position())
	h = term(t, s, 2, note)
	handle(t, h, batch(2, 4, 4), nil)
	last := batch(2, 6, 6)
	last.End = true
	handle(t, h, last, nil)
	handle(t, h, last, nil)
	at(shard.End)
	want(t, db, "1 2 3 4 5 6")
	// The leases were lost, so all records are handled again.
	h = term(t, s, 3, note)
	handle(t, h, batch(3, 1, 5), nil)
	last.Epoch = 3
	handle(t, h, last, nil)
	at(shard.End)
	// The end without records is tested for a shard with earlier records, and for one without.
	for i, id := range []string{shardID, "shardId-000000000001"} {
		other := p.sink(t, db, sqlsink.Options{App: "other"})
		h, err := other.Handlers(note).Open(t.Context(), weir.Term{Stream: stream, Shard: id, Epoch: 1, From: weir.Oldest})
		if err != nil {
			t.Fatal(err)
		}
		b := batch(1, 7, 7-i)
		b.Shard = id
		handle(t, h, b, nil)
		b.Records, b.End = nil, true
		handle(t, h, b, nil)
		handle(t, h, b, nil)
		if got, err := other.Position(t.Context(), stream, id); err != nil || got != shard.End {
			t.Errorf("after its end %s is at %q, %v", id, got, err)
		}
	}
	// In a recreated stream of the same name, a shard of the same name has later records.
	h = term(t, s, 4, note)
	handle(t, h, batch(4, 8, 9), nil)
	at(records(9, 9)[0].Position())
	want(t, db, "1 2 3 4 5 6 7 8 9")
	if want := []string{"3 false", "2 false", "1 true", "1 false", "0 true", "0 true", "2 false"}; !reflect.DeepEqual(calls, want) {
		t.Errorf("the function got %q, want %q", calls, want)
	}
	if got, want := s.Counts(), (sqlsink.Counts{Batches: 4, Records: 8, Skipped: 3 + 2 + 1 + 1 + 5 + 1}); got != want {
		t.Errorf("the counts are %+v, want %+v", got, want)
	}
}

func names(t *testing.T, p Place) {
	db, _ := p.ready(t)
	apps := []string{"app", "App", "app ", "\u00e4pp", "a\u0308pp", "a'); DROP TABLE effects; --", strings.Repeat("x", 255)}
	for i, app := range apps {
		h := term(t, p.sink(t, db, sqlsink.Options{App: app}), uint64(i+1), apply)
		handle(t, h, batch(uint64(i+1), 1, 1), nil)
	}
	want(t, db, strings.TrimSpace(strings.Repeat("1 ", len(apps))))
	// A sequence number has up to 129 digits.
	large := strings.Repeat("9", 129)
	b := batch(1, 1, 1)
	b.Records[0].SequenceNumber = large
	s := p.sink(t, db, sqlsink.Options{App: "large"})
	handle(t, term(t, s, 1, apply), b, nil)
	if at, err := s.Position(t.Context(), stream, shardID); err != nil || at.SequenceNumber() != large {
		t.Errorf("the position is %q, %v", at, err)
	}
}

func fails(t *testing.T, p Place) {
	db, s := p.ready(t)
	ctx, cancel := context.WithCancelCause(t.Context())
	for name, c := range map[string]struct {
		f    sqlsink.Func
		want error
	}{
		"an error": {func(context.Context, *sql.Tx, *weir.Batch) error { return errOops }, errOops},
		"a panic":  {func(context.Context, *sql.Tx, *weir.Batch) error { panic(errOops) }, errOops},
		"a failed statement that is kept quiet": {func(ctx context.Context, tx *sql.Tx, _ *weir.Batch) error {
			if _, err := tx.ExecContext(ctx, "INSERT INTO nowhere VALUES (1)"); err == nil {
				t.Error("there is no such table")
			}
			if p.Dialect == sqlsink.Postgres {
				return nil // the transaction is aborted, and COMMIT reports that
			}
			return errOops // in other databases the transaction continues, as the function decides
		}, nil},
		"its context ends":               {func(context.Context, *sql.Tx, *weir.Batch) error { cancel(errOops); return nil }, errOops},
		"a record that is none of these": {func(context.Context, *sql.Tx, *weir.Batch) error { return weir.FailedAt(records(9, 9)[0], errOops) }, errOops},
		"a stop":                         {func(context.Context, *sql.Tx, *weir.Batch) error { return weir.Stop(errOops) }, errOops},
	} {
		h := term(t, s, 1, func(ctx context.Context, tx *sql.Tx, b *weir.Batch) error {
			if err := apply(ctx, tx, b); err != nil {
				return err
			}
			return c.f(ctx, tx, b)
		})
		var err error
		func() {
			defer func() {
				if p := recover(); p != nil {
					err = p.(error)
				}
			}()
			err = h.Handle(ctx, batch(1, 1, 3))
		}()
		if err == nil || c.want != nil && !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
		if _, named := weir.FailedRecord(err); named {
			t.Errorf("%s: it names a record, and what is before that was rolled back", name)
		}
		want(t, db, "")
		// database/sql rolls back concurrently with the end of the context.
		eventually(t, name+": the connection is given back", func() bool { return db.Stats().InUse == 0 })
		if ctx.Err() != nil {
			ctx, cancel = context.WithCancelCause(t.Context())
		}
	}
	cancel(nil)
	handle(t, term(t, s, 1, apply), batch(1, 1, 3), nil)
	want(t, db, "1 2 3")
}

// failsAt tests errors that name a record. weir counts all records before the named one as done.
func failsAt(t *testing.T, p Place) {
	db, s := p.ready(t)
	bad := map[string]bool{"3": true, "5": true}
	h := term(t, s, 1, func(ctx context.Context, tx *sql.Tx, b *weir.Batch) error {
		var err error
		for i, r := range b.Records {
			if bad[string(r.Data)] {
				// 5 is named first, but 3 comes earlier.
				err = errors.Join(weir.FailedAt(r, errOops), err)
			} else if err == nil {
				one := *b
				one.Records = b.Records[i : i+1]
				if err := apply(ctx, tx, &one); err != nil {
					return err
				}
			}
		}
		clear(b.Records) // the function may modify the records
		return err
	})
	named := func(err error, number string) {
		t.Helper()
		if r, some := weir.FailedRecord(err); !some || r.SequenceNumber != number || !errors.Is(err, errOops) {
			t.Errorf("%v names %q, want %s", err, r.SequenceNumber, number)
		}
	}
	last := batch(1, 1, 6)
	last.End = true
	named(h.Handle(t.Context(), last), "3")
	want(t, db, "1 2")
	last.Records = records(3, 6)
	named(h.Handle(t.Context(), last), "3")
	last.Records = records(4, 6) // 3 was dead-lettered
	named(h.Handle(t.Context(), last), "5")
	want(t, db, "1 2 4")
	last.Records = records(6, 6)
	handle(t, h, last, nil)
	want(t, db, "1 2 4 6")
}

func endsIt(t *testing.T, p Place) {
	for name, c := range map[string]struct {
		end  func(*sql.Tx) error
		want string
	}{
		"commits":                   {(*sql.Tx).Commit, "1 2 3"},
		"commits and fails":         {func(tx *sql.Tx) error { return errors.Join(tx.Commit(), errOops) }, "1 2 3"},
		"rolls back":                {(*sql.Tx).Rollback, ""},
		"commits by a statement":    {func(tx *sql.Tx) error { _, err := tx.Exec("COMMIT"); return err }, "1 2 3"},
		"rolls back by a statement": {func(tx *sql.Tx) error { _, err := tx.Exec("ROLLBACK"); return err }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			db, s := p.ready(t)
			h := term(t, s, 1, func(ctx context.Context, tx *sql.Tx, b *weir.Batch) error {
				return errors.Join(apply(ctx, tx, b), c.end(tx))
			})
			err := h.Handle(t.Context(), batch(1, 1, 3))
			if told := errors.Is(err, sqlsink.ErrTxEnded); !told && !strings.Contains(name, "statement") {
				t.Errorf("Handle = %v", err)
			}
			want(t, db, c.want)
			h = term(t, s, 1, apply)
			handle(t, h, batch(1, 1, 3), nil)
			want(t, db, "1 2 3") // position and effects are consistent
		})
	}
}

func late(t *testing.T, p Place) {
	db, s := p.ready(t)
	old := term(t, s, 4, apply)
	next := term(t, s, 5, apply)
	handle(t, old, batch(4, 1, 2), nil) // the first writer
	handle(t, next, batch(5, 1, 3), nil)
	handle(t, old, batch(4, 3, 4), sqlsink.ErrFenced)
	handle(t, old, batch(4, 3, 4), weir.ErrLeaseLost)
	handle(t, next, batch(5, 4, 4), nil)
	want(t, db, "1 2 3 4")
	letters := s.Letters(deadletter.Func(func(context.Context, []deadletter.Letter) error { return nil }))
	for _, c := range []struct {
		shard, at string
		epoch     uint64
		want      error
	}{{shardID, "9", 4, sqlsink.ErrFenced}, {shardID, "1", 5, nil}, {"another", "9", 5, sqlsink.ErrSetBack}} {
		var left *deadletter.LeftOutError
		err := letters.Put(t.Context(), []deadletter.Letter{{ID: "x", Stream: stream, Shard: c.shard, Epoch: c.epoch, Position: c.at}})
		if !errors.Is(err, c.want) && !(c.want == nil && errors.As(err, &left)) {
			t.Errorf("a dead letter of %s at epoch %d: %v, want %v", c.at, c.epoch, err, c.want)
		}
	}
	if at, err := s.Position(t.Context(), stream, shardID); err != nil || at != records(4, 4)[0].Position() {
		t.Errorf("after dead letters of what is covered: %q, %v", at, err)
	}
	_, err := tryTerm(t.Context(), s, 1, apply)
	if !errors.Is(err, sqlsink.ErrFenced) || !strings.Contains(err.Error(), "ResetEpochs") {
		t.Errorf("an owner whose epochs began anew: %v", err)
	}
	for _, want := range []int{1, 0} {
		if n, err := s.ResetEpochs(t.Context()); err != nil || n != want {
			t.Errorf("ResetEpochs = %d, %v; want %d", n, err, want)
		}
	}
	handle(t, term(t, s, 1, apply), batch(1, 1, 5), nil)
	handle(t, next, batch(5, 5, 6), nil) // a worker that continues anyway duplicates nothing
	want(t, db, "1 2 3 4 5 6")
	if n := s.Counts().Fenced; n != 4 {
		t.Errorf("%d calls were refused", n)
	}
}

func underfoot(t *testing.T, p Place) {
	db, s := p.ready(t)
	table := "weir_positions"
	for name, change := range map[string]string{
		"to before": "UPDATE " + table + " SET position = '2' WHERE app = 'billing'",
		"to none":   "DELETE FROM " + table + " WHERE app = 'billing'",
	} {
		h := term(t, s, 1, apply)
		handle(t, h, batch(1, 1, 3), nil)
		exec(t, db, change)
		err := h.Handle(t.Context(), batch(1, 4, 5))
		if !errors.Is(err, sqlsink.ErrSetBack) || fmt.Sprintf("%T", err) != fmt.Sprintf("%T", weir.Stop(nil)) {
			t.Errorf("%s: %v, want one that ends Run", name, err)
		}
		if n := len(effects(t, db)); n != 3 {
			t.Errorf("%s: %d effects", name, n)
		}
		exec(t, db, "DELETE FROM effects")
		exec(t, db, "DELETE FROM "+table)
	}
	// Handle a batch between weir's query and the beginning of the term.
	handle(t, term(t, s, 1, apply), batch(1, 1, 3), nil)
	at, err := s.Position(t.Context(), stream, shardID)
	if err != nil {
		t.Fatal(err)
	}
	exec(t, db, "UPDATE "+table+" SET position = '2'")
	if _, err := s.Handlers(apply).Open(t.Context(), weir.Term{Stream: stream, Shard: shardID, Epoch: 1, From: at}); err == nil {
		t.Error("a term begins after what the database has")
	}
	for _, bad := range []string{"latest", "end", "yesterday", "-5"} {
		exec(t, db, "UPDATE "+table+" SET position = '"+bad+"'")
		if _, err := s.Position(t.Context(), stream, shardID); err == nil || !strings.Contains(err.Error(), shardID) {
			t.Errorf("the position %s: %v, want an error that names the row", bad, err)
		}
	}
}

func held(t *testing.T, p Place) {
	db, s := p.ready(t)
	h := term(t, s, 1, apply)
	inside, leave := make(chan struct{}), make(chan struct{})
	slow := term(t, p.sink(t, db, sqlsink.Options{}), 1, func(ctx context.Context, tx *sql.Tx, b *weir.Batch) error {
		close(inside)
		<-leave
		return apply(ctx, tx, b)
	})
	var other sync.WaitGroup
	other.Go(func() { handle(t, slow, batch(1, 1, 2), nil) })
	<-inside
	short := term(t, p.sink(t, db, sqlsink.Options{LockTimeout: 50 * time.Millisecond}), 1, apply)
	handle(t, short, batch(1, 1, 2), sqlsink.ErrLocked)
	ctx, cancel := context.WithTimeoutCause(t.Context(), 20*time.Millisecond, weir.ErrStopping)
	defer cancel()
	if err := h.Handle(ctx, batch(1, 1, 2)); !errors.Is(err, weir.ErrStopping) {
		t.Errorf("while others hold the lock and the context ends: %v", err)
	}
	var waiting sync.WaitGroup
	waiting.Go(func() { handle(t, h, batch(1, 1, 3), nil) })
	close(leave)
	waiting.Wait()
	other.Wait()
	want(t, db, "1 2 3")
	eventually(t, "all connections are given back", func() bool { return db.Stats().InUse == 0 })
}

func first(t *testing.T, p Place) {
	db, _ := p.ready(t)
	const owners = 6
	var all sync.WaitGroup
	for i := range owners {
		s := p.sink(t, db, sqlsink.Options{})
		all.Go(func() {
			for { // like weir's retries
				h, err := tryTerm(t.Context(), s, uint64(i+1), apply)
				if err == nil {
					err = h.Handle(t.Context(), batch(uint64(i+1), 1, 5))
				}
				if err == nil || errors.Is(err, sqlsink.ErrFenced) {
					return
				}
			}
		})
	}
	all.Wait()
	want(t, db, "1 2 3 4 5")
}

func vanishes(t *testing.T, p Place) {
	if !p.Idle {
		t.Skip("the file is on the process' own machine")
	}
	dsn := p.Fresh(t)
	db, s := p.readyAt(t, dsn)
	inside, leave := make(chan struct{}), make(chan struct{})
	gone := term(t, p.sink(t, p.open(t, dsn+p.IdleDSN), sqlsink.Options{MaxIdle: 300 * time.Millisecond}), 1, func(ctx context.Context, tx *sql.Tx, b *weir.Batch) error {
		if err := apply(ctx, tx, b); err != nil {
			return err
		}
		close(inside)
		<-leave
		return nil
	})
	var other sync.WaitGroup
	other.Go(func() {
		if err := gone.Handle(t.Context(), batch(1, 1, 2)); err == nil {
			t.Error("the server did not end an idle transaction")
		}
	})
	<-inside
	h := term(t, s, 2, apply)
	for h.Handle(t.Context(), batch(2, 1, 3)) != nil {
		if t.Context().Err() != nil {
			return
		}
	}
	close(leave)
	other.Wait()
	want(t, db, "1 2 3")
}

func tables(t *testing.T, p Place) {
	dsn := p.Fresh(t)
	db := p.open(t, dsn)
	s := p.sink(t, db, sqlsink.Options{})
	_, err := tryTerm(t.Context(), s, 1, apply)
	if err == nil || !strings.Contains(err.Error(), "call Migrate once") {
		t.Errorf("without a table: %v", err)
	}
	var all sync.WaitGroup
	for range 6 {
		own := p.sink(t, p.open(t, dsn), sqlsink.Options{})
		all.Go(func() {
			for range 2 {
				if err := own.Migrate(t.Context()); err != nil && !strings.Contains(err.Error(), "database is locked") {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	if err := s.Migrate(t.Context()); err != nil {
		t.Error(err)
	}
	by := p.sink(t, db, sqlsink.Options{Table: "order"}) // a reserved word
	exec(t, db, by.Schema())
	for _, s := range []*sqlsink.Sink{s, by} {
		if _, err := tryTerm(t.Context(), s, 1, apply); err != nil {
			t.Error(err)
		}
	}
	exec(t, db, "CREATE TABLE theirs (id INTEGER)")
	if err := p.sink(t, db, sqlsink.Options{Table: "theirs"}).Migrate(t.Context()); err == nil {
		t.Error("a table of somebody else's was taken for one of positions")
	}
}

func forgets(t *testing.T, p Place) {
	db, s := p.ready(t)
	for i, id := range []string{"a", "b", "c"} {
		for _, name := range []string{stream, "other"} {
			h, err := s.Handlers(apply).Open(t.Context(), weir.Term{Stream: name, Shard: id, Epoch: 1, From: weir.Oldest})
			if err != nil {
				t.Fatal(err)
			}
			b := batch(1, 1, 1)
			b.Stream, b.Shard, b.End = name, id, i > 0
			handle(t, h, b, nil)
		}
	}
	old := map[sqlsink.Dialect]string{
		sqlsink.SQLite: "datetime('now', '-49 hours')", sqlsink.Postgres: "now() - INTERVAL '49 hours'", sqlsink.MySQL: "UTC_TIMESTAMP() - INTERVAL 49 HOUR",
	}[p.Dialect]
	exec(t, db, "UPDATE weir_positions SET updated = "+old+" WHERE shard <> 'c'")
	if _, err := s.Forget(t.Context(), time.Hour); err == nil {
		t.Error("rows of shards were removed that ended an hour ago")
	}
	for _, c := range []struct {
		after time.Duration
		want  int
	}{{50 * time.Hour, 0}, {48 * time.Hour, 2}, {48 * time.Hour, 0}} {
		if n, err := s.Forget(t.Context(), c.after); err != nil || n != c.want {
			t.Errorf("Forget(%v) = %d, %v; want %d", c.after, n, err, c.want)
		}
	}
	if n, err := p.sink(t, db, sqlsink.Options{App: "another"}).RemoveStream(t.Context(), stream); err != nil || n != 0 {
		t.Errorf("another application removed %d rows, %v", n, err)
	}
	if n, err := s.RemoveStream(t.Context(), stream); err != nil || n != 2 {
		t.Errorf("RemoveStream = %d, %v; want 2", n, err)
	}
	if at, err := s.Position(t.Context(), "other", "c"); err != nil || at != shard.End {
		t.Errorf("the other stream's is %q, %v", at, err)
	}
}
