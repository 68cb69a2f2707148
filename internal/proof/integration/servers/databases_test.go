package servers_test

import (
	"bufio"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/weir-go/weir/internal/proof/integration/servers"
)

// sqlSays returns a function that queries one value of a database.
func sqlSays(driver, dsn string) func(t *testing.T, statement string) string {
	return func(t *testing.T, statement string) string {
		t.Helper()
		db, err := sql.Open(driver, dsn)
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		var s string
		if strings.HasPrefix(statement, "SELECT") {
			err = db.QueryRowContext(t.Context(), statement).Scan(&s)
		} else {
			_, err = db.ExecContext(t.Context(), statement)
		}
		if err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
		return s
	}
}

func redisSays(addr string) func(t *testing.T, statement string) string {
	return func(t *testing.T, statement string) string {
		t.Helper()
		c, err := net.DialTimeout("tcp", addr, 5*time.Second)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		fmt.Fprintf(c, "%s\r\n", statement)
		lines := bufio.NewReader(c)
		line, err := lines.ReadString('\n')
		if strings.HasPrefix(line, "$") && err == nil {
			line, err = lines.ReadString('\n')
		}
		if err != nil && !errors.Is(err, io.EOF) {
			t.Fatal(err)
		}
		return strings.TrimSpace(line)
	}
}

func TestDatabasesKeepTheirDataOverRestartsAndCrashes(t *testing.T) {
	for _, c := range []struct {
		name              string
		start             func(testing.TB) *servers.Database
		says              func(*servers.Database) func(*testing.T, string) string
		table, write, ask string
	}{
		{"Postgres", servers.Postgres, func(d *servers.Database) func(*testing.T, string) string {
			return sqlSays("pgx", d.PostgresURL("weir"))
		},
			"CREATE TABLE t (v TEXT)", "INSERT INTO t VALUES ('kept')", "SELECT v FROM t"},
		{"MariaDB", servers.MariaDB, func(d *servers.Database) func(*testing.T, string) string { return sqlSays("mysql", d.MySQLDSN("weir")) },
			"CREATE TABLE t (v VARCHAR(9))", "INSERT INTO t VALUES ('kept')", "SELECT v FROM t"},
		{"MySQL", servers.MySQL, func(d *servers.Database) func(*testing.T, string) string { return sqlSays("mysql", d.MySQLDSN("weir")) },
			"CREATE TABLE t (v VARCHAR(9))", "INSERT INTO t VALUES ('kept')", "SELECT v FROM t"},
		{"Redis", func(t testing.TB) *servers.Database { return servers.Redis(t) },
			func(d *servers.Database) func(*testing.T, string) string { return redisSays(d.Addr) },
			"PING", "SET v kept", "GET v"},
		{"Valkey", func(t testing.TB) *servers.Database { return servers.Valkey(t) },
			func(d *servers.Database) func(*testing.T, string) string { return redisSays(d.Addr) },
			"PING", "SET v kept", "GET v"},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := c.start(t)
			if ip, _, _ := net.SplitHostPort(d.Addr); !net.ParseIP(ip).IsLoopback() {
				t.Errorf("it listens on %s", d.Addr)
			}
			says, addr := c.says(d), d.Addr
			says(t, c.table)
			says(t, c.write)
			d.Restart()
			if got := says(t, c.ask); got != "kept" || d.Addr != addr {
				t.Errorf("after a restart it says %q at %s, was at %s", got, d.Addr, addr)
			}
			d.Kill()
			if c, err := net.DialTimeout("tcp", addr, time.Second); err == nil {
				c.Close()
				t.Error("it was killed and still listens")
			}
			d.Start()
			if got := says(t, c.ask); got != "kept" {
				t.Errorf("after a crash it says %q", got)
			}
		})
	}
}
