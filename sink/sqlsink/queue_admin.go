package sqlsink

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/weir-go/weir/internal/sqltable"
)

// Schema returns the statements that create the table and its index. They are for administrators
// who do not allow programs to change a schema.
func (q *Queue) Schema() string {
	all := q.statement(q.queries.table) + ";\n"
	if q.queries.index != "" {
		all += q.statement(q.queries.index) + ";\n"
	}
	return all
}

// Migrate creates the table and its index unless they exist. It returns an error if the table
// exists and is not a table of handled records.
//
// It may be repeated, and any number of processes may call it at the same time. No other function
// of the library calls it. It needs permissions to create and change tables, which workers and
// operators do not need: call it when a program is deployed, as a separate user.
func (q *Queue) Migrate(ctx context.Context) error {
	probe := q.named("SELECT app, queue, record, handled FROM {table} WHERE 1 = 0")
	for _, statement := range []string{q.queries.table, q.queries.index} {
		if statement == "" {
			continue
		}
		if err := sqltable.Make(ctx, q.db, q.statement(statement), probe); err != nil {
			return fmt.Errorf("sqlsink: the table %s cannot be created, or is not a table of handled records: %w", q.name, err)
		}
	}
	return nil
}

// Forget deletes the keys of the application that are older than [QueueOptions].Window, and returns
// their number. It deletes them in steps of 1,000. A Queue that applies records does this by
// itself. Forget is for applications that no longer run.
func (q *Queue) Forget(ctx context.Context) (n int, err error) {
	for {
		some, err := q.forgetStep(ctx)
		if n += some; err != nil || some < mostForgotten {
			return n, err
		}
	}
}

// mostForgotten is the number of keys that a step deletes.
const mostForgotten = 1000

// forgetStep deletes the oldest keys.
func (q *Queue) forgetStep(ctx context.Context) (int, error) {
	n, err := q.change(ctx, "removing old keys of records", q.statement(q.queries.forget), q.o.App, q.dialect.ago(int64(q.o.Window/time.Second)))
	q.forgotten.Add(uint64(n))
	return n, err
}

// forgetSome makes a step if one is due after a transaction with n new keys. The transaction has
// taken effect, so errors are only counted.
func (q *Queue) forgetSome(ctx context.Context, n int) {
	if !q.expiry.begin(n, time.Now()) {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, endWithin)
	defer cancel()
	deleted, err := q.forgetStep(ctx)
	if err != nil {
		q.forgetFailed.Add(1)
	}
	q.expiry.end(deleted == mostForgotten)
}

// statement puts the names into a statement.
func (q *Queue) statement(s string) string {
	return q.named(strings.NewReplacer("{index}", q.index, "{before}", q.dialect.before, "{most}", fmt.Sprint(mostForgotten)).Replace(s))
}

// expiry decides when a step is due: after half as many new keys as a step deletes, or a minute
// after the last step. If the last step has deleted its maximum, the next one is due at once.
type expiry struct {
	mu     sync.Mutex // guards the fields below
	active bool       // a step runs
	behind bool // the last step has deleted its maximum
	added  int // keys since the last step
	last   time.Time
}

// begin counts n keys, and reports whether the caller makes a step.
func (e *expiry) begin(n int, now time.Time) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.added += n
	if e.active || !e.behind && e.added < mostForgotten/2 && now.Sub(e.last) < time.Minute {
		return false
	}
	e.active, e.added, e.last = true, 0, now
	return true
}

// end ends a step.
func (e *expiry) end(behind bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.active, e.behind = false, behind
}
