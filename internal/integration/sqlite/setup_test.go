package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weir-go/weir/lease"
	"github.com/weir-go/weir/shard"
	"github.com/weir-go/weir/store/sqlstore"
)

// migrated opens a fresh file with tables.
func migrated(t testing.TB) (*sqlstore.Store, *sql.DB) {
	t.Helper()
	s, db := open(t, filepath.Join(t.TempDir(), "leases.db"))
	if err := s.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	return s, db
}

func run(t testing.TB, db *sql.DB, statement string, args ...any) {
	t.Helper()
	if _, err := db.ExecContext(t.Context(), statement, args...); err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
}

func text(t testing.TB, db *sql.DB, query string) string {
	t.Helper()
	var s string
	if err := db.QueryRowContext(t.Context(), query).Scan(&s); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	return s
}

// calls are all methods of a store, for errors that each of them must report.
func calls(s lease.Store) map[string]func(context.Context) error {
	return map[string]func(context.Context) error{
		"Beat": func(ctx context.Context) error {
			_, err := s.Beat(ctx, "app", lease.Report{Session: "a", First: true})
			return err
		},
		"View": func(ctx context.Context) error { _, err := s.View(ctx, "app", ""); return err },
		"Apply": func(ctx context.Context) error {
			_, err := s.Apply(ctx, "app", []lease.Action{{Kind: lease.Create, Lease: lease.Lease{Key: lease.Key{Stream: "s", Shard: "1"}}}})
			return err
		},
		"Lead":  func(ctx context.Context) error { _, err := s.Lead(ctx, "app", "a", 0); return err },
		"Leave": func(ctx context.Context) error { return s.Leave(ctx, "app", lease.Report{Session: "a"}) },
	}
}

func TestSetupErrorsSayWhatToDo(t *testing.T) {
	cases := []struct {
		name    string
		prepare func(t *testing.T) *sqlstore.Store
		want    string
		migrate string // of the error of Migrate, "" if it mends it
	}{
		{"an empty file wants Migrate", func(t *testing.T) *sqlstore.Store {
			s, _ := open(t, filepath.Join(t.TempDir(), "leases.db"))
			return s
		}, "call Migrate", ""},
		{"an older version wants Migrate", func(t *testing.T) *sqlstore.Store {
			s, db := open(t, filepath.Join(t.TempDir(), "leases.db"))
			run(t, db, "CREATE TABLE weir_schema (version INTEGER NOT NULL)")
			return s
		}, "call Migrate", ""},
		{"a newer version wants a newer program", func(t *testing.T) *sqlstore.Store {
			s, db := migrated(t)
			run(t, db, "UPDATE weir_schema SET version = 99")
			again, err := sqlstore.New(db, sqlstore.Options{Dialect: sqlstore.SQLite})
			if err != nil {
				t.Fatal(err)
			}
			_ = s
			return again
		}, "newer version of weir", "newer version of weir"},
		{"tables of somebody else want another prefix", func(t *testing.T) *sqlstore.Store {
			s, db := open(t, filepath.Join(t.TempDir(), "leases.db"))
			run(t, db, "CREATE TABLE weir_leases (id INTEGER)")
			return s
		}, "call Migrate", "another Options.Prefix"},
		{"a version table of somebody else is reported", func(t *testing.T) *sqlstore.Store {
			s, db := open(t, filepath.Join(t.TempDir(), "leases.db"))
			run(t, db, "CREATE TABLE weir_schema (id INTEGER)")
			return s
		}, "not weir's", "not weir's"},
		{"a version that is no number is reported", func(t *testing.T) *sqlstore.Store {
			s, db := open(t, filepath.Join(t.TempDir(), "leases.db"))
			run(t, db, "CREATE TABLE weir_schema (version)")
			run(t, db, "INSERT INTO weir_schema VALUES ('one')")
			return s
		}, "weir_schema", "weir_schema"},
		{"a file of another kind is reported", func(t *testing.T) *sqlstore.Store {
			path := filepath.Join(t.TempDir(), "leases.db")
			if err := os.WriteFile(path, []byte(strings.Repeat("this is a letter, not a database. ", 100)), 0o600); err != nil {
				t.Fatal(err)
			}
			s, _ := open(t, path)
			return s
		}, "not a SQLite database", "not a SQLite database"},
		{"a missing directory is reported", func(t *testing.T) *sqlstore.Store {
			s, _ := open(t, filepath.Join(t.TempDir(), "missing", "leases.db"))
			return s
		}, "directory has to exist", "directory has to exist"},
		{"a file that may only be read is reported", func(t *testing.T) *sqlstore.Store {
			path := filepath.Join(t.TempDir(), "leases.db")
			s, db := open(t, path)
			if err := s.Migrate(t.Context()); err != nil {
				t.Fatal(err)
			}
			db.Close()
			s, _ = open(t, "file:"+path+"?mode=ro")
			return s
		}, "may not be written", "may not be written"},
		{"a database in memory is reported", func(t *testing.T) *sqlstore.Store {
			s, _ := open(t, ":memory:")
			return s
		}, "call Migrate", "name a file"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			s := c.prepare(t)
			for name, call := range calls(s) {
				err := call(t.Context())
				if (name == "View" || name == "Leave") && c.want == "may not be written" && err == nil {
					continue // they had nothing to write
				}
				if !errors.Is(err, lease.ErrSetup) || !strings.Contains(err.Error(), c.want) {
					t.Errorf("%s = %v, want ErrSetup with %q", name, err, c.want)
				}
			}
			err := s.Migrate(t.Context())
			if c.migrate == "" {
				if err != nil {
					t.Fatal(err)
				}
				if _, err := s.Beat(t.Context(), "app", lease.Report{Session: "a", First: true}); err != nil {
					t.Errorf("after Migrate: %v", err)
				}
			} else if !errors.Is(err, lease.ErrSetup) || !strings.Contains(err.Error(), c.migrate) {
				t.Errorf("Migrate = %v, want ErrSetup with %q", err, c.migrate)
			}
		})
	}
}

