package sinks

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/deadletter"
	"github.com/weir-go/weir/queue"
	"github.com/weir-go/weir/sink/sqlsink"
)

// RunQueues runs the tests of the sink for queues, for every database.
func RunQueues(t *testing.T, p Place) {
	for _, c := range []struct {
		name string
		test func(*testing.T, Place)
	}{
		{"records with stored keys are skipped", queueSkips},
		{"keys", queueKeys},
		{"failures", queueFailures},
		{"a lock that is held", queueHeld},
		{"a COMMIT that is never answered", queueUnanswered},
		{"keys are forgotten after the window", queueForgets},
		{"tables", queueTables},
		{"a dead letter that is handled again", queueLetters},
		{"processes with the same records", queueTogether},
		{"under fire", queueUnderFire},
		{"processes that are killed", queueKilled},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			c.test(t, p)
		})
	}
}

// queue returns a sink for queues.
func (p Place) queue(t testing.TB, db *sql.DB, o sqlsink.QueueOptions) *sqlsink.Queue {
	t.Helper()
	o.Dialect = p.Dialect
	if o.App == "" {
		o.App = "billing"
	}
	q, err := sqlsink.NewQueue(db, o)
	if err != nil {
		t.Fatal(err)
	}
	return q
}

// queueReady returns a new database with its tables, and a sink for it.
func (p Place) queueReady(t testing.TB, dsn string) (*sql.DB, *sqlsink.Queue) {
	t.Helper()
	db := p.open(t, dsn)
	q := p.queue(t, db, sqlsink.QueueOptions{})
	if err := q.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	exec(t, db, "CREATE TABLE effects (id "+p.Serial+", shard VARCHAR(100), what VARCHAR(200))")
	return db, q
}

const queueARN = "arn:aws:kinesis:eu-west-1:111122223333:queue/q-1"

// queued returns records of a queue with the numbers from, …, to.
func queued(from, to int) (all []queue.Record) {
	for n := from; n <= to; n++ {
		all = append(all, queue.Record{Queue: queueARN, ID: fmt.Sprint("r", n), Data: fmt.Append(nil, n)})
	}
	return all
}

// applyQueued inserts a row for each record.
func applyQueued(ctx context.Context, tx *sql.Tx, records []queue.Record) error {
	for _, r := range records {
		if _, err := tx.ExecContext(ctx, fmt.Sprintf("INSERT INTO effects (shard, what) VALUES ('', '%s')", r.Data)); err != nil {
			return err
		}
	}
	return nil
}

// applied applies records. It must fail with the error want, or succeed if want is nil.
func applied(t testing.TB, q *sqlsink.Queue, f sqlsink.QueueFunc, records []queue.Record, want error) {
	t.Helper()
	if err := q.Handler(f)(t.Context(), records); !errors.Is(err, want) || want == nil && err != nil {
		t.Errorf("%d records: %v, want %v", len(records), err, want)
	}
}

func queueSkips(t *testing.T, p Place) {
	db, q := p.queueReady(t, p.Fresh(t))
	applied(t, q, applyQueued, queued(1, 3), nil)
	applied(t, q, applyQueued, queued(2, 5), nil)
	applied(t, q, func(context.Context, *sql.Tx, []queue.Record) error { return errors.New("called") }, queued(1, 5), nil)
	applied(t, q, applyQueued, queued(4, 900), nil) // several statements
	applied(t, q, applyQueued, append(queued(901, 901), queued(901, 901)...), nil)
	want(t, db, strings.Join(numbers(1, 900), " ")+" 901") // also if it is twice in a call
	if n := q.Counts(); n.Batches != 4 || n.Skipped != 2+5+2+1 || n.Unknown != 0 {
		t.Errorf("%+v", n)
	}
}

func numbers(from, to int) (all []string) {
	for n := from; n <= to; n++ {
		all = append(all, fmt.Sprint(n))
	}
	return all
}

