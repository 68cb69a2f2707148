// Package letters_test runs the contract of dead-letter destinations on real servers.
package letters_test

import (
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	_ "github.com/go-sql-driver/mysql"
	_ "github.com/jackc/pgx/v5/stdlib"
	_ "modernc.org/sqlite"

	"github.com/weir-go/weir/deadletter"
	"github.com/weir-go/weir/deadletter/boxtest"
	"github.com/weir-go/weir/deadletter/sqlletters"
	"github.com/weir-go/weir/internal/proof/integration/servers"
)

// contract runs the contract. Each test has a new table, and each box has its own database handle.
func contract(t *testing.T, driver, dsn string, d sqlletters.Dialect) {
	open := func(t *testing.T, table string) (*sqlletters.Box, *sql.DB) {
		t.Helper()
		db, err := sql.Open(driver, dsn)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = db.Close() })
		db.SetMaxOpenConns(2)
		b, err := sqlletters.New(db, d, strings.ReplaceAll(table, "-", "_"))
		if err != nil {
			t.Fatal(err)
		}
		if err := b.Migrate(t.Context()); err != nil {
			t.Fatal(err)
		}
		return b, db
	}
	boxtest.Run(t, func(t *testing.T, name string) deadletter.Box {
		t.Helper()
		b, _ := open(t, name)
		return b
	})
	t.Run("an earlier version writes to the table as well", func(t *testing.T) {
		b, db := open(t, "shared")
		earlierVersion(t, b, db, d)
	})
	t.Run("a place is looked at beforehand", func(t *testing.T) {
		b, db := open(t, "trial")
		for i := range 2 {
			for what, err := range map[string]error{"reading": b.Readable(t.Context()), "writing": b.Writable(t.Context())} {
				if (err == nil) != (i == 0) || err != nil && !errors.Is(err, sqlletters.ErrNoTable) {
					t.Errorf("%s, with the table gone %d times: %v", what, i, err)
				}
			}
			if i > 0 {
				break
			}
			for item, err := range b.Items(t.Context()) {
				t.Errorf("the trial left %+v, %v", item, err)
			}
			if _, err := db.ExecContext(t.Context(), "DROP TABLE trial"); err != nil {
				t.Fatal(err)
			}
		}
	})
	t.Run("no more is remembered than the marks in the table", func(t *testing.T) {
		b, db := open(t, "remembered")
		remembered := func() int { return reflect.ValueOf(b).Elem().FieldByName("marks").FieldByName("of").Len() }
		for round := range 2 {
			for _, id := range []string{"a", "b", "c"} {
				if err := b.Put(t.Context(), []deadletter.Letter{{Version: deadletter.Version, ID: fmt.Sprint(id, round)}}); err != nil {
					t.Fatal(err)
				}
			}
			for marked := range 2 {
				for _, err := range b.Items(t.Context()) {
					if err != nil {
						t.Fatal(err)
					}
				}
				if n := remembered(); n != marked {
					t.Errorf("round %d: %d dead letters are remembered, of which %d are marked", round, n, marked)
				}
				if err := b.Mark(t.Context(), deadletter.Done, fmt.Sprint("b", round)); err != nil {
					t.Fatal(err)
				}
			}
			if _, err := db.ExecContext(t.Context(), "DELETE FROM remembered"); err != nil {
				t.Fatal(err)
			}
		}
	})
	t.Run("a damaged row spoils no other", func(t *testing.T) {
		b, db := open(t, "")
		for _, id := range []string{"a", "b", "c", "d", "e"} {
			if err := b.Put(t.Context(), []deadletter.Letter{{Version: deadletter.Version, ID: id}}); err != nil {
				t.Fatal(err)
			}
		}
		for _, change := range []string{"letter = '{' WHERE seq = 1", `letter = '{"weir_letter":2,"id":"x"}' WHERE seq = 2`, "state = 'lost' WHERE seq = 3", "letter = '{}' WHERE seq = 4"} {
			if _, err := db.ExecContext(t.Context(), "UPDATE weir_letters SET "+change); err != nil {
				t.Fatal(err)
			}
		}
		var failed []string
		for i, err := range b.Items(t.Context()) {
			if err != nil {
				failed = append(failed, err.Error())
			} else if i.ID != "e" {
				t.Errorf("%+v", i)
			}
		}
		if all := strings.Join(failed, "\n"); len(failed) != 4 || !strings.Contains(all, "row 1 is not a dead letter: ") || !strings.Contains(all, "row 2 is not a dead letter: it has form 2") ||
			!strings.Contains(all, `row 3: its state is "lost"`) || !strings.Contains(all, `row 4 is not a dead letter: it has no "weir_letter"`) {
			t.Errorf("%s", all)
		}
	})
}

func TestSQLite(t *testing.T) {
	contract(t, "sqlite", filepath.Join(t.TempDir(), "letters.db")+"?_pragma=busy_timeout(10000)", sqlletters.SQLite)
}

func TestPostgres(t *testing.T) {
	url := servers.Postgres(t).PostgresURL("weir")
	contract(t, "pgx", url, sqlletters.Postgres)
	t.Run("the rights that the guide names suffice", func(t *testing.T) {
		db, err := sql.Open("pgx", url)
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		for _, statement := range []string{
			"TRUNCATE weir_letters", "CREATE USER worker", "GRANT SELECT, INSERT, UPDATE ON weir_letters TO worker", "GRANT USAGE ON SEQUENCE weir_letters_seq_seq TO worker",
		} {
			if _, err := db.ExecContext(t.Context(), statement); err != nil {
				t.Fatal(err)
			}
		}
		as, err := sql.Open("pgx", strings.Replace(url, "weir@", "worker@", 1))
		if err != nil {
			t.Fatal(err)
		}
		defer as.Close()
		b, err := sqlletters.New(as, sqlletters.Postgres, "")
		if err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if err := b.Put(t.Context(), []deadletter.Letter{{Version: deadletter.Version, ID: "a"}}); err != nil {
				t.Fatal(err)
			}
		}
		if err := b.Mark(t.Context(), deadletter.Done, "a"); err != nil {
			t.Fatal(err)
		}
		for i, err := range b.Items(t.Context()) {
			if err != nil || i.State != deadletter.Done {
				t.Errorf("%+v, %v", i, err)
			}
		}
	})
}

func TestMariaDB(t *testing.T) {
	contract(t, "mysql", servers.MariaDB(t).MySQLDSN("weir"), sqlletters.MySQL)
}

func TestMySQL(t *testing.T) {
	contract(t, "mysql", servers.MySQL(t).MySQLDSN("weir"), sqlletters.MySQL)
}
