package sqlite

import (
	"flag"
	"testing"

	"github.com/weir-go/weir/internal/proof/integration/servers"
	"github.com/weir-go/weir/internal/proof/integration/sinks"
	"github.com/weir-go/weir/sink/sqlsink"
)

var full = flag.Bool("full", false, "the sizes of the documentation, which take minutes")

func place() sinks.Place {
	return sinks.Place{
		Driver: "sqlite", Dialect: sqlsink.SQLite, Serial: "INTEGER PRIMARY KEY AUTOINCREMENT", Store: servers.SQLiteStore, Full: *full,
		Fresh: func(t testing.TB) string {
			return "file:" + empty(t) + "?_pragma=busy_timeout(50)&_pragma=journal_mode(WAL)&_pragma=synchronous(0)"
		},
	}
}

func TestSink(t *testing.T) { sinks.Run(t, place()) }

func TestQueueSink(t *testing.T) { sinks.RunQueues(t, place()) }

func BenchmarkSink(b *testing.B) { sinks.Bench(b, place()) }
