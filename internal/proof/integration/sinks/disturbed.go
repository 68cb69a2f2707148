package sinks

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"
)

// disturbance contains the faults of one writer's transactions.
type disturbance struct {
	cut      func() // cuts all connections to the server
	unlocked bool   // rows are read without a lock
	apart    bool   // positions and keys are written after the commit

	mu  sync.Mutex
	rng *rand.Rand
}

// once returns true once in n times.
func (d *disturbance) once(n int) bool { return d.upTo(n) == 1 }

// upTo returns a random number from 1 to n.
func (d *disturbance) upTo(n int) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return 1 + d.rng.IntN(n)
}

// disturbed opens a database whose transactions are disturbed, until the test ends.
func disturbed(t testing.TB, name, dsn string, d *disturbance) *sql.DB {
	t.Helper()
	plain, err := sql.Open(name, dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer plain.Close()
	db := sql.OpenDB(connector{plain.Driver(), dsn, d})
	t.Cleanup(func() { db.Close() })
	db.SetMaxOpenConns(4)
	return db
}

type connector struct {
	driver driver.Driver
	dsn    string
	with   *disturbance
}

func (c connector) Driver() driver.Driver { return c.driver }

func (c connector) Connect(ctx context.Context) (driver.Conn, error) {
	made, err := c.connect(ctx)
	if err != nil {
		return nil, err
	}
	return &conn{Conn: made, with: c.with}, nil
}

func (c connector) connect(ctx context.Context) (driver.Conn, error) {
	if d, ok := c.driver.(driver.DriverContext); ok {
		inner, err := d.OpenConnector(c.dsn)
		if err != nil {
			return nil, err
		}
		return inner.Connect(ctx)
	}
	return c.driver.Open(c.dsn)
}

type conn struct {
	driver.Conn
	with *disturbance
	late sync.WaitGroup // commits that take effect after they were reported as failed
	lost bool
	tx   *transaction // the last transaction

	// query and args are the statement that stores the position. It is kept here only if apart is
	// set, and executed after the commit.
	query string
	args  []driver.NamedValue
}

// IsValid makes the pool close a lost connection.
func (c *conn) IsValid() bool {
	if v, ok := c.Conn.(driver.Validator); ok && !v.IsValid() {
		return false
	}
	return !c.lost
}

func (c *conn) Close() error {
	c.late.Wait()
	return c.Conn.Close()
}

func (c *conn) CheckNamedValue(v *driver.NamedValue) error {
	if own, ok := c.Conn.(driver.NamedValueChecker); ok {
		return own.CheckNamedValue(v)
	}
	return driver.ErrSkip
}

func (c *conn) ResetSession(ctx context.Context) error {
	if r, ok := c.Conn.(driver.SessionResetter); ok {
		return r.ResetSession(ctx)
	}
	return nil
}

func (c *conn) said(query string) string {
	if c.with.unlocked {
		query = strings.TrimSuffix(query, " FOR UPDATE NOWAIT")
	}
	return query
}

func (c *conn) PrepareContext(ctx context.Context, query string) (driver.Stmt, error) {
	return c.Conn.(driver.ConnPrepareContext).PrepareContext(ctx, c.said(query))
}

func (c *conn) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	if c.with.apart && (strings.Contains(query, "position = ") || strings.Contains(query, "weir_handled")) {
		c.query, c.args = query, args
		return driver.RowsAffected(max(1, len(args)/3)), nil // a key of a queue's record has three
	}
	if query == "COMMIT" { // some dialects use this statement
		return driver.RowsAffected(0), c.tx.Commit()
	}
	return c.Conn.(driver.ExecerContext).ExecContext(ctx, c.said(query), args)
}

func (c *conn) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	return c.Conn.(driver.QueryerContext).QueryContext(ctx, c.said(query), args)
}

func (c *conn) BeginTx(ctx context.Context, o driver.TxOptions) (driver.Tx, error) {
	tx, err := c.Conn.(driver.ConnBeginTx).BeginTx(ctx, o)
	if err != nil {
		return nil, err
	}
	c.query = ""
	c.tx = &transaction{Tx: tx, on: c}
	return c.tx, nil
}

type transaction struct {
	driver.Tx
	on   *conn
	over bool
}

// Rollback may follow a commit: database/sql calls it if COMMIT was a statement.
func (t *transaction) Rollback() error {
	if t.on.late.Wait(); t.over {
		return nil
	}
	return t.Tx.Rollback()
}

func (t *transaction) Commit() error {
	c := t.on
	t.over = true
	if c.query == "" && !c.with.apart && c.with.once(40) {
		go c.with.cut() // during the commit, or not
		return t.Tx.Commit()
	}
	switch c.with.upTo(9) {
	case 1: // it does not arrive
		c.lost = true
		return errors.Join(errLost, t.Tx.Rollback())
	case 2: // its answer is lost
		c.lost = true
		return errors.Join(errLost, t.Tx.Commit())
	case 3: // it takes effect later
		c.lost = true
		pause := time.Duration(c.with.upTo(5000)) * time.Microsecond
		c.late.Go(func() {
			time.Sleep(pause)
			_ = t.Tx.Commit() // no caller waits for it any more
		})
		return errLost
	}
	err := t.Tx.Commit()
	if err == nil && c.query != "" {
		_, err = c.Conn.(driver.ExecerContext).ExecContext(context.Background(), c.query, c.args)
		if strings.Contains(c.query, "weir_handled") {
			err = nil // another writer has stored a key
		}
	}
	return err
}
