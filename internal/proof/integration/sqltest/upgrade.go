package sqltest

import (
	"database/sql"
	"errors"
	"strings"
	"testing"

	"github.com/weir-go/weir/internal/proof/integration/servers"
	"github.com/weir-go/weir/lease"
	"github.com/weir-go/weir/store/sqlstore"
)

// first creates the tables of an empty database, and changes them to those of version 1.
func first(t *testing.T, k Kind, dsn string) *sql.DB {
	t.Helper()
	s, db := k.Migrated(t, dsn)
	Group(t, s, "old", 3, 2)
	Exec(t, db, "ALTER TABLE weir_sessions DROP COLUMN streams")
	Exec(t, db, "ALTER TABLE weir_sessions DROP COLUMN times")
	Exec(t, db, "ALTER TABLE weir_leases DROP COLUMN deaths")
	Exec(t, db, "ALTER TABLE weir_leases DROP COLUMN rate")
	Exec(t, db, "ALTER TABLE weir_leases DROP COLUMN numbers")
	Exec(t, db, "ALTER TABLE weir_applications DROP COLUMN pause_notes")
	Exec(t, db, "DROP TABLE weir_history")
	Exec(t, db, "UPDATE weir_schema SET version = 1")
	return db
}

// Upgrades checks that tables of version 1 cause an error that names the remedy. Every way of
// upgrading must result in the tables of this version. tables is a query for the description of all
// tables, as one text.
func Upgrades(t *testing.T, k Kind, fresh func(testing.TB) string, tables string) {
	_, made := k.Migrated(t, fresh(t))
	want := Text(t, made, tables)
	half := func(t *testing.T, s *sqlstore.Store, db *sql.DB) {
		t.Helper()
		byHand, err := s.SchemaSince(1)
		if err != nil {
			t.Fatal(err)
		}
		alter, _, _ := strings.Cut(byHand, ";\n")
		Exec(t, db, alter) // as if the process had died before it recorded the change
	}
	for name, upgrade := range map[string]func(*testing.T, *sqlstore.Store, *sql.DB) error{
		"by Migrate":                      func(t *testing.T, s *sqlstore.Store, _ *sql.DB) error { return s.Migrate(t.Context()) },
		"by Migrate, which was cut short": func(t *testing.T, s *sqlstore.Store, db *sql.DB) error { half(t, s, db); return s.Migrate(t.Context()) },
		"by hand": func(t *testing.T, s *sqlstore.Store, db *sql.DB) error {
			text, err := s.SchemaSince(1)
			for statement := range strings.SplitSeq(strings.TrimSpace(text), ";\n") {
				Exec(t, db, strings.TrimSuffix(statement, ";"))
			}
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			if k.Dialect == sqlstore.SQLite && strings.Contains(name, "cut short") {
				t.Skip("a step is one transaction there")
			}
			dsn := fresh(t)
			db := first(t, k, dsn)
			s, _ := k.Open(t, dsn, sqlstore.Options{})
			for call, do := range Calls(s) {
				if err := do(t.Context()); !errors.Is(err, lease.ErrSetup) || !strings.Contains(err.Error(), "version 1") || !strings.Contains(err.Error(), "SchemaSince(1)") {
					t.Errorf("%s = %v, want ErrSetup and what to do about version 1", call, err)
				}
			}
			for range 2 { // repeating it is harmless
				if err := upgrade(t, s, db); err != nil {
					t.Fatal(err)
				}
				if name != "by Migrate" {
					break
				}
			}
			if got := Text(t, db, tables); got != want {
				t.Errorf("the tables are\n%s\nwant\n%s", got, want)
			}
			// Existing data stays, and new fields are not set.
			v, err := s.View(t.Context(), "old", "")
			if err != nil || len(v.Leases) != 3 || len(v.Workers) != 2 || v.Workers[0].Times != (lease.Times{}) || v.Leader.Session != "0" {
				t.Errorf("view %+v, %v", v, err)
			}
			if _, err := s.Heartbeat(t.Context(), "old", lease.Report{Session: "new", First: true, Times: lease.DefaultTimes}); err != nil {
				t.Error(err)
			}
			if v, err := s.View(t.Context(), "old", ""); err != nil || len(v.Workers) != 3 || v.Workers[2].Times != lease.DefaultTimes {
				t.Errorf("view %+v, %v", v.Workers, err)
			}
		})
	}
}

// Newer checks that programs of this version work with tables of a later version, and do not change
// the tables.
func Newer(t *testing.T, k Kind, dsn string) {
	_, db := k.Migrated(t, dsn)
	for _, table := range []string{"weir_applications", "weir_sessions", "weir_leases"} {
		Exec(t, db, "ALTER TABLE "+table+" ADD COLUMN later INTEGER NOT NULL DEFAULT 7")
	}
	Exec(t, db, "UPDATE weir_schema SET version = 98")
	s, _ := k.Open(t, dsn, sqlstore.Options{}) // a worker that was just started
	Group(t, s, "old", 3, 2)
	if v, err := s.View(t.Context(), "old", ""); err != nil || len(v.Leases) != 3 || len(v.Workers) != 2 {
		t.Errorf("view %+v, %v", v, err)
	}
	if err := s.Migrate(t.Context()); err != nil {
		t.Error(err)
	}
	if got := Text(t, db, "SELECT version FROM weir_schema"); got != "98" {
		t.Errorf("an older Migrate leaves version %s", got)
	}
	if got := Text(t, db, "SELECT sum(later) FROM weir_leases"); got != "21" {
		t.Errorf("rows of an older program have %s in a newer column, want the default", got)
	}
}

func upgrades(t *testing.T, s Server, d *servers.Database) {
	t.Run("an older program", func(t *testing.T) { Newer(t, s.Kind, s.Fresh(t, d)) })
	Upgrades(t, s.Kind, func(t testing.TB) string { return s.Fresh(t, d) }, s.Tables)
}