// A key consists of application, queue or scope, record ID, and the place in the aggregate. Case,
// trailing spaces and letters of other alphabets count.
func queueKeys(t *testing.T, p Place) {
	db, q := p.queueReady(t, p.Fresh(t))
	of := func(o sqlsink.QueueOptions, r queue.Record) {
		t.Helper()
		r.Data = []byte("x")
		for range 2 {
			applied(t, p.queue(t, db, o), applyQueued, []queue.Record{r}, nil)
		}
	}
	all := 0
	for _, app := range []string{"a", "A", "a ", "ä"} {
		for _, queueName := range []string{"arn:1", "arn:2"} {
			for _, r := range []queue.Record{{ID: "r1"}, {ID: "r1", Sub: 1}, {ID: "r1", Sub: 2}, {ID: "r2"}, {ID: "R1"}} {
				r.Queue = queueName
				of(sqlsink.QueueOptions{App: app}, r)
				all++
			}
		}
	}
	if got := len(effects(t, db)); got != all {
		t.Errorf("%d effects, want %d", got, all)
	}
	for _, queueName := range []string{"arn:1", "arn:2"} { // queues of one stream
		of(sqlsink.QueueOptions{App: "scope", Scope: "orders"}, queue.Record{ID: "r1", Queue: queueName})
	}
	if got := len(effects(t, db)); got != all+1 {
		t.Errorf("%d effects with a scope, want 1", got-all)
	}
	for text, r := range map[string]queue.Record{"names no queue": {ID: "r"}, "has no ID": {Queue: "q"}, "too long": {Queue: "q", ID: strings.Repeat("r", 200)}} {
		if err := q.Handler(applyQueued)(t.Context(), []queue.Record{r}); err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("%+v: %v", r, err)
		}
	}
}

func queueFailures(t *testing.T, p Place) {
	db, q := p.queueReady(t, p.Fresh(t))
	oops := errors.New("oops")
	whole := func(ctx context.Context, tx *sql.Tx, records []queue.Record) error {
		return errors.Join(applyQueued(ctx, tx, records), oops)
	}
	applied(t, q, whole, queued(1, 2), oops)
	want(t, db, "")
	odd := func(ctx context.Context, tx *sql.Tx, records []queue.Record) error {
		for _, r := range records { // it names one failure in each call
			if err := applyQueued(ctx, tx, []queue.Record{r}); err != nil {
				return err
			}
			if n := r.Data[len(r.Data)-1] - '0'; n%2 == 1 {
				return queue.Failed(r, weir.Reject(oops))
			}
		}
		return nil
	}
	err := q.Handler(odd)(t.Context(), queued(1, 5))
	if named := queue.FailedRecords(err, queued(1, 5)); len(named) != 3 || named[2].ID != "r5" || !errors.Is(err, oops) {
		t.Errorf("%v names %+v", err, named)
	}
	want(t, db, "2 4")
	func() {
		defer func() {
			if recover() == nil {
				t.Error("no panic")
			}
		}()
		_ = q.Handler(func(ctx context.Context, tx *sql.Tx, records []queue.Record) error {
			if err := applyQueued(ctx, tx, records); err != nil {
				t.Error(err)
			}
			panic("oops")
		})(t.Context(), queued(1, 1))
	}()
	applied(t, q, func(_ context.Context, tx *sql.Tx, _ []queue.Record) error { return tx.Commit() }, queued(6, 6), sqlsink.ErrTxEnded)
	ctx, cancel := context.WithCancelCause(t.Context())
	lost := q.Handler(func(ctx context.Context, tx *sql.Tx, records []queue.Record) error {
		defer cancel(queue.ErrHoldLost)
		return applyQueued(ctx, tx, records)
	})
	if err := lost(ctx, queued(7, 7)); !errors.Is(err, queue.ErrHoldLost) {
		t.Errorf("after the hold was lost: %v", err)
	}
	applied(t, q, applyQueued, queued(1, 5), nil)
	applied(t, q, applyQueued, queued(7, 7), nil)
	want(t, db, "2 4 1 3 5 7")
	if err := q.Handler(nil)(t.Context(), queued(8, 8)); err == nil {
		t.Error("no error without a function")
	}
	eventually(t, "all connections are given back", func() bool { return db.Stats().InUse == 0 })
}

// Another process has one of the records in its transaction.
func queueHeld(t *testing.T, p Place) {
	dsn := p.Fresh(t)
	db, q := p.queueReady(t, dsn)
	inside, leave := make(chan struct{}), make(chan struct{})
	var other sync.WaitGroup
	other.Go(func() {
		slow := p.queue(t, p.open(t, dsn), sqlsink.QueueOptions{})
		applied(t, slow, func(ctx context.Context, tx *sql.Tx, records []queue.Record) error {
			if err := applyQueued(ctx, tx, records); err != nil {
				return err
			}
			close(inside)
			<-leave
			return nil
		}, queued(2, 3), nil)
	})
	<-inside
	if p.Dialect != sqlsink.MySQL { // which waits longer
		short := p.queue(t, db, sqlsink.QueueOptions{LockTimeout: 50 * time.Millisecond})
		applied(t, short, applyQueued, queued(1, 2), sqlsink.ErrLocked)
	}
	ctx, cancel := context.WithTimeoutCause(t.Context(), 20*time.Millisecond, weir.ErrStopping)
	defer cancel()
	if err := q.Handler(applyQueued)(ctx, queued(1, 2)); err == nil {
		t.Error("no error although the context ends")
	}
	var waiting sync.WaitGroup
	waiting.Go(func() { applied(t, q, applyQueued, queued(3, 4), nil) })
	close(leave)
	waiting.Wait()
	other.Wait()
	applied(t, q, applyQueued, queued(1, 4), nil)
	want(t, db, "2 3 4 1")
	eventually(t, "all connections are given back", func() bool { return db.Stats().InUse == 0 })
}

