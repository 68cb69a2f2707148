// Package sqlite tests sqlstore on SQLite, with a driver that needs no C compiler.
package sqlite

import (
	"database/sql"
	"path/filepath"
	"sync"
	"testing"

	_ "modernc.org/sqlite"

	"github.com/weir-go/weir/internal/proof/integration/sqltest"
	"github.com/weir-go/weir/lease"
	"github.com/weir-go/weir/store/sqlstore"
	"github.com/weir-go/weir/store/storetest"
)

var sqlite = sqltest.Kind{Driver: "sqlite", Dialect: sqlstore.SQLite}

// empty returns the path of a file that does not exist yet.
func empty(t testing.TB) string { return filepath.Join(t.TempDir(), "leases.db") }

// open opens the file like a separate process.
func open(t testing.TB, path string) (*sqlstore.Store, *sql.DB) {
	t.Helper()
	return sqlite.Open(t, path, sqlstore.Options{})
}

// files contains the paths of the stores that the tests have opened.
var files sync.Map

var harness = storetest.Harness{
	Open: func(t testing.TB) lease.Store {
		path := empty(t)
		s, _ := sqlite.Migrated(t, path)
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
