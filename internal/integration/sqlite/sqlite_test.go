// Package sqlite tests sqlstore on SQLite, with a driver that needs no C compiler.
package sqlite

import (
	"database/sql"
	"path/filepath"
	"sync"
	"testing"

	_ "modernc.org/sqlite"

	"github.com/weir-go/weir/lease"
	"github.com/weir-go/weir/store/sqlstore"
	"github.com/weir-go/weir/store/storetest"
)

// open opens the file as another process would.
func open(t testing.TB, path string) (*sqlstore.Store, *sql.DB) {
	t.Helper()
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	s, err := sqlstore.New(db, sqlstore.Options{Dialect: sqlstore.SQLite})
	if err != nil {
		t.Fatal(err)
	}
	return s, db
}

// files remembers where the stores that the suite opened keep their data.
var files sync.Map

var harness = storetest.Harness{
	Open: func(t testing.TB) lease.Store {
		path := filepath.Join(t.TempDir(), "leases.db")
		s, _ := open(t, path)
		if err := s.Migrate(t.Context()); err != nil {
			t.Fatal(err)
		}
		files.Store(s, path)
		return s
	},
	Again: func(t testing.TB, s lease.Store) lease.Store {
		path, _ := files.Load(s)
		again, _ := open(t, path.(string))
		return again
	},
	Steps: steps,
}

func TestContract(t *testing.T) { storetest.Run(t, harness) }

func BenchmarkStore(b *testing.B) { storetest.Bench(b, harness) }
