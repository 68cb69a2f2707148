package sqlsink

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/deadletter"
)

func TestNewRefusesOptionsThatMakeNoSense(t *testing.T) {
	db := new(sql.DB)
	for _, c := range []struct {
		db   *sql.DB
		o    Options
		want string
	}{
		{nil, Options{Dialect: SQLite, App: "a"}, "db is nil"},
		{db, Options{App: "a"}, "Dialect is not set"},
		{db, Options{App: "a", Dialect: 9}, "Dialect is not set"},
		{db, Options{Dialect: SQLite}, "Options.App"},
		{db, Options{Dialect: SQLite, App: strings.Repeat("a", 256)}, "Options.App"},
		{db, Options{Dialect: SQLite, App: "a", Table: "a b"}, "Options.Table"},
		{db, Options{Dialect: SQLite, App: "a", Table: `a"; DROP TABLE b; --`}, "Options.Table"},
		{db, Options{Dialect: SQLite, App: "a", Table: strings.Repeat("t", 61)}, "Options.Table"},
		{db, Options{Dialect: SQLite, App: "a", Schema: "main"}, "Dialect that has schemas"},
		{db, Options{Dialect: MySQL, App: "a", Schema: "a.b"}, "Options.Schema"},
		{db, Options{Dialect: SQLite, App: "a", LockTimeout: -1}, "LockTimeout"},
		{db, Options{Dialect: SQLite, App: "a", LockTimeout: 2 * time.Hour}, "LockTimeout"},
		{db, Options{Dialect: SQLite, App: "a", MaxIdle: time.Millisecond}, "MaxIdle"},
	} {
		if _, err := New(c.db, c.o); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("New(%+v) = %v, want an error with %q", c.o, err, c.want)
		}
	}
}

func TestNamesAreQuoted(t *testing.T) {
	for want, o := range map[string]Options{
		`"weir_positions" (`:   {Dialect: SQLite},
		`"shop"."order" (`:     {Dialect: Postgres, Schema: "Shop", Table: "Order"},
		"`Shop`.`Order` (":     {Dialect: MySQL, Schema: "Shop", Table: "Order"},
		"`weir_positions` (\n": {Dialect: MySQL},
	} {
		o.App = "a"
		s, err := New(new(sql.DB), o)
		if err != nil {
			t.Fatal(err)
		}
		if got := s.Schema(); !strings.Contains(got, want) || strings.ContainsAny(got, "{}?") {
			t.Errorf("%+v: no %s in\n%s", o, want, got)
		}
	}
	s, err := New(new(sql.DB), Options{Dialect: Postgres, App: "a"})
	if err != nil {
		t.Fatal(err)
	}
	if got := s.named("a = ? AND b = ?"); got != "a = $1 AND b = $2" {
		t.Errorf("parameters are %s", got)
	}
}

type coded string

func (c coded) Error() string    { return "the server's words" }
func (c coded) SQLState() string { return string(c) }

// The sink retries only if another transaction holds a lock. weir retries after all other errors.
func TestLocksAreToldFromOtherFailures(t *testing.T) {
	for _, c := range []struct {
		d      *dialect
		err    error
		locked bool
	}{
		{postgres, fmt.Errorf("wrapped: %w", coded("55P03")), true},
		{postgres, coded("40001"), false},
		{postgres, errors.New("55P03"), false},
		{mysql, errors.New("Error 3572 (HY000): Statement aborted because lock(s) could not be acquired immediately and NOWAIT is set."), true},
		{mysql, errors.New("Error 1205 (HY000): Lock wait timeout exceeded"), true},
		{mysql, errors.New("Error 1146 (42S02): Table 'shop.weir_positions' doesn't exist"), false},
		{sqlite, errors.New("database is locked (5) (SQLITE_BUSY)"), true},
		{sqlite, errors.New("database is locked (517)"), true},
		{sqlite, errors.New("disk I/O error"), false},
	} {
		if got := c.d.locked(c.err); got != c.locked {
			t.Errorf("%s: %v: %t", c.d.name, c.err, got)
		}
	}
	for _, err := range []error{coded("42P01"), errors.New("Error 1146 (42S02): no"), errors.New("SQL logic error: no such table: x (1)")} {
		if !noTable(err) {
			t.Errorf("%v does not say that the table is missing", err)
		}
	}
}

func TestWhatIsMissingEndsRun(t *testing.T) {
	s, err := New(new(sql.DB), Options{Dialect: SQLite, App: "a"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Handlers(nil).Open(t.Context(), weir.Term{}); err == nil || !strings.Contains(err.Error(), "the function passed to Handlers is nil") {
		t.Errorf("Open without a function: %v", err)
	}
	if err := s.Letters(nil).Put(t.Context(), nil); err == nil {
		t.Error("dead letters without a destination were put")
	}
}

// A dead letter needs the position of a record.
func TestLettersHavePositions(t *testing.T) {
	s, err := New(new(sql.DB), Options{Dialect: SQLite, App: "a"})
	if err != nil {
		t.Fatal(err)
	}
	put := s.Letters(deadletter.Func(func(context.Context, []deadletter.Letter) error { return nil }))
	if err := put.Put(t.Context(), nil); err != nil {
		t.Errorf("no letters: %v", err)
	}
	for _, p := range []string{"", "latest", "x"} {
		if err := put.Put(t.Context(), []deadletter.Letter{{ID: "orders/1", Position: p}}); err == nil || !strings.Contains(err.Error(), "orders/1") {
			t.Errorf("position %q: %v", p, err)
		}
	}
}
