package sqlsink

import (
	"context"
	"database/sql"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/weir-go/weir/queue"
)

func TestNewQueueRefusesOptionsThatMakeNoSense(t *testing.T) {
	db := new(sql.DB)
	for _, c := range []struct {
		db   *sql.DB
		o    QueueOptions
		want string
	}{
		{nil, QueueOptions{Dialect: SQLite, App: "a"}, "db is nil"},
		{db, QueueOptions{App: "a"}, "QueueOptions.Dialect is not set"},
		{db, QueueOptions{Dialect: SQLite}, "QueueOptions.App"},
		{db, QueueOptions{Dialect: SQLite, App: "a", Table: strings.Repeat("t", 51)}, "QueueOptions.Table"},
		{db, QueueOptions{Dialect: SQLite, App: "a", Table: "a b"}, "QueueOptions.Table"},
		{db, QueueOptions{Dialect: SQLite, App: "a", Schema: "main"}, "Dialect that has schemas"},
		{db, QueueOptions{Dialect: SQLite, App: "a", Scope: strings.Repeat("s", 256)}, "QueueOptions.Scope"},
		{db, QueueOptions{Dialect: SQLite, App: "a", Window: time.Second}, "QueueOptions.Window"},
		{db, QueueOptions{Dialect: SQLite, App: "a", Window: 401 * 24 * time.Hour}, "QueueOptions.Window"},
		{db, QueueOptions{Dialect: SQLite, App: "a", LockTimeout: -1}, "LockTimeout"},
		{db, QueueOptions{Dialect: SQLite, App: "a", MaxIdle: time.Millisecond}, "MaxIdle"},
	} {
		if _, err := NewQueue(c.db, c.o); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("NewQueue(%+v) = %v, want an error with %q", c.o, err, c.want)
		}
	}
}

func TestStatementsOfAQueue(t *testing.T) {
	for want, o := range map[string]QueueOptions{
		`CREATE INDEX IF NOT EXISTS "weir_handled_handled" ON "weir_handled" (app, handled);`:  {Dialect: SQLite},
		`CREATE INDEX IF NOT EXISTS "order_handled" ON "shop"."order" (app, handled);`:         {Dialect: Postgres, Schema: "Shop", Table: "Order"},
		"CREATE TABLE IF NOT EXISTS `Shop`.`Order` (\n  app VARBINARY(255) NOT NULL,\n  queue": {Dialect: MySQL, Schema: "Shop", Table: "Order"},
	} {
		o.App = "a"
		q, err := NewQueue(new(sql.DB), o)
		if err != nil {
			t.Fatal(err)
		}
		if got := q.Schema(); !strings.Contains(got, want) || strings.ContainsAny(got, "{}?") {
			t.Errorf("%+v: no %s in\n%s", o, want, got)
		}
		if got := q.statement(q.queries.forget); strings.ContainsAny(got, "{}") {
			t.Errorf("%s", got)
		}
	}
}

// Transactions lock keys in the same order, each once.
func TestKeysAreSorted(t *testing.T) {
	q, err := NewQueue(new(sql.DB), QueueOptions{Dialect: SQLite, App: "a"})
	if err != nil {
		t.Fatal(err)
	}
	got, err := q.keysOf([]queue.Record{{Queue: "q", ID: "b"}, {Queue: "q", ID: "a", Sub: 2}, {Queue: "p", ID: "z"}, {Queue: "q", ID: "b"}})
	want := []recordKey{{"p", "z"}, {"q", "a+2"}, {"q", "b"}}
	if err != nil || len(got) != 3 || got[0] != want[0] || got[1] != want[1] || got[2] != want[2] {
		t.Errorf("%v, %v", got, err)
	}
	if err := q.Handler(nil)(context.Background(), []queue.Record{{}}); err == nil {
		t.Error("no error without a function")
	}
}

func TestWhenKeysAreForgotten(t *testing.T) {
	at := time.Date(2026, 11, 28, 0, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		name  string
		e     *expiry
		added int
		want  bool
	}{
		{"the first transaction", &expiry{}, 1, true},
		{"a few keys just after a step", &expiry{last: at.Add(-time.Second)}, 499, false},
		{"many keys", &expiry{last: at.Add(-time.Second), added: 400}, 100, true},
		{"a minute", &expiry{last: at.Add(-time.Minute)}, 1, true},
		{"the step before deleted as much as it may", &expiry{last: at.Add(-time.Second), behind: true}, 1, true},
		{"a step runs", &expiry{active: true, behind: true}, 1000, false},
	} {
		if got := c.e.begin(c.added, at); got != c.want {
			t.Errorf("%s: %t", c.name, got)
		}
	}
	e := &expiry{last: at}
	e.begin(500, at)
	e.end(false)
	if e.begin(1, at) {
		t.Error("two steps at once")
	}
}

// A deadlock is a lock, and weir tries again.
func TestDeadlocks(t *testing.T) {
	if !postgres.locked(coded("40P01")) || !queries[Postgres].duplicate(coded("40001")) || queries[MySQL].duplicate(errors.New("Error 1213 (40001): Deadlock")) {
		t.Error("a code has another meaning")
	}
}
