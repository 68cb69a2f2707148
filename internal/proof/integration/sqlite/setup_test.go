package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weir-go/weir/internal/proof/integration/sqltest"
	"github.com/weir-go/weir/lease"
	"github.com/weir-go/weir/shard"
	"github.com/weir-go/weir/store/sqlstore"
)

// migrated opens a new file with its tables.
func migrated(t testing.TB) (*sqlstore.Store, *sql.DB) {
	t.Helper()
	return sqlite.Migrated(t, empty(t))
}

func TestSetupErrorsSayWhatToDo(t *testing.T) {
	sqltest.SetupErrors(t, slices.Concat(sqltest.NotReady(sqlite, empty), []sqltest.SetupCase{
		{Name: "a version table of somebody else", Prepare: func(t *testing.T) *sqlstore.Store {
			s, db := open(t, empty(t))
			sqltest.Exec(t, db, "CREATE TABLE weir_schema (id INTEGER)")
			return s
		}, Want: "not weir's", Migrate: "not weir's"},
		{Name: "a version that is no number", Prepare: func(t *testing.T) *sqlstore.Store {
			s, db := open(t, empty(t))
			sqltest.Exec(t, db, "CREATE TABLE weir_schema (version)")
			sqltest.Exec(t, db, "INSERT INTO weir_schema VALUES ('one')")
			return s
		}, Want: "weir_schema", Migrate: "weir_schema"},
		{Name: "a file of another kind", Prepare: func(t *testing.T) *sqlstore.Store {
			path := empty(t)
			if err := os.WriteFile(path, []byte(strings.Repeat("this is a letter, not a database. ", 100)), 0o600); err != nil {
				t.Fatal(err)
			}
			s, _ := open(t, path)
			return s
		}, Want: "not a SQLite database", Migrate: "not a SQLite database"},
		{Name: "a missing directory", Prepare: func(t *testing.T) *sqlstore.Store {
			s, _ := open(t, filepath.Join(t.TempDir(), "missing", "leases.db"))
			return s
		}, Want: "directory has to exist", Migrate: "directory has to exist"},
		{Name: "a file that may only be read", Prepare: func(t *testing.T) *sqlstore.Store {
			path := empty(t)
			_, db := sqlite.Migrated(t, path)
			db.Close()
			s, _ := open(t, "file:"+path+"?mode=ro")
			return s
			// These calls write nothing.
		}, Want: "may not be written", Migrate: "may not be written", Spared: []string{"View", "Leave"}},
		{Name: "Postgres' dialect", Prepare: func(t *testing.T) *sqlstore.Store { return ofDialect(t, sqlstore.Postgres) }, Want: "Options.Dialect", Migrate: "Options.Dialect", Spared: []string{"View"}},
		{Name: "MySQL's dialect", Prepare: func(t *testing.T) *sqlstore.Store { return ofDialect(t, sqlstore.MySQL) }, Want: "Options.Dialect", Migrate: "Options.Dialect", Spared: []string{"View"}},
		{Name: "a database in memory", Prepare: func(t *testing.T) *sqlstore.Store {
			s, _ := open(t, ":memory:")
			return s
		}, Want: "call Migrate", Migrate: "name a file"},
	}))
}

func TestTablesOfAnOlderVersionAreBroughtUpToDate(t *testing.T) {
	sqltest.Upgrades(t, sqlite, empty, "SELECT group_concat(t.name || '.' || c.name || c.type || c.pk, char(10) ORDER BY t.name, c.cid) "+
		"FROM sqlite_master t, pragma_table_info(t.name) c WHERE t.type = 'table'")
}

func TestAnOlderProgramWorksWithNewerTables(t *testing.T) { sqltest.Newer(t, sqlite, empty(t)) }

func TestSchemaIsWhatMigrateMakes(t *testing.T) {
	_, made := migrated(t)
	s, byHand := open(t, empty(t))
	sqltest.Exec(t, byHand, s.Schema())
	const all = "SELECT group_concat(sql || char(10) ORDER BY name) FROM sqlite_master"
	got, want := strings.ReplaceAll(sqltest.Text(t, byHand, all), "IF NOT EXISTS ", ""), sqltest.Text(t, made, all)
	if got != want {
		t.Errorf("Schema makes\n%s\nMigrate makes\n%s", got, want)
	}
	if _, err := s.Heartbeat(t.Context(), "app", lease.Report{Session: "a", First: true}); err != nil {
		t.Error(err)
	}
	if err := s.Migrate(t.Context()); err != nil {
		t.Errorf("Migrate after Schema: %v", err)
	}
}

func TestMigrateMayRunAnyTime(t *testing.T) { sqltest.MigrateAnyTime(t, sqlite, empty(t)) }

func TestManyProgramsSetAFileUpAtOnce(t *testing.T) {
	sqltest.SetUpAtOnce(t, sqlite, "file:"+empty(t)+"?_pragma=busy_timeout(60000)")
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
	if got := sqltest.Text(t, db, "SELECT count(*) FROM weir_applications"); got != "0" {
		t.Errorf("%s applications under the other prefix", got)
	}
}

func TestSettingsDoNotDependOnTheDSN(t *testing.T) {
	s, db := open(t, "file:"+empty(t)+"?_pragma=synchronous(0)&_pragma=busy_timeout(60000)&_pragma=journal_mode(DELETE)")
	db.SetMaxOpenConns(1) // all calls and queries use one connection
	if err := s.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Heartbeat(t.Context(), "app", lease.Report{Session: "a", First: true}); err != nil {
		t.Fatal(err)
	}
	for pragma, want := range map[string]string{"synchronous": "2", "busy_timeout": "50", "journal_mode": "wal"} {
		if got := sqltest.Text(t, db, "PRAGMA "+pragma); got != want {
			t.Errorf("%s is %s, want %s", pragma, got, want)
		}
	}
}

func TestBadRowsAreNamed(t *testing.T) {
	s, db := migrated(t)
	// SQLite columns accept values of any type.
	sqltest.BadRows(t, s, db, slices.Concat(sqltest.NotOurs, []sqltest.BadRow{
		{Set: "position = x'ff00'", Table: "leases", Row: "orders/000000"},
		{Set: "epoch = 'one'", Table: "leases", Row: "orders/000000"},
		{Set: "epoch = 1.5", Table: "leases", Row: "orders/000000"},
		{Set: "load_class = 300", Table: "leases", Row: "orders/000000"},
		{Set: "beat = 'many'", Table: "sessions", Row: `"0"`},
		{Set: "weight = 'heavy'", Table: "sessions", Row: `"0"`},
		{Set: "revision = 'x'", Table: "applications", Row: "app"},
	}))
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
	for name, call := range sqltest.Calls(s) {
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
			if err := sqltest.Calls(s)["View"](t.Context()); err != nil {
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

// ofDialect opens a store on a SQLite file with the dialect of another database.
func ofDialect(t *testing.T, d sqlstore.Dialect) *sqlstore.Store {
	path := empty(t)
	_, db := sqlite.Migrated(t, path)
	s, err := sqlstore.New(db, sqlstore.Options{Dialect: d})
	if err != nil {
		t.Fatal(err)
	}
	return s
}
