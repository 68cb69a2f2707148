package sqltest

import (
	"database/sql"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/weir-go/weir/internal/proof/integration/servers"
	"github.com/weir-go/weir/lease"
	"github.com/weir-go/weir/store/sqlstore"
)

// SetupCase is a database that is not ready for use.
type SetupCase struct {
	Name    string
	Prepare func(t *testing.T) *sqlstore.Store
	Want    string   // part of the error of each call
	Migrate string   // part of the error of Migrate; "" if Migrate repairs the database
	Spared  []string // calls that may succeed anyway
}

// SetupErrors checks that each error names the remedy.
func SetupErrors(t *testing.T, cases []SetupCase) {
	for _, c := range cases {
		t.Run(c.Name, func(t *testing.T) {
			s := c.Prepare(t)
			for name, call := range Calls(s) {
				err := call(t.Context())
				if err == nil && slices.Contains(c.Spared, name) {
					continue
				}
				if !errors.Is(err, lease.ErrSetup) || !strings.Contains(err.Error(), c.Want) {
					t.Errorf("%s = %v, want ErrSetup with %q", name, err, c.Want)
				}
			}
			err := s.Migrate(t.Context())
			if c.Migrate == "" {
				if err != nil {
					t.Fatal(err)
				}
				for name, call := range Calls(s) {
					if err := call(t.Context()); err != nil {
						t.Errorf("after Migrate: %s: %v", name, err)
					}
				}
			} else if !errors.Is(err, lease.ErrSetup) || !strings.Contains(err.Error(), c.Migrate) {
				t.Errorf("Migrate = %v, want ErrSetup with %q", err, c.Migrate)
			}
		})
	}
}

// NotReady returns cases for every kind of database. Each case opens an empty database.
func NotReady(k Kind, empty func(t testing.TB) string) []SetupCase {
	return []SetupCase{
		{"it is empty", func(t *testing.T) *sqlstore.Store {
			s, _ := k.Open(t, empty(t), sqlstore.Options{})
			return s
		}, "call Migrate", "", nil},
		{"tables of an older version", func(t *testing.T) *sqlstore.Store {
			s, db := k.Open(t, empty(t), sqlstore.Options{})
			Exec(t, db, "CREATE TABLE weir_schema (version INTEGER NOT NULL)")
			return s
		}, "call Migrate", "", nil},
		{"tables of a newer version", func(t *testing.T) *sqlstore.Store {
			dsn := empty(t)
			_, db := k.Migrated(t, dsn)
			Exec(t, db, "UPDATE weir_schema SET version = 100")
			s, _ := k.Open(t, dsn, sqlstore.Options{})
			return s
		}, "newer version of weir", "newer version of weir", nil},
		{"tables of somebody else", func(t *testing.T) *sqlstore.Store {
			s, db := k.Open(t, empty(t), sqlstore.Options{})
			Exec(t, db, "CREATE TABLE weir_leases (id INTEGER)")
			return s
		}, "call Migrate", "another Options.Prefix", nil},
	}
}

func setupErrors(t *testing.T, s Server, d *servers.Database) {
	cases := append(NotReady(s.Kind, func(t testing.TB) string { return s.Fresh(t, d) }),
		SetupCase{"a schema that is not there", func(t *testing.T) *sqlstore.Store {
			store, _ := s.Open(t, s.Fresh(t, d), sqlstore.Options{Schema: "missing"})
			return store
		}, "", "another Options.Schema", nil},
		SetupCase{"a database that is not there", func(t *testing.T) *sqlstore.Store {
			store, _ := s.Open(t, s.DSN(d, "nowhere"), sqlstore.Options{})
			return store
		}, "no database with this name", "no database with this name", nil})
	if s.Setup != nil {
		cases = append(cases, s.Setup(s, d)...)
	}
	SetupErrors(t, cases)
}

