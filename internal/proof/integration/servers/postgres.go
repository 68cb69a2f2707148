package servers

import (
	"context"
	"database/sql"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	_ "github.com/jackc/pgx/v5/stdlib" // the driver "pgx"
)

// Postgres starts a PostgreSQL server with an empty database named weir. The server does not sync
// to disk, so its data survives a crash of the server but not of the machine.
func Postgres(t testing.TB) *Database {
	t.Helper()
	dir := fetched(t, "debian")
	d := newDatabase(t, "Postgres", true)
	dir = d.reachable(dir)
	env := environment(t, dir)
	bin := filepath.Dir(program(t, dir, "usr/lib/postgresql/*/bin/postgres"))
	d.stop = syscall.SIGINT // ends sessions first; SIGTERM would wait for clients
	data := filepath.Join(d.Dir, "data")
	initdb := exec.Command(filepath.Join(bin, "initdb"), "--pgdata="+data, "--username=weir", "--auth=trust", "--encoding=UTF8",
		"--locale=C", "--no-sync", "--no-instructions")
	initdb.Env = env
	d.run(initdb)
	d.command = func() *exec.Cmd {
		cmd := exec.Command(filepath.Join(bin, "postgres"), "-D", data, "-p", d.Port(), "-c", "listen_addresses=127.0.0.1",
			"-c", "unix_socket_directories=", "-c", "fsync=off", "-c", "full_page_writes=off", "-c", "max_connections=200",
			"-c", "shared_buffers=32MB", "-c", "jit=off", "-c", "deadlock_timeout=200ms")
		cmd.Env = env
		return cmd
	}
	d.ready = func(ctx context.Context) error { return pingSQL(ctx, "pgx", d.PostgresURL("postgres")) }
	d.boot()
	create(t, "pgx", d.PostgresURL("postgres"))
	return d
}

// PostgresURL returns the data source name of one of the server's databases.
func (d *Database) PostgresURL(database string) string {
	return "postgres://weir@" + d.Addr + "/" + database + "?sslmode=disable&connect_timeout=5"
}

func pingSQL(ctx context.Context, driver, dsn string) error {
	db, err := sql.Open(driver, dsn)
	if err != nil {
		return err
	}
	defer db.Close()
	return db.PingContext(ctx)
}

// create creates the database weir.
func create(t testing.TB, driver, dsn string) {
	t.Helper()
	db, err := sql.Open(driver, dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.ExecContext(t.Context(), "CREATE DATABASE weir"); err != nil {
		t.Fatal(err)
	}
}
