// Package sqlitefile opens a SQLite file as a store of leases or dead letters.
package sqlitefile

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	_ "modernc.org/sqlite" // the driver "sqlite", which needs no cgo, so that weir stays one static program

	"github.com/weir-go/weir/store/sqlstore"
)

// File is a lease store in a SQLite file. Close it after the last use.
type File struct {
	*sqlstore.Store
	db *sql.DB
}

// Open opens the file. If create is true, it creates the file and its tables if they are missing. A
// file needs no separate setup command as other stores do: it costs nothing, and needs no special
// permissions. If create is false, a missing file is an error.
func Open(ctx context.Context, path string, create bool) (*File, error) {
	if path == "" {
		return nil, errors.New("a SQLite store needs a path, such as sqlite:weir.db")
	}
	if err := check(path, create); err != nil {
		return nil, err
	}
	name, err := dataSource(path, create)
	if err != nil {
		return nil, err
	}
	db, err := sql.Open("sqlite", name)
	if err != nil {
		return nil, fmt.Errorf("the SQLite file %s cannot be opened: %w", path, err)
	}
	f := &File{db: db}
	f.Store, err = sqlstore.New(db, sqlstore.Options{Dialect: sqlstore.SQLite})
	if err == nil && create {
		if err = f.Migrate(ctx); err != nil {
			err = fmt.Errorf("the SQLite file %s: %w", path, err)
		}
	}
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return f, nil
}

// Close closes the file.
func (f *File) Close() error { return f.db.Close() }

// check returns an error if the path is wrong. Its texts are clearer than those of SQLite.
func check(path string, create bool) error {
	info, err := os.Stat(path)
	switch {
	case err == nil && info.IsDir():
		return fmt.Errorf("%s is a directory: name a file in it", path)
	case err == nil:
		return nil
	case errors.Is(err, fs.ErrNotExist) && !create:
		return fmt.Errorf("there is no SQLite file %s: check the path; the first worker of an application makes it", path)
	case errors.Is(err, fs.ErrNotExist):
		if _, err := os.Stat(filepath.Dir(path)); err != nil {
			return fmt.Errorf("the SQLite file %s cannot be made: there is no directory %s", path, filepath.Dir(path))
		}
		return nil
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("the SQLite file %s may not be read: give this user the right to read and write it and its directory", path)
	default:
		return fmt.Errorf("the SQLite file %s cannot be opened: %w", path, err)
	}
}

// dataSource returns the path as a URI. It escapes all characters that have a special meaning.
func dataSource(path string, create bool) (string, error) {
	whole, err := filepath.Abs(path)
	if err != nil {
		return "", fmt.Errorf("the SQLite file %s: %w", path, err)
	}
	mode := "rw"
	if create {
		mode = "rwc"
	}
	u := url.URL{Scheme: "file", Path: "/" + strings.TrimPrefix(filepath.ToSlash(whole), "/"), RawQuery: "mode=" + mode}
	return u.String(), nil
}
