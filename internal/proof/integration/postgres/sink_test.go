package postgres_test

import (
	"context"
	"database/sql"
	"errors"
	"flag"
	"fmt"
	"strings"
	"testing"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/internal/proof/integration/servers"
	"github.com/weir-go/weir/internal/proof/integration/sinks"
	"github.com/weir-go/weir/internal/proof/integration/sqltest"
	"github.com/weir-go/weir/sink/sqlsink"
)

var full = flag.Bool("full", false, "the sizes of the documentation, which take minutes")

func place(t testing.TB) sinks.Place {
	d := postgres.Start(t)
	return sinks.Place{
		Driver: "pgx", Dialect: sqlsink.Postgres, Addr: d.Addr, Serial: "BIGSERIAL PRIMARY KEY", Store: servers.PostgresStore, Idle: true, Full: *full,
		Fresh: func(t testing.TB) string { return postgres.Fresh(t, d) },
	}
}

func TestSink(t *testing.T) { sinks.Run(t, place(t)) }

func TestQueueSink(t *testing.T) { sinks.RunQueues(t, place(t)) }

func BenchmarkSinkPartitions(b *testing.B) { sinks.BenchPartitions(b, place(b)) }

func BenchmarkSink(b *testing.B) { sinks.Bench(b, place(b)) }

// The permissions that the guide lists for a worker's user are sufficient, and all of them are
// needed.
func TestTheSinksUserNeedsFewRights(t *testing.T) {
	d := postgres.Start(t)
	dsn := postgres.Fresh(t, d)
	owner, err := sql.Open("pgx", dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { owner.Close() })
	db, err := sql.Open("pgx", strings.Replace(dsn, "weir@", "shop@", 1))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	open := func(db *sql.DB) *sqlsink.Sink {
		s, err := sqlsink.New(db, sqlsink.Options{Dialect: sqlsink.Postgres, App: "billing"})
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	sqltest.Exec(t, owner, open(owner).Schema())
	sqltest.Exec(t, owner, "CREATE USER shop")
	rights := []string{"SELECT", "INSERT", "UPDATE"}
	epoch := uint64(0)
	apply := func() error {
		epoch++
		shard := fmt.Sprint("shard-", epoch) // a new shard inserts a row
		h, err := open(db).Handlers(func(context.Context, *sql.Tx, *weir.Batch) error { return nil }).
			Open(t.Context(), weir.Term{Stream: "orders", Shard: shard, Epoch: epoch})
		if err != nil {
			return err
		}
		return h.Handle(t.Context(), &weir.Batch{Stream: "orders", Shard: shard, Epoch: epoch, End: true})
	}
	for i := range rights {
		for j, r := range rights {
			if j == i {
				sqltest.Exec(t, owner, "REVOKE "+r+" ON weir_positions FROM shop")
			} else {
				sqltest.Exec(t, owner, "GRANT "+r+" ON weir_positions TO shop")
			}
		}
		if err := apply(); err == nil {
			t.Errorf("it works without %s", rights[i])
		}
	}
	sqltest.Exec(t, owner, "GRANT SELECT, INSERT, UPDATE ON weir_positions TO shop")
	if err := errors.Join(apply(), open(db).Migrate(t.Context())); err != nil {
		t.Error(err)
	}
	if _, err := open(db).RemoveStream(t.Context(), "orders"); err == nil {
		t.Error("rows are removed without DELETE")
	}
}
