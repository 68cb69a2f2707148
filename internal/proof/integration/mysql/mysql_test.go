// Package mysql_test runs the contract of stores with sqlstore on a real MariaDB and a real MySQL.
package mysql_test

import (
	"testing"
	"time"

	"github.com/weir-go/weir/internal/proof/integration/crowd"
	"github.com/weir-go/weir/internal/proof/integration/servers"
	"github.com/weir-go/weir/internal/proof/integration/sqltest"
	"github.com/weir-go/weir/internal/proof/integration/worker"
	"github.com/weir-go/weir/store/sqlstore"
)

var mariadb = sqltest.Server{
	Kind:  sqltest.Kind{Driver: "mysql", Dialect: sqlstore.MySQL},
	Start: servers.MariaDB,
	DSN:   (*servers.Database).MySQLDSN,
	Other: "CREATE DATABASE `order`",
	Tables: "SELECT group_concat(table_name, '.', column_name, ' ', column_type, ' ', column_key ORDER BY table_name, ordinal_position) " +
		"FROM information_schema.columns WHERE table_schema = database()",

	Hold: []string{"SELECT * FROM weir_applications FOR UPDATE", "SELECT * FROM weir_sessions FOR UPDATE", "SELECT * FROM weir_leases FOR UPDATE"},
	// The server refreshes this table only after a tenth of a second without reads.
	Waiting: "SELECT count(*) FROM information_schema.innodb_trx WHERE trx_state = 'LOCK WAIT'", Look: 250 * time.Millisecond,
	Deadlock: "1213",

	Idle:      []string{"UPDATE weir_sessions", "SELECT me.beat,"},
	Saving:    []string{"UPDATE weir_sessions", "UPDATE (SELECT", "SELECT me.beat,"},
	Assigning: 5,

	Page: "MySQL and MariaDB",
	// MariaDB is started without users, so create one.
	Admin: []string{"FLUSH PRIVILEGES", "CREATE USER IF NOT EXISTS weir@'127.0.0.1'", "GRANT ALL ON *.* TO weir@'127.0.0.1' WITH GRANT OPTION"},

	Impatient: "&wait_timeout=5",
}

func TestMain(m *testing.M) {
	worker.Main()
	crowd.Main(m, mariadb.Place)
}

// both runs a test on both servers. status is the table with the server's counters.
func both(t *testing.T, test func(t *testing.T, s sqltest.Server, status string)) {
	t.Run("MariaDB", func(t *testing.T) { test(t, mariadb, "information_schema.global_status") })
	t.Run("MySQL", func(t *testing.T) { test(t, proper(), "performance_schema.global_status") })
}

func TestMariaDB(t *testing.T) { sqltest.Run(t, mariadb) }

func TestMySQL(t *testing.T) { sqltest.Run(t, proper()) }

// proper returns the server MySQL itself, which differs from MariaDB.
func proper() sqltest.Server {
	s := mariadb
	s.Start = servers.MySQL
	return s
}

func BenchmarkStore(b *testing.B) {
	b.Run("MariaDB", func(b *testing.B) { sqltest.Bench(b, mariadb) })
	b.Run("MySQL", func(b *testing.B) { sqltest.Bench(b, proper()) })
}
