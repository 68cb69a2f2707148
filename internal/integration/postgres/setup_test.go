package postgres_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"

	"github.com/weir-go/weir/internal/integration/servers"
	"github.com/weir-go/weir/lease"
	"github.com/weir-go/weir/shard"
	"github.com/weir-go/weir/store/sqlstore"
)

// calls are all methods of a store, for errors that each of them must report.
func calls(s lease.Store) map[string]func(context.Context) error {
	return map[string]func(context.Context) error{
		"Beat": func(ctx context.Context) error {
			_, err := s.Beat(ctx, "app", lease.Report{Session: "a", First: true})
			return err
		},
		"View": func(ctx context.Context) error { _, err := s.View(ctx, "app", ""); return err },
		"Apply": func(ctx context.Context) error {
			_, err := s.Apply(ctx, "app", []lease.Action{{Kind: lease.Create, Lease: lease.Lease{Key: key("1"), Position: shard.Oldest}}})
			return err
		},
		"Lead":  func(ctx context.Context) error { _, err := s.Lead(ctx, "app", "a", 0); return err },
		"Leave": func(ctx context.Context) error { return s.Leave(ctx, "app", lease.Report{Session: "a"}) },
	}
}

func TestSetupErrorsSayWhatToDo(t *testing.T) {
	d := servers.Postgres(t)
	for _, c := range []struct {
		name    string
		prepare func(t *testing.T) *sqlstore.Store
		want    string
		migrate string // of the error of Migrate, "" if it mends it
	}{
		{"an empty database wants Migrate", func(t *testing.T) *sqlstore.Store {
			s, _ := open(t, fresh(t, d), sqlstore.Options{})
			return s
		}, "call Migrate", ""},
		{"a newer version wants a newer program", func(t *testing.T) *sqlstore.Store {
			dsn := fresh(t, d)
			_, db := migrated(t, dsn)
			run(t, db, "UPDATE weir_schema SET version = 99")
			s, _ := open(t, dsn, sqlstore.Options{})
			return s
		}, "newer version of weir", "newer version of weir"},
		{"tables of somebody else want another prefix", func(t *testing.T) *sqlstore.Store {
			s, db := open(t, fresh(t, d), sqlstore.Options{})
			run(t, db, "CREATE TABLE weir_leases (id INTEGER)")
			return s
		}, "call Migrate", "another Options.Prefix"},
		{"a schema that is not there", func(t *testing.T) *sqlstore.Store {
			s, _ := open(t, fresh(t, d), sqlstore.Options{Schema: "missing"})
			return s
		}, "", "another Options.Schema"},
		{"a database that is not there", func(t *testing.T) *sqlstore.Store {
			s, _ := open(t, d.PostgresURL("nowhere"), sqlstore.Options{})
			return s
		}, "no database of that name", "no database of that name"},
		{"a user that may not", func(t *testing.T) *sqlstore.Store {
			dsn := fresh(t, d)
			_, db := migrated(t, dsn)
			run(t, db, "CREATE USER reader")
			s, _ := open(t, strings.Replace(dsn, "weir@", "reader@", 1), sqlstore.Options{})
			return s
		}, "grant it SELECT", "grant it SELECT"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := c.prepare(t)
			for name, call := range calls(s) {
				if err := call(t.Context()); !errors.Is(err, lease.ErrSetup) || !strings.Contains(err.Error(), c.want) {
					t.Errorf("%s = %v, want ErrSetup with %q", name, err, c.want)
				}
			}
			err := s.Migrate(t.Context())
			if c.migrate == "" {
				if err != nil {
					t.Fatal(err)
				}
				for name, call := range calls(s) {
					if err := call(t.Context()); err != nil {
						t.Errorf("after Migrate: %s: %v", name, err)
					}
				}
			} else if !errors.Is(err, lease.ErrSetup) || !strings.Contains(err.Error(), c.migrate) {
				t.Errorf("Migrate = %v, want ErrSetup with %q", err, c.migrate)
			}
		})
	}
}

const tables = `SELECT string_agg(table_name || '.' || column_name || ' ' || data_type || ' ' || coalesce(collation_name, ''), E'\n'
	ORDER BY table_name, ordinal_position) || (SELECT string_agg(indexdef, E'\n' ORDER BY indexdef) FROM pg_indexes WHERE schemaname = $1)
	FROM information_schema.columns WHERE table_schema = $1`

