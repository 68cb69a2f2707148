package sqlitefile

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"

	"github.com/weir-go/weir/deadletter/sqlletters"
)

// Letters contains dead letters in a SQLite file. Close it after the last use.
type Letters struct {
	*sqlletters.Box
	db *sql.DB
}

// Close closes the file.
func (l *Letters) Close() error { return l.db.Close() }

// OpenLetters opens the dead letters in a file. If create is true, it creates the file and its
// table if they are missing. Only the owner can read the file, because dead letters contain
// records.
func OpenLetters(ctx context.Context, path string, create bool) (*Letters, error) {
	if path == "" {
		return nil, errors.New("dead letters in SQLite need a path, such as sqlite:letters.db")
	}
	if _, err := os.Stat(path); !create && errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("there is no SQLite file %s: is --dead right, and has any record been dead-lettered yet?", path)
	}
	if err := check(path, create); err != nil {
		return nil, err
	}
	if create {
		f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
		if err == nil {
			err = f.Close()
		}
		if err != nil {
			return nil, fmt.Errorf("the SQLite file %s cannot be written: %w", path, err)
		}
	}
	name, err := dataSource(path, create)
	if err != nil {
		return nil, err
	}
	// Workers and users who retry dead letters may write at the same time, so wait for their locks.
	db, err := sql.Open("sqlite", name+"&_pragma=busy_timeout(10000)")
	if err != nil {
		return nil, fmt.Errorf("the SQLite file %s cannot be opened: %w", path, err)
	}
	l := &Letters{db: db}
	if l.Box, err = sqlletters.New(db, sqlletters.SQLite, ""); err == nil && create {
		if err = l.Migrate(ctx); err != nil {
			err = fmt.Errorf("the SQLite file %s: %w", path, err)
		}
	}
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return l, nil
}
