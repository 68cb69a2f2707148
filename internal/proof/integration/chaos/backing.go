package main

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/weir-go/weir/internal/proof/integration/servers"
)

// backing is the store of a run: a server or a file.
type backing interface {
	// place returns the address of the store for workers. If workers use a proxy, addr is the
	// address of the proxy; otherwise it is "".
	place(addr string) string
	address() string // host and port; "" for a file

	// The following methods are only for servers.
	kill()
	start() error

	// The following methods are only for files.
	lock() (unlock func() error, err error)
	held() (bool, error) // reports whether another process holds the lock of the file
	endless() error      // returns the reason why the disk cannot be filled; nil if it can
	fill() error
	free() error
}

func newBacking(t testing.TB, kind, dir string) (backing, error) {
	dir = filepath.Join(dir, "store")
	if err := os.Mkdir(dir, 0o700); err != nil {
		return nil, err
	}
	switch kind {
	case servers.PostgresStore:
		return &postgres{database{d: servers.Postgres(t)}}, nil
	case servers.RedisStore:
		return &redis{database{d: servers.Redis(t)}}, nil
	case servers.DynamoDBStore:
		return &dynamo{t: t, dir: dir, s: servers.DynamoDBLocalOn(t, dir)}, nil
	case servers.SQLiteStore:
		f := &sqlite{dir: dir}
		unmount, err := mountSmall(dir)
		if err != nil {
			f.unlimited = err
		} else {
			t.Cleanup(func() {
				if err := unmount(); err != nil {
					t.Error(err)
				}
			})
		}
		return f, nil
	}
	return nil, fmt.Errorf("no store is called %q", kind)
}

// noFile implements the methods for files that a server does not support.
type noFile struct{}

var errNotThere = errors.New("this store cannot do that")

func (noFile) lock() (func() error, error) { return nil, errNotThere }
func (noFile) held() (bool, error)         { return false, nil }
func (noFile) endless() error              { return errNotThere }
func (noFile) fill() error                 { return errNotThere }
func (noFile) free() error                 { return errNotThere }

// database is a server that keeps its data in a directory.
type database struct {
	noFile
	d *servers.Database
}

func (d *database) address() string { return d.d.Addr }

func (d *database) kill() { d.d.Kill() }

// start starts the server. It retries for a while, because the processes of a killed server need a
// moment to end.
func (d *database) start() error {
	for try := 1; ; try++ {
		err := d.d.TryStart()
		if err == nil || try == 20 {
			return err
		}
		<-time.After(200 * time.Millisecond)
	}
}

type postgres struct{ database }

func (p *postgres) place(addr string) string {
	return (&servers.Database{Addr: cmp.Or(addr, p.d.Addr)}).PostgresURL("weir")
}

// redis is a Redis server that writes each change to disk before it answers. A kill then loses no
// change.
type redis struct{ database }

func (r *redis) place(addr string) string { return cmp.Or(addr, r.d.Addr) }

type dynamo struct {
	noFile
	t   testing.TB
	dir string
	s   *servers.Server
}

func (d *dynamo) address() string { return strings.TrimPrefix(d.s.URL, "http://") }

func (d *dynamo) place(addr string) string {
	if addr == "" {
		addr = d.address()
	}
	return "http://" + addr
}

func (d *dynamo) kill() { d.s.Kill() }

func (d *dynamo) start() error {
	d.s = servers.DynamoDBLocalOn(d.t, d.dir)
	return nil
}

// sqlite is a file. It is on a small separate disk if this user may mount one.
type sqlite struct {
	dir       string
	unlimited error // reason why there is no separate disk
}

func (f *sqlite) address() string     { return "" }
func (f *sqlite) place(string) string { return filepath.Join(f.dir, "leases.db") }
func (f *sqlite) kill()               {}
func (f *sqlite) start() error        { return errNotThere }

// lock locks the file like another writer.
func (f *sqlite) lock() (func() error, error) { return f.lockWithin(5 * time.Second) }

// held reports whether the file is locked. It waits for the lock for longer than any write takes.
// With the default failover time, the wait is shorter than any freeze.
func (f *sqlite) held() (bool, error) {
	unlock, err := f.lockWithin(250 * time.Millisecond)
	if err != nil {
		if strings.Contains(err.Error(), "locked") {
			return true, nil
		}
		return false, err
	}
	return false, unlock()
}

func (f *sqlite) lockWithin(d time.Duration) (func() error, error) {
	ctx := context.Background()
	db, err := sql.Open("sqlite", f.place(""))
	if err != nil {
		return nil, err
	}
	c, err := db.Conn(ctx)
	if err == nil {
		_, err = c.ExecContext(ctx, fmt.Sprintf("PRAGMA busy_timeout = %d", d.Milliseconds()))
	}
	if err == nil {
		_, err = c.ExecContext(ctx, "BEGIN IMMEDIATE")
	}
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return func() error {
		_, err := c.ExecContext(ctx, "ROLLBACK")
		return errors.Join(err, c.Close(), db.Close())
	}, nil
}

func (f *sqlite) endless() error { return f.unlimited }

func (f *sqlite) ballast() string { return filepath.Join(f.dir, "ballast") }

// fill fills the disk completely. The write-ahead log could continue in the space that it already
// has. So fill truncates the log and fills the freed space too.
func (f *sqlite) fill() error {
	db, err := sql.Open("sqlite", f.place(""))
	if err != nil {
		return err
	}
	defer db.Close()
	for range 3 {
		if err := appendUntilFull(f.ballast()); err != nil {
			return err
		}
		if _, err := db.Exec("PRAGMA busy_timeout = 300"); err != nil {
			return err
		}
		if _, err := db.Exec("PRAGMA wal_checkpoint(TRUNCATE)"); err != nil && !strings.Contains(err.Error(), "locked") {
			return err
		}
	}
	return appendUntilFull(f.ballast())
}

func (f *sqlite) free() error { return os.Remove(f.ballast()) }