// MigrateAnyTime lets many processes migrate one database at the same time. It returns the
// database.
func MigrateAnyTime(t *testing.T, k Kind, dsn string) *sql.DB {
	var wg sync.WaitGroup
	for range 6 {
		s, _ := k.Open(t, dsn, sqlstore.Options{})
		wg.Go(func() {
			for range 3 {
				if err := s.Migrate(t.Context()); err != nil {
					t.Error(err)
				}
			}
			if _, err := s.Heartbeat(t.Context(), "app", lease.Report{Session: "a", First: true}); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	_, db := k.Open(t, dsn, sqlstore.Options{})
	if got := Text(t, db, "SELECT concat(count(*), ' row, version ', max(version)) FROM weir_schema"); got != "1 row, version 7" {
		t.Errorf("the version table says: %s", got)
	}
	return db
}

func migrations(t *testing.T, s Server, d *servers.Database) {
	made := MigrateAnyTime(t, s.Kind, s.Fresh(t, d))
	byHand, hand := s.Open(t, s.Fresh(t, d), sqlstore.Options{})
	for _, statement := range strings.Split(byHand.Schema(), ";\n") {
		if strings.TrimSpace(statement) != "" {
			Exec(t, hand, statement)
		}
	}
	if got, want := Text(t, hand, s.Tables), Text(t, made, s.Tables); got != want || len(got) < 500 {
		t.Errorf("Schema makes\n%s\nMigrate makes\n%s", got, want)
	}
	if err := byHand.Migrate(t.Context()); err != nil {
		t.Errorf("Migrate after Schema: %v", err)
	}
}

func prefixes(t *testing.T, s Server, d *servers.Database) {
	dsn := s.Fresh(t, d)
	_, db := s.Migrated(t, dsn)
	Exec(t, db, s.Other)
	for _, o := range []sqlstore.Options{{Prefix: "other_"}, {Schema: "order"}, {Schema: "order", Prefix: "x_"}} {
		other, _ := s.Open(t, dsn, o)
		if _, err := other.View(t.Context(), "app", ""); !errors.Is(err, lease.ErrSetup) {
			t.Errorf("%+v: View = %v", o, err)
		}
		if err := other.Migrate(t.Context()); err != nil {
			t.Fatal(err)
		}
		if _, err := other.Heartbeat(t.Context(), "app", lease.Report{Session: "a", First: true}); err != nil {
			t.Fatal(err)
		}
		if apps, err := other.Apps(t.Context()); err != nil || len(apps) != 1 {
			t.Errorf("%+v: Apps = %q, %v", o, apps, err)
		}
	}
	first, _ := s.Open(t, dsn, sqlstore.Options{})
	if apps, err := first.Apps(t.Context()); err != nil || len(apps) != 0 {
		t.Errorf("under the first prefix: %q, %v", apps, err)
	}
}

// BadRow is an invalid row.
type BadRow struct {
	Set, Table string
	Row        string // name of the row in errors
}

// BadRows makes rows of an application invalid, and checks that errors name them. The application
// has a lease orders/000000 that session "0" owns.
func BadRows(t *testing.T, s *sqlstore.Store, db *sql.DB, rows []BadRow) {
	for i, c := range rows {
		t.Run(c.Set, func(t *testing.T) {
			app := "app" + string(rune('a'+i))
			Group(t, s, app, 1, 1)
			Exec(t, db, "UPDATE weir_"+c.Table+" SET "+c.Set+" WHERE app = '"+app+"'")
			_, err := s.View(t.Context(), app, "")
			if err == nil || !strings.Contains(err.Error(), c.Row) || errors.Is(err, lease.ErrSetup) {
				t.Errorf("View = %v, want an error that names %s", err, c.Row)
			}
			if c.Table == "leases" {
				_, err = s.Heartbeat(t.Context(), app, lease.Report{Session: "0"})
				if err == nil || !strings.Contains(err.Error(), c.Row) {
					t.Errorf("Beat = %v, want an error that names %s", err, c.Row)
				}
			}
			if _, err := s.View(t.Context(), "other", ""); err != nil {
				t.Errorf("another application: %v", err)
			}
		})
	}
}

func badRows(t *testing.T, s Server, d *servers.Database) {
	store, db := s.Migrated(t, s.Fresh(t, d))
	BadRows(t, store, db, NotOurs)
}

// NotOurs contains invalid rows that the columns of every database accept.
var NotOurs = []BadRow{
	{"position = 'yesterday'", "leases", "orders/000000"},
	{"epoch = -1", "leases", "orders/000000"},
	{"parents = '[1]'", "leases", "orders/000000"},
	{"parents = 'none'", "leases", "orders/000000"},
	{"range_start = '5', range_end = '4'", "leases", "orders/000000"},
	{"range_end = '340282366920938463463374607431768211456'", "leases", "orders/000000"},
	{"load_class = 81", "leases", "orders/000000"},
	{"born = -1", "leases", "orders/000000"},
	{"beat = -2", "sessions", `"0"`},
	{"drain = 2", "sessions", `"0"`},
	{"ended = 2", "sessions", `"0"`},
	{"troubles = '{'", "sessions", `"0"`},
	{"times = '1s/0s/30s'", "sessions", `"0"`},
	{"term = -1", "applications", "app"},
	{"paused = 'x'", "applications", "app"},
}
