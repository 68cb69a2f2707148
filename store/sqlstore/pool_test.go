package sqlstore

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// network is a driver whose connections can all die silently at the same time. pings is set if the
// driver checks a connection before it is used again, as pgx does.
type network struct {
	pings bool
	died  atomic.Int64 // number of the last connection that died
	made  atomic.Int64
	open  atomic.Int64
}

func (n *network) Connect(context.Context) (driver.Conn, error) {
	n.open.Add(1)
	return &netConn{network: n, number: n.made.Add(1)}, nil
}

func (n *network) Driver() driver.Driver { return nil }

type netConn struct {
	*network
	number int64
	bad    bool
}

var errUnused = errors.New("not used here")

func (c *netConn) Prepare(string) (driver.Stmt, error) { return nil, errUnused }
func (c *netConn) Begin() (driver.Tx, error)           { return nil, errUnused }
func (c *netConn) Close() error                        { c.open.Add(-1); return nil }
func (c *netConn) IsValid() bool                       { return !c.bad }

func (c *netConn) ResetSession(ctx context.Context) error {
	if c.pings && c.Ping(ctx) != nil {
		return driver.ErrBadConn
	}
	return nil
}

func (c *netConn) Ping(ctx context.Context) error {
	if c.number > c.died.Load() {
		return nil
	}
	<-ctx.Done()
	c.bad = true
	return ctx.Err()
}

// However many connections of a pool have died, only one call is lost, and the next call takes
// slightly longer.
func TestConnectionsThatDiedCostOneCall(t *testing.T) {
	const together = 10
	for name, pings := range map[string]bool{"the driver checks": true, "the driver does not check": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := &network{pings: pings}
				db := sql.OpenDB(n)
				defer db.Close()
				db.SetMaxIdleConns(together)
				s, err := New(db, Options{Dialect: Postgres})
				if err != nil {
					t.Fatal(err)
				}
				call := func(do func(*sql.Conn) error) (time.Duration, error) {
					ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
					defer cancel()
					began := time.Now()
					err := s.onConn(ctx, func(c *sql.Conn) error {
						if do != nil {
							return do(c)
						}
						return c.PingContext(ctx)
					})
					return time.Since(began), err
				}
				all := func() {
					var calls, there sync.WaitGroup
					there.Add(together)
					for range together {
						calls.Go(func() {
							_, _ = call(func(*sql.Conn) error { there.Done(); there.Wait(); return nil })
						})
					}
					calls.Wait()
				}
				all()
				if got := db.Stats().Idle; got != together {
					t.Fatalf("%d idle connections", got)
				}
				n.died.Store(n.made.Load())
				if took, err := call(nil); !errors.Is(err, context.DeadlineExceeded) || took != 5*time.Second {
					t.Errorf("the call that finds out: %v, %v", took, err)
				}
				if took, err := call(nil); err != nil || took != lookWithin {
					t.Errorf("the next call: %v, %v", took, err)
				}
				if took, err := call(nil); err != nil || took != 0 {
					t.Errorf("the call after that: %v, %v", took, err)
				}
				if got := n.open.Load(); got > 2 {
					t.Errorf("%d connections, of which one was made since", got)
				}
				// Working connections stay open if the timeout had another cause than dead
				// connections.
				all()
				made := n.made.Load()
				if _, err := call(func(*sql.Conn) error { time.Sleep(5 * time.Second); return context.DeadlineExceeded }); err == nil {
					t.Error("no error")
				}
				if took, err := call(nil); err != nil || took != 0 || n.made.Load() != made || db.Stats().Idle != together {
					t.Errorf("a call after a slow one: %v, %v, %d new connections, %d idle", took, err, n.made.Load()-made, db.Stats().Idle)
				}
			})
		})
	}
}
