package sqltable

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"io"
	"strings"
	"testing"
)

// server is a database. The first attempts to create the table return an error, and fails is the
// number of these attempts. The table exists from attempt number there on.
type server struct{ fails, there, creates int }

func (s *server) Connect(context.Context) (driver.Conn, error) { return s, nil }
func (s *server) Driver() driver.Driver                        { return nil }
func (s *server) Begin() (driver.Tx, error)                    { return nil, errors.New("no transactions") }
func (s *server) Close() error                                 { return nil }
func (s *server) Prepare(string) (driver.Stmt, error)          { return nil, errors.New("no statements") }

func (s *server) ExecContext(context.Context, string, []driver.NamedValue) (driver.Result, error) {
	if s.creates++; s.creates <= s.fails {
		return nil, errors.New("SQLSTATE 42P07")
	}
	return driver.ResultNoRows, nil
}

func (s *server) QueryContext(context.Context, string, []driver.NamedValue) (driver.Rows, error) {
	if s.creates < s.there {
		return nil, errors.New("SQLSTATE 42P01")
	}
	return none{}, nil
}

type none struct{}

func (none) Columns() []string         { return nil }
func (none) Close() error              { return nil }
func (none) Next([]driver.Value) error { return io.EOF }

func TestMake(t *testing.T) {
	for name, row := range map[string]struct {
		server
		creates int
		fails   string
	}{
		"alone":                              {server{}, 1, ""},
		"another process made it first":      {server{fails: 9}, 1, ""},
		"another process is not done yet":    {server{fails: 2, there: 3}, 3, ""},
		"a user who may not make it":         {server{fails: 9, there: 9}, tries, "SQLSTATE 42P07"},
		"a table of another program's shape": {server{there: 9}, 1, "SQLSTATE 42P01"},
	} {
		t.Run(name, func(t *testing.T) {
			db := sql.OpenDB(&row.server)
			defer db.Close()
			err := Make(t.Context(), db, "CREATE", "SELECT")
			if (err == nil) != (row.fails == "") || err != nil && !strings.Contains(err.Error(), row.fails) || row.server.creates != row.creates {
				t.Errorf("%v after %d attempts, want %q after %d", err, row.server.creates, row.fails, row.creates)
			}
		})
	}
}

func TestNumbered(t *testing.T) {
	for query, want := range map[string]string{
		"SELECT 1":                       "SELECT 1",
		"WHERE a = ? AND b IN (?, ?)":    "WHERE a = $1 AND b IN ($2, $3)",
		"?":                              "$1",
		"UPDATE t SET a = ? WHERE b = ?": "UPDATE t SET a = $1 WHERE b = $2",
	} {
		if got := Numbered(query); got != want {
			t.Errorf("%q becomes %q, want %q", query, got, want)
		}
	}
}