func TestSchemaIsWhatMigrateMakes(t *testing.T) {
	_, made := migrated(t)
	s, byHand := open(t, filepath.Join(t.TempDir(), "leases.db"))
	run(t, byHand, s.Schema())
	const all = "SELECT group_concat(sql || char(10) ORDER BY name) FROM sqlite_master"
	got, want := strings.ReplaceAll(text(t, byHand, all), "IF NOT EXISTS ", ""), text(t, made, all)
	if got != want {
		t.Errorf("Schema makes\n%s\nMigrate makes\n%s", got, want)
	}
	if _, err := s.Beat(t.Context(), "app", lease.Report{Session: "a", First: true}); err != nil {
		t.Error(err)
	}
	if err := s.Migrate(t.Context()); err != nil {
		t.Errorf("Migrate after Schema: %v", err)
	}
}

func TestMigrateMayRunAnyTime(t *testing.T) {
	path := filepath.Join(t.TempDir(), "leases.db")
	var wg sync.WaitGroup
	for range 6 {
		s, _ := open(t, path)
		wg.Go(func() {
			for range 3 {
				if err := s.Migrate(t.Context()); err != nil {
					t.Error(err)
				}
			}
			if _, err := s.Beat(t.Context(), "app", lease.Report{Session: "a", First: true}); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	_, db := open(t, path)
	if got := text(t, db, "SELECT count(*) || ' row, version ' || max(version) FROM weir_schema"); got != "1 row, version 1" {
		t.Error(got)
	}
}

func TestPrefixesKeepTablesApart(t *testing.T) {
	_, db := migrated(t)
	other, err := sqlstore.New(db, sqlstore.Options{Dialect: sqlstore.SQLite, Prefix: "other_"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := other.View(t.Context(), "app", ""); !errors.Is(err, lease.ErrSetup) {
		t.Errorf("View = %v", err)
	}
	if err := other.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := other.Lead(t.Context(), "app", "a", 0); err != nil {
		t.Fatal(err)
	}
	if got := text(t, db, "SELECT count(*) FROM weir_applications"); got != "0" {
		t.Errorf("%s applications under the other prefix", got)
	}
}

func TestSettingsDoNotDependOnTheDSN(t *testing.T) {
	path := filepath.Join(t.TempDir(), "leases.db")
	s, db := open(t, "file:"+path+"?_pragma=synchronous(0)&_pragma=busy_timeout(60000)&_pragma=journal_mode(DELETE)")
	db.SetMaxOpenConns(1) // all calls, and the questions below, on one connection
	if err := s.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Beat(t.Context(), "app", lease.Report{Session: "a", First: true}); err != nil {
		t.Fatal(err)
	}
	for pragma, want := range map[string]string{"synchronous": "2", "busy_timeout": "50", "journal_mode": "wal"} {
		if got := text(t, db, "PRAGMA "+pragma); got != want {
			t.Errorf("%s is %s, want %s", pragma, got, want)
		}
	}
}

func TestBadRowsAreNamed(t *testing.T) {
	prepare := func(t *testing.T) (*sqlstore.Store, *sql.DB) {
		s, db := migrated(t)
		if _, err := s.Beat(t.Context(), "app", lease.Report{Session: "a", Name: "alpha", First: true}); err != nil {
			t.Fatal(err)
		}
		l := lease.Lease{Key: lease.Key{Stream: "orders", Shard: "shard-7"}, Epoch: 1, Owner: "a", Position: shard.Oldest}
		if _, err := s.Apply(t.Context(), "app", []lease.Action{{Kind: lease.Create, Lease: l}}); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Lead(t.Context(), "app", "a", 0); err != nil {
			t.Fatal(err)
		}
		return s, db
	}
	for _, c := range []struct{ set, table, row string }{
		{"position = 'yesterday'", "leases", "orders/shard-7"},
		{"position = x'ff00'", "leases", "orders/shard-7"},
		{"epoch = -1", "leases", "orders/shard-7"},
		{"epoch = 'one'", "leases", "orders/shard-7"},
		{"epoch = 1.5", "leases", "orders/shard-7"},
		{"parents = '[1]'", "leases", "orders/shard-7"},
		{"parents = 'none'", "leases", "orders/shard-7"},
		{"range_start = '5', range_end = '4'", "leases", "orders/shard-7"},
		{"range_end = '340282366920938463463374607431768211456'", "leases", "orders/shard-7"},
		{"load_class = 300", "leases", "orders/shard-7"},
		{"born = -1", "leases", "orders/shard-7"},
		{"beat = -1", "sessions", `"a"`},
		{"drain = 2", "sessions", `"a"`},
		{"troubles = 'many'", "sessions", `"a"`},
		{"paused = 'all'", "applications", `"app"`},
		{"beat = 'many'", "sessions", `"a"`},
		{"ended = 2", "sessions", `"a"`},
		{"weight = 'heavy'", "sessions", `"a"`},
		{"term = -1", "applications", `"app"`},
		{"revision = 'x'", "applications", `"app"`},
	} {
		t.Run(c.set, func(t *testing.T) {
			s, db := prepare(t)
			run(t, db, "UPDATE weir_"+c.table+" SET "+c.set)
			_, err := s.View(t.Context(), "app", "")
			if err == nil || !strings.Contains(err.Error(), c.row) || errors.Is(err, lease.ErrSetup) {
				t.Errorf("View = %v, want an error that names %s", err, c.row)
			}
			if c.table == "leases" {
				_, err = s.Beat(t.Context(), "app", lease.Report{Session: "a"})
				if err == nil || !strings.Contains(err.Error(), c.row) {
					t.Errorf("Beat = %v, want an error that names %s", err, c.row)
				}
			}
			if _, err := s.View(t.Context(), "other", ""); err != nil {
				t.Errorf("another application: %v", err)
			}
		})
	}
}

func TestInputThatCannotBeStoredIsRefused(t *testing.T) {
	s, _ := migrated(t)
	k := lease.Key{Stream: "s", Shard: "1"}
	for name, l := range map[string]lease.Lease{
		"epoch":   {Key: k, Epoch: 1 << 63},
		"range":   {Key: k, Range: shard.HashRange{Start: shard.MaxHashKey}},
		"parents": {Key: k, Parents: []string{"\xff"}},
	} {
		if _, err := s.Apply(t.Context(), "app", []lease.Action{{Kind: lease.Create, Lease: l}}); err == nil || !strings.Contains(err.Error(), "s/1") {
			t.Errorf("%s: Apply = %v, want an error that names the lease", name, err)
		}
	}
	if v, err := s.View(t.Context(), "app", ""); err != nil || len(v.Leases) != 0 {
		t.Errorf("View = %+v, %v", v, err)
	}
}

func TestCallsWaitForTheirTurnAsLongAsTheirContextLasts(t *testing.T) {
	s, db := migrated(t)
	for name, call := range calls(s) {
		if name == "View" {
			continue // readers do not wait
		}
		t.Run(name, func(t *testing.T) {
			hog, err := db.Conn(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			defer hog.Close()
			if _, err := hog.ExecContext(t.Context(), "BEGIN IMMEDIATE"); err != nil {
				t.Fatal(err)
			}
			short, cancel := context.WithTimeout(t.Context(), 30*time.Millisecond)
			defer cancel()
			if err := call(short); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("while the file is locked: %v, want context.DeadlineExceeded", err)
			}
			if err := calls(s)["View"](t.Context()); err != nil {
				t.Errorf("View while the file is locked: %v", err)
			}
			waited := make(chan error)
			go func() { waited <- call(t.Context()) }()
			if _, err := hog.ExecContext(t.Context(), "COMMIT"); err != nil {
				t.Fatal(err)
			}
			if err := <-waited; err != nil {
				t.Errorf("after the lock: %v", err)
			}
		})
	}
}
