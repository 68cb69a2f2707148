package mysql_test

import (
	"flag"
	"testing"

	"github.com/weir-go/weir/internal/proof/integration/servers"
	"github.com/weir-go/weir/internal/proof/integration/sinks"
	"github.com/weir-go/weir/internal/proof/integration/sqltest"
	"github.com/weir-go/weir/sink/sqlsink"
)

var full = flag.Bool("full", false, "the sizes of the documentation, which take minutes")

func place(t testing.TB, s sqltest.Server) sinks.Place {
	d := s.Start(t)
	return sinks.Place{
		Driver: "mysql", Dialect: sqlsink.MySQL, Addr: d.Addr, Serial: "BIGINT AUTO_INCREMENT PRIMARY KEY", Idle: true, IdleDSN: "&wait_timeout=1", Store: servers.MySQLStore, Full: *full,
		Fresh: func(t testing.TB) string { return s.Fresh(t, d) },
	}
}

func TestSinkOnMariaDB(t *testing.T) { sinks.Run(t, place(t, mariadb)) }

func TestSinkOnMySQL(t *testing.T) { sinks.Run(t, place(t, proper())) }

func TestQueueSinkOnMariaDB(t *testing.T) { sinks.RunQueues(t, place(t, mariadb)) }

func TestQueueSinkOnMySQL(t *testing.T) { sinks.RunQueues(t, place(t, proper())) }

func BenchmarkSink(b *testing.B) {
	b.Run("MariaDB", func(b *testing.B) { sinks.Bench(b, place(b, mariadb)) })
	b.Run("MySQL", func(b *testing.B) { sinks.Bench(b, place(b, proper())) })
}
