package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync"
)

// errOtherFile is wrapped by errors while the path of a SQLite file does not lead to the file that
// was opened.
var errOtherFile = errors.New("it was deleted, moved or replaced while it was in use: put it back, or stop all workers and start them again")

// file identifies the SQLite file of a store. A process keeps using an open file even if its path
// now leads to another file or to none. Other processes and later connections would use another
// file, and two workers could hold the same lease.
type file struct {
	mu    sync.Mutex
	known bool
	path  string      // as reported by SQLite
	info  fs.FileInfo // nil if there is nothing to check, for example for a database in memory
}

// look checks that the path still leads to the file. It costs one stat call.
func (f *file) look() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.info == nil {
		return nil
	}
	there, err := os.Stat(f.path)
	switch {
	case errors.Is(err, fs.ErrNotExist), err == nil && !os.SameFile(f.info, there):
		return fmt.Errorf("sqlstore: the SQLite file %s: %w", f.path, errOtherFile)
	default: // other errors of stat do not concern the identity of the file
		return nil
	}
}

// learn reads the path of the open file from a connection, once.
func (f *file) learn(ctx context.Context, c *sql.Conn) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.known {
		return nil
	}
	rows, err := c.QueryContext(ctx, "PRAGMA database_list")
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var (
			n          int
			name, path sql.NullString
		)
		if err := rows.Scan(&n, &name, &path); err != nil {
			return err
		}
		if name.String == "main" {
			f.path = path.String
		}
	}
	if err := rows.Err(); err != nil {
		return err
	}
	if f.known = true; f.path != "" {
		f.info, _ = os.Stat(f.path) // fails if a driver uses virtual files
	}
	return nil
}
