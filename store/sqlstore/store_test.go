package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/weir-go/weir/lease"
)

func TestNewRefusesOptionsThatMakeNoSense(t *testing.T) {
	db := new(sql.DB)
	for _, c := range []struct {
		db   *sql.DB
		o    Options
		want string
	}{
		{nil, Options{Dialect: SQLite}, "db is nil"},
		{db, Options{}, "Dialect is not set"},
		{db, Options{Dialect: 99}, "Dialect is not set"},
		{db, Options{Dialect: SQLite, Prefix: "we ir"}, "Prefix"},
		{db, Options{Dialect: SQLite, Prefix: "x; DROP TABLE t; --"}, "Prefix"},
		{db, Options{Dialect: SQLite, Prefix: "9x"}, "Prefix"},
		{db, Options{Dialect: SQLite, Prefix: strings.Repeat("p", 31)}, "Prefix"},
	} {
		if _, err := New(c.db, c.o); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("New(%+v) = %v, want an error with %q", c.o, err, c.want)
		}
	}
	for _, prefix := range []string{"", "weir_", "_", "Orders2_", strings.Repeat("p", 30)} {
		s, err := New(db, Options{Dialect: SQLite, Prefix: prefix})
		if err != nil {
			t.Errorf("New with prefix %q: %v", prefix, err)
			continue
		}
		if strings.ContainsAny(s.Schema(), "{}") || !strings.Contains(s.Schema(), prefix+"leases_owner") {
			t.Errorf("schema of prefix %q:\n%s", prefix, s.Schema())
		}
	}
}

// A schema may have the name of a reserved word, which servers only accept in quotes. On Postgres,
// upper case in the name of a schema becomes lower case, as in a statement without quotes.
func TestTheSchemaIsQuoted(t *testing.T) {
	db := sql.OpenDB(nil)
	defer func() { _ = db.Close() }()
	for want, o := range map[string]Options{
		`"user".weir_leases`:  {Dialect: Postgres, Schema: "user"},
		`"shop".weir_leases`:  {Dialect: Postgres, Schema: "Shop"},
		"`Order`.x_leases":    {Dialect: MySQL, Schema: "Order", Prefix: "x_"},
		"EXISTS weir_leases ": {Dialect: MySQL},
	} {
		s, err := New(db, o)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(s.Schema(), want) || !strings.HasPrefix(s.prefix, strings.TrimPrefix(o.Schema+".", ".")) {
			t.Errorf("%+v: no %s in, or the wrong prefix %q for people:\n%s", o, want, s.prefix, s.Schema())
		}
	}
}

func TestErrorsOfDriversAreToldApart(t *testing.T) {
	for _, c := range []struct {
		text  string
		busy  bool
		setup bool
		fresh bool // whether an error is about the setup only matters before the first success
	}{
		{"database is locked (5) (SQLITE_BUSY)", true, false, false}, // modernc.org/sqlite
		{"database is locked", true, false, false},                   // mattn/go-sqlite3
		{"sqlite3: database is locked", true, false, false},          // ncruces/go-sqlite3
		{"database is locked (517)", true, false, false},
		{"database table is locked: weir_leases", true, false, false},
		{"SQL logic error: no such table: weir_leases (1)", false, true, false},
		{"no such column: version", false, true, false},
		{"attempt to write a readonly database (8)", false, true, false},
		{"file is not a database (26)", false, true, false},
		{"database disk image is malformed (11)", false, true, false},
		{"unable to open database file: out of memory (14)", false, true, true},
		{"disk I/O error (10)", false, false, false},
		{"database or disk is full (13)", false, false, false},
	} {
		err := fmt.Errorf("wrapped: %w", errors.New(c.text))
		if got := busySQLite(err); got != c.busy {
			t.Errorf("%s: busy = %t", c.text, got)
		}
		for _, fresh := range []bool{true, false} {
			want := c.setup && (fresh || !c.fresh)
			if got := hopelessSQLite(err, fresh); (got != "") != want {
				t.Errorf("%s, fresh=%t: %q", c.text, fresh, got)
			}
		}
	}
}

func TestExplainKeepsTheEndOfTheContext(t *testing.T) {
	s, err := New(new(sql.DB), Options{Dialect: SQLite})
	if err != nil {
		t.Fatal(err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.explain(ended, errors.New("interrupted (9)")); !errors.Is(err, context.Canceled) {
		t.Errorf("interrupted = %v", err)
	}
	if err := s.explain(ended, lease.ErrSessionOver); !errors.Is(err, lease.ErrSessionOver) {
		t.Errorf("over = %v", err)
	}
	if err := s.explain(t.Context(), errors.New("disk I/O error")); errors.Is(err, lease.ErrSetup) || err == nil {
		t.Errorf("I/O error = %v", err)
	}
}
