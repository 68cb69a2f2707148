// Package statements counts the statements that a store sends to a database. Each statement is a
// round trip.
package statements

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"strings"
	"sync"
	"testing"
)

// Log contains the statements since the last Take.
type Log struct {
	mu     sync.Mutex
	said   []string
	before func(statement string)
}

// Before sets a function that is called before each statement. nil removes the function.
func (l *Log) Before(do func(statement string)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.before = do
}

// Take returns the statements and removes them. Each is represented by its first few words.
func (l *Log) Take() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	said := l.said
	l.said = nil
	return said
}

func (l *Log) add(statement string) {
	words := strings.Fields(statement)
	l.mu.Lock()
	l.said = append(l.said, strings.Join(words[:min(len(words), 2)], " "))
	before := l.before
	l.mu.Unlock()
	if before != nil {
		before(statement)
	}
}

// Open opens a database whose statements are logged. The driver must execute statements without
// preparing them.
func Open(t testing.TB, driverName, dsn string) (*sql.DB, *Log) {
	t.Helper()
	plain, err := sql.Open(driverName, dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer plain.Close()
	log := &Log{}
	db := sql.OpenDB(connector{plain.Driver(), dsn, log})
	t.Cleanup(func() { db.Close() })
	return db, log
}

type connector struct {
	driver driver.Driver
	dsn    string
	log    *Log
}

func (c connector) Driver() driver.Driver { return c.driver }

func (c connector) Connect(ctx context.Context) (driver.Conn, error) {
	inner, err := c.driver.(driver.DriverContext).OpenConnector(c.dsn)
	if err != nil {
		return nil, err
	}
	made, err := inner.Connect(ctx)
	if err != nil {
		return nil, err
	}
	return conn{made, c.log}, nil
}

type conn struct {
	driver.Conn
	log *Log
}

func (c conn) PrepareContext(ctx context.Context, query string) (driver.Stmt, error) {
	c.log.add("PREPARE " + query)
	return c.Conn.(driver.ConnPrepareContext).PrepareContext(ctx, query)
}

func (c conn) CheckNamedValue(v *driver.NamedValue) error {
	return c.Conn.(driver.NamedValueChecker).CheckNamedValue(v)
}

func (c conn) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	c.log.add(query)
	return c.Conn.(driver.ExecerContext).ExecContext(ctx, query, args)
}

func (c conn) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	c.log.add(query)
	return c.Conn.(driver.QueryerContext).QueryContext(ctx, query, args)
}
