package sqltest

import (
	"context"
	"database/sql"
	"fmt"
	"sync"
	"testing"

	"github.com/weir-go/weir/deadletter/sqlletters"
	"github.com/weir-go/weir/internal/proof/integration/servers"
	"github.com/weir-go/weir/internal/proof/longform"
	"github.com/weir-go/weir/sink/sqlsink"
	"github.com/weir-go/weir/store/sqlstore"
)

// atOnce is the number of programs that set up a database at the same time.
const atOnce = 20

// dialects maps the dialects of sqlstore to those of other packages.
var dialects = map[sqlstore.Dialect]struct {
	letters sqlletters.Dialect
	sink    sqlsink.Dialect
}{
	sqlstore.SQLite:   {sqlletters.SQLite, sqlsink.SQLite},
	sqlstore.Postgres: {sqlletters.Postgres, sqlsink.Postgres},
	sqlstore.MySQL:    {sqlletters.MySQL, sqlsink.MySQL},
}

// SetUpAtOnce runs many programs that set up a new database at the same time: its leases, its
// positions and its dead letters. Each program has its own connections.
func SetUpAtOnce(t *testing.T, k Kind, dsn string) {
	rounds := 1
	if longform.On() {
		rounds = 10
	}
	var programs [atOnce]*sql.DB
	for i := range programs {
		_, programs[i] = k.Open(t, dsn, sqlstore.Options{})
		if err := programs[i].PingContext(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	for name, setUp := range map[string]func(ctx context.Context, db *sql.DB, prefix string) error{
		"leases": func(ctx context.Context, db *sql.DB, prefix string) error {
			s, err := sqlstore.New(db, sqlstore.Options{Dialect: k.Dialect, Prefix: prefix})
			if err == nil {
				err = s.Migrate(ctx)
			}
			return err
		},
		"positions": func(ctx context.Context, db *sql.DB, prefix string) error {
			s, err := sqlsink.New(db, sqlsink.Options{Dialect: dialects[k.Dialect].sink, App: "app", Table: prefix + "positions"})
			if err == nil {
				err = s.Migrate(ctx)
			}
			return err
		},
		"letters": func(ctx context.Context, db *sql.DB, prefix string) error {
			b, err := sqlletters.New(db, dialects[k.Dialect].letters, prefix+"letters")
			if err == nil {
				err = b.Migrate(ctx)
			}
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			for round := range rounds {
				start := make(chan struct{})
				var all sync.WaitGroup
				for _, db := range programs {
					all.Go(func() {
						<-start
						for range 2 { // the second call finds everything
							if err := setUp(t.Context(), db, fmt.Sprintf("r%d_", round)); err != nil {
								t.Errorf("round %d: %v", round, err)
							}
						}
					})
				}
				close(start)
				all.Wait()
			}
		})
	}
}

func setUpAtOnce(t *testing.T, s Server, d *servers.Database) {
	SetUpAtOnce(t, s.Kind, s.Fresh(t, d))
}
