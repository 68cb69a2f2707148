package postgres_test

import (
	"flag"
	"testing"

	"github.com/weir-go/weir/internal/proof/integration/servers"
	"github.com/weir-go/weir/internal/proof/integration/sinks"
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

func BenchmarkSink(b *testing.B) { sinks.Bench(b, place(b)) }
