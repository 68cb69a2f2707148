package sqlite

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"testing"

	"github.com/weir-go/weir/store/sqlstore"
)

// hooks contains functions that are called for each statement of the driver. An error of a function
// fails the statement.
type hooks struct {
	before, after func(statement string) error
	// panics is called after a prepared statement that returns no rows. If it returns true, reading
	// the result of the statement panics. A panic inside the driver would leave locks of
	// database/sql held.
	panics func() bool
}

type panickingResult struct{ driver.Result }

func (panickingResult) RowsAffected() (int64, error) { panic(errFault) }

func (h *hooks) around(statement string, do func() error) error {
	if h.before != nil {
		if err := h.before(statement); err != nil {
			return err
		}
	}
	err := do()
	if h.after != nil && err == nil {
		err = h.after(statement)
	}
	return err
}

// hooked opens a store whose statements call the hooks.
func hooked(t testing.TB, path string) (*sqlstore.Store, *sql.DB, *hooks) {
	t.Helper()
	plain, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	defer plain.Close()
	h := &hooks{}
	db := sql.OpenDB(connector{plain.Driver(), path, h})
	t.Cleanup(func() { db.Close() })
	s, err := sqlstore.New(db, sqlstore.Options{Dialect: sqlstore.SQLite})
	if err != nil {
		t.Fatal(err)
	}
	return s, db, h
}

type connector struct {
	driver driver.Driver
	path   string
	hooks  *hooks
}

func (c connector) Driver() driver.Driver { return c.driver }

func (c connector) Connect(context.Context) (driver.Conn, error) {
	inner, err := c.driver.Open(c.path)
	if err != nil {
		return nil, err
	}
	return conn{inner, c.hooks}, nil
}

type conn struct {
	driver.Conn
	hooks *hooks
}

func (c conn) PrepareContext(ctx context.Context, query string) (driver.Stmt, error) {
	s, err := c.Conn.(driver.ConnPrepareContext).PrepareContext(ctx, query)
	if err != nil {
		return nil, err
	}
	return stmt{s, query, c.hooks}, nil
}

func (c conn) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (res driver.Result, err error) {
	err = c.hooks.around(query, func() (err error) {
		res, err = c.Conn.(driver.ExecerContext).ExecContext(ctx, query, args)
		return err
	})
	return res, err
}

func (c conn) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (rows driver.Rows, err error) {
	err = c.hooks.around(query, func() (err error) {
		rows, err = c.Conn.(driver.QueryerContext).QueryContext(ctx, query, args)
		return err
	})
	return rows, err
}

type stmt struct {
	driver.Stmt
	query string
	hooks *hooks
}

func (s stmt) ExecContext(ctx context.Context, args []driver.NamedValue) (res driver.Result, err error) {
	err = s.hooks.around(s.query, func() (err error) {
		res, err = s.Stmt.(driver.StmtExecContext).ExecContext(ctx, args)
		return err
	})
	if err == nil && s.hooks.panics != nil && s.hooks.panics() {
		res = panickingResult{res}
	}
	return res, err
}

func (s stmt) QueryContext(ctx context.Context, args []driver.NamedValue) (rows driver.Rows, err error) {
	err = s.hooks.around(s.query, func() (err error) {
		rows, err = s.Stmt.(driver.StmtQueryContext).QueryContext(ctx, args)
		return err
	})
	if err != nil && rows != nil {
		rows.Close()
		rows = nil
	}
	return rows, err
}