func TestMigrateMayRunAnyTimeAndSchemaIsWhatItMakes(t *testing.T) {
	d := servers.Postgres(t)
	dsn := fresh(t, d)
	var wg sync.WaitGroup
	for range 6 {
		s, _ := open(t, dsn, sqlstore.Options{})
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
	_, made := open(t, dsn, sqlstore.Options{})
	byHand, hand := open(t, fresh(t, d), sqlstore.Options{})
	run(t, hand, byHand.Schema())
	var got, want string
	if err := made.QueryRowContext(t.Context(), tables, "public").Scan(&want); err != nil {
		t.Fatal(err)
	}
	if err := hand.QueryRowContext(t.Context(), tables, "public").Scan(&got); err != nil {
		t.Fatal(err)
	}
	if got != want || len(got) < 1000 {
		t.Errorf("Schema makes\n%s\nMigrate makes\n%s", got, want)
	}
	if err := byHand.Migrate(t.Context()); err != nil {
		t.Errorf("Migrate after Schema: %v", err)
	}
	var rows int
	if err := made.QueryRowContext(t.Context(), "SELECT count(*) FROM weir_schema WHERE version = 1").Scan(&rows); err != nil || rows != 1 {
		t.Errorf("%d rows of the version, %v", rows, err)
	}
}

func TestPrefixesAndSchemasKeepTablesApart(t *testing.T) {
	dsn := fresh(t, servers.Postgres(t))
	_, db := migrated(t, dsn)
	run(t, db, "CREATE SCHEMA other")
	for _, o := range []sqlstore.Options{{Prefix: "other_"}, {Schema: "other"}, {Schema: "other", Prefix: "x_"}} {
		s, _ := open(t, dsn, o)
		if _, err := s.View(t.Context(), "app", ""); !errors.Is(err, lease.ErrSetup) {
			t.Errorf("%+v: View = %v", o, err)
		}
		if err := s.Migrate(t.Context()); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Beat(t.Context(), "app", lease.Report{Session: "a", First: true}); err != nil {
			t.Fatal(err)
		}
		if apps, err := s.Apps(t.Context()); err != nil || len(apps) != 1 {
			t.Errorf("%+v: Apps = %q, %v", o, apps, err)
		}
	}
	first, _ := open(t, dsn, sqlstore.Options{})
	if apps, err := first.Apps(t.Context()); err != nil || len(apps) != 0 {
		t.Errorf("under the first prefix: %q, %v", apps, err)
	}
}

func TestBadRowsAreNamed(t *testing.T) {
	dsn := fresh(t, servers.Postgres(t))
	s, db := migrated(t, dsn)
	for i, c := range []struct{ set, table, row string }{
		{"position = 'yesterday'", "leases", "orders/000000"},
		{"epoch = -1", "leases", "orders/000000"},
		{"parents = '[1]'", "leases", "orders/000000"},
		{"range_end = '340282366920938463463374607431768211456'", "leases", "orders/000000"},
		{"load_class = 81", "leases", "orders/000000"},
		{"beat = -2", "sessions", `"0"`},
		{"ended = 2", "sessions", `"0"`},
		{"troubles = '{'", "sessions", `"0"`},
		{"term = -1", "applications", "app"},
		{"paused = 'x'", "applications", "app"},
	} {
		t.Run(c.set, func(t *testing.T) {
			app := "app" + string(rune('a'+i))
			group(t, s, app, 1, 1)
			run(t, db, "UPDATE weir_"+c.table+" SET "+c.set+" WHERE app = $1", app)
			_, err := s.View(t.Context(), app, "")
			if err == nil || !strings.Contains(err.Error(), c.row) || errors.Is(err, lease.ErrSetup) {
				t.Errorf("View = %v, want an error that names %s", err, c.row)
			}
			if c.table == "leases" {
				_, err = s.Beat(t.Context(), app, lease.Report{Session: "0"})
				if err == nil || !strings.Contains(err.Error(), c.row) {
					t.Errorf("Beat = %v, want an error that names %s", err, c.row)
				}
			}
		})
	}
}
