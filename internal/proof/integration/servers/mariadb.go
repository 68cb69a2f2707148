package servers

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	_ "github.com/go-sql-driver/mysql" // the driver "mysql"
)

// MariaDB starts a MariaDB server with an empty database named weir. The server does not wait until
// its log is on disk.
func MariaDB(t testing.TB) *Database {
	t.Helper()
	dir := fetched(t, "debian")
	env := environment(t, dir)
	server := program(t, dir, "usr/sbin/mariadbd")
	d := newDatabase(t, "MariaDB", false)
	data := filepath.Join(d.Dir, "data")
	share := filepath.Join(dir, "usr", "share", "mysql")
	common := append([]string{"--no-defaults", "--datadir=" + data, "--lc-messages-dir=" + share, "--tmpdir=" + d.Dir,
		"--plugin-dir=" + d.Dir, "--innodb-buffer-pool-size=32M", "--innodb-log-file-size=16M",
		"--innodb-flush-log-at-trx-commit=2", "--skip-name-resolve", "--innodb-use-native-aio=0"}, asRoot()...)

	// This script replaces mariadb-install-db, without its helper programs.
	var script strings.Builder
	script.WriteString("CREATE DATABASE mysql;\nUSE mysql;\n")
	for _, name := range []string{"mysql_system_tables.sql", "mysql_performance_tables.sql", "mysql_system_tables_data.sql"} {
		text, err := os.ReadFile(filepath.Join(share, name))
		if err != nil {
			t.Fatal(err)
		}
		script.Write(text)
		script.WriteByte('\n')
	}
	if err := os.Mkdir(data, 0o700); err != nil {
		t.Fatal(err)
	}
	bootstrap := exec.Command(server, append(common, "--bootstrap", "--skip-grant-tables")...)
	bootstrap.Env, bootstrap.Stdin = env, strings.NewReader(script.String())
	d.run(bootstrap)

	d.command = func() *exec.Cmd {
		cmd := exec.Command(server, append(common, "--bind-address=127.0.0.1", "--port="+d.Port(),
			"--socket="+filepath.Join(d.Dir, "socket"), "--pid-file="+filepath.Join(d.Dir, "pid"), "--skip-grant-tables",
			"--skip-networking=0", "--max-connections=200")...)
		cmd.Env = env
		return cmd
	}
	d.ready = func(ctx context.Context) error { return pingSQL(ctx, "mysql", d.MySQLDSN("")) }
	d.boot()
	create(t, "mysql", d.MySQLDSN(""))
	return d
}

// MySQLDSN returns the data source name of one of the server's databases.
func (d *Database) MySQLDSN(database string) string {
	return "weir@tcp(" + d.Addr + ")/" + database + "?interpolateParams=true&timeout=5s"
}
