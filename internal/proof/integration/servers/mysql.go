package servers

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
)

// MySQL starts a MySQL server with an empty database named weir. The server does not wait until its
// logs are on disk.
func MySQL(t testing.TB) *Database {
	t.Helper()
	dir := fetched(t, "mysql")
	server := released(t, dir, "usr/sbin/mysqld")
	d := newDatabase(t, "MySQL", false)
	// Every local user may connect to the server.
	account := filepath.Join(d.Dir, "account.sql")
	const statements = "CREATE USER IF NOT EXISTS weir@'127.0.0.1';\nGRANT ALL ON *.* TO weir@'127.0.0.1' WITH GRANT OPTION;\n"
	if err := os.WriteFile(account, []byte(statements), 0o600); err != nil {
		t.Fatal(err)
	}
	share := filepath.Join(dir, "usr", "share", "mysql")
	command := func(more ...string) *exec.Cmd {
		args := slices.Concat(server, []string{"--no-defaults", "--basedir=" + filepath.Join(dir, "usr"), "--datadir=" + filepath.Join(d.Dir, "data"),
			"--lc-messages-dir=" + share, "--character-sets-dir=" + filepath.Join(share, "charsets"), "--tmpdir=" + d.Dir,
			"--innodb-buffer-pool-size=32M", "--innodb-redo-log-capacity=16M", "--innodb-flush-log-at-trx-commit=2", "--sync-binlog=0",
			"--innodb-use-native-aio=0", "--mysqlx=OFF", "--secure-file-priv=NULL"}, asRoot(), more)
		return exec.Command(args[0], args[1:]...)
	}
	d.run(command("--initialize-insecure"))
	d.command = func() *exec.Cmd {
		return command("--bind-address=127.0.0.1", "--port="+d.Port(), "--socket="+filepath.Join(d.Dir, "socket"),
			"--pid-file="+filepath.Join(d.Dir, "pid"), "--init-file="+account, "--skip-name-resolve", "--max-connections=200")
	}
	d.ready = func(ctx context.Context) error { return pingSQL(ctx, "mysql", d.MySQLDSN("")) }
	d.boot()
	create(t, "mysql", d.MySQLDSN(""))
	return d
}

// asRoot returns the arguments that allow MySQL and MariaDB to run as root.
func asRoot() []string {
	if os.Geteuid() != 0 {
		return nil
	}
	return []string{"--user=root"}
}