// older makes all keys older.
func older(t testing.TB, db *sql.DB) {
	exec(t, db, "UPDATE weir_handled SET handled = '2026-01-01 00:00:00'")
}

func keysLeft(t testing.TB, db *sql.DB) (n int) {
	t.Helper()
	if err := db.QueryRowContext(t.Context(), "SELECT COUNT(*) FROM weir_handled").Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

func queueForgets(t *testing.T, p Place) {
	db, q := p.queueReady(t, p.Fresh(t))
	nothing := func(context.Context, *sql.Tx, []queue.Record) error { return nil }
	applied(t, q, nothing, queued(1, 2500), nil)
	if n, err := q.Forget(t.Context()); err != nil || n != 0 {
		t.Errorf("%d young keys were forgotten, %v", n, err)
	}
	older(t, db)
	for i := range 3 { // a step deletes 1,000 keys, and the next one follows at once
		applied(t, p.queue(t, db, sqlsink.QueueOptions{App: "other"}), nothing, queued(1, 1), nil) // of its own keys only
		applied(t, q, nothing, queued(3000+500*i, 3499+500*i), nil)
	}
	if n := keysLeft(t, db); n != 1500+1 || q.Counts().Forgotten != 2500 || q.Counts().ForgetFailed != 0 {
		t.Errorf("%d keys are left, %+v", n, q.Counts())
	}
	older(t, db)
	n, err := q.Forget(t.Context())
	if left := keysLeft(t, db); err != nil || n != 1500 || left != 1 {
		t.Errorf("%d keys were forgotten and %d are left, %v", n, left, err)
	}
	applied(t, q, applyQueued, queued(3000, 3001), nil) // after the window they take effect again
	want(t, db, "3000 3001")
}

func queueTables(t *testing.T, p Place) {
	dsn := p.Fresh(t)
	db := p.open(t, dsn)
	q := p.queue(t, db, sqlsink.QueueOptions{})
	if err := q.Handler(applyQueued)(t.Context(), queued(1, 1)); err == nil || !strings.Contains(err.Error(), "call Migrate once") {
		t.Errorf("without a table: %v", err)
	}
	var all sync.WaitGroup
	for range 6 {
		own := p.queue(t, p.open(t, dsn), sqlsink.QueueOptions{})
		all.Go(func() {
			for range 2 {
				if err := own.Migrate(t.Context()); err != nil && !strings.Contains(err.Error(), "database is locked") {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	by := p.queue(t, db, sqlsink.QueueOptions{Table: "order"}) // a reserved word
	for statement := range strings.SplitSeq(strings.TrimSpace(by.Schema()), ";\n") {
		exec(t, db, strings.TrimSuffix(statement, ";"))
	}
	for _, q := range []*sqlsink.Queue{q, by} {
		if err := q.Migrate(t.Context()); err != nil {
			t.Error(err)
		}
		applied(t, q, func(context.Context, *sql.Tx, []queue.Record) error { return nil }, queued(1, 1), nil)
	}
	exec(t, db, "CREATE TABLE theirs (id INTEGER)")
	if err := p.queue(t, db, sqlsink.QueueOptions{Table: "theirs"}).Migrate(t.Context()); err == nil {
		t.Error("the table of another program is accepted")
	}
}

// A record is handled, and also has a dead letter, because the process was killed in between. A
// retry of the letter has no effect.
func queueLetters(t *testing.T, p Place) {
	db, q := p.queueReady(t, p.Fresh(t))
	applied(t, q, applyQueued, queued(1, 1), nil)
	for n := 1; n <= 2; n++ {
		l := deadletter.Letter{Stream: queueARN, Shard: deadletter.QueueShard, Position: fmt.Sprint("r", n), Data: fmt.Append(nil, n)}
		for range 2 {
			r, ok := queue.FromLetter(&l)
			if err := q.Apply(t.Context(), []queue.Record{r}, applyQueued); err != nil || !ok {
				t.Error(err)
			}
		}
	}
	want(t, db, "1 2")
}
