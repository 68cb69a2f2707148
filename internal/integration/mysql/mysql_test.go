// Package mysql_test holds sqlstore to the store contract on a real MariaDB.
package mysql_test

import (
	"testing"
	"time"

	"github.com/weir-go/weir/internal/integration/crowd"
	"github.com/weir-go/weir/internal/integration/servers"
	"github.com/weir-go/weir/internal/integration/sqltest"
	"github.com/weir-go/weir/store/sqlstore"
)

var mariadb = sqltest.Server{
	Kind:  sqltest.Kind{Driver: "mysql", Dialect: sqlstore.MySQL},
	Start: servers.MariaDB,
	DSN:   (*servers.Database).MySQLDSN,
	Other: "CREATE DATABASE other",
	Tables: "SELECT group_concat(table_name, '.', column_name, ' ', column_type, ' ', column_key ORDER BY table_name, ordinal_position) " +
		"FROM information_schema.columns WHERE table_schema = database()",

	Hold: []string{"SELECT * FROM weir_applications FOR UPDATE", "SELECT * FROM weir_sessions FOR UPDATE", "SELECT * FROM weir_leases FOR UPDATE"},
	// The server refreshes that table only when nobody has read it for a tenth of a second.
	Waiting: "SELECT count(*) FROM information_schema.innodb_trx WHERE trx_state = 'LOCK WAIT'", Look: 250 * time.Millisecond,
	Deadlock: "1213",

	Idle:      []string{"UPDATE weir_sessions", "SELECT me.beat,"},
	Saving:    []string{"UPDATE weir_sessions", "UPDATE (SELECT", "UPDATE (SELECT", "SELECT me.beat,"},
	Assigning: 5,
}

func TestMain(m *testing.M) { crowd.Main(m, mariadb.Place) }

func TestMariaDB(t *testing.T) { sqltest.Run(t, mariadb) }

func BenchmarkStore(b *testing.B) { sqltest.Bench(b, mariadb) }
