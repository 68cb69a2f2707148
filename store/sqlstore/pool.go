package sqlstore

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"sync"
	"time"

	"github.com/weir-go/weir/internal/guard"
)

const (
	// lookWithin is the time limit of a check of the pool's connections. The check takes one round
	// trip if the connections work.
	lookWithin = 500 * time.Millisecond
	// mostLooked is the maximum number of connections that are checked.
	mostLooked = 64
)

// onConn calls do with one connection of the pool. If an earlier call timed out, it first checks
// the unused connections.
func (s *Store) onConn(ctx context.Context, do func(*sql.Conn) error) error {
	if s.doubt.CompareAndSwap(true, false) {
		s.lookAtConns(ctx)
	}
	err := s.lend(ctx, do)
	if err != nil && s.dialect.server && errors.Is(ctx.Err(), context.DeadlineExceeded) {
		s.doubt.Store(true)
	}
	return err
}

func (s *Store) lend(ctx context.Context, do func(*sql.Conn) error) error {
	c, err := s.db.Conn(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	return do(c)
}

// lookAtConns pings all unused connections at the same time, and closes those that do not answer. A
// failed server, or a gateway that has dropped its connections, sends nothing, so each dead
// connection would cost one whole call. The program may use the pool for other purposes, so there
// may be many dead connections. Without the pings, the leases would become invalid before calls had
// found all dead connections.
func (s *Store) lookAtConns(ctx context.Context) {
	bound := lookWithin
	if end, ok := ctx.Deadline(); ok {
		bound = min(bound, time.Until(end)/4)
	}
	ctx, cancel := context.WithTimeout(ctx, bound)
	defer cancel()
	conns := make([]*sql.Conn, min(s.db.Stats().Idle, mostLooked))
	var looks sync.WaitGroup
	for i := range conns {
		looks.Go(func() {
			_ = guard.Call(func() error { // the next use of the connection returns the same error
				c, err := s.db.Conn(ctx)
				if err != nil {
					return err
				}
				conns[i] = c
				if c.PingContext(ctx) != nil {
					_ = c.Raw(func(any) error { return driver.ErrBadConn }) // closes the connection
				}
				return nil
			})
		})
	}
	looks.Wait()
	for _, c := range conns { // only after all are borrowed, otherwise one could be borrowed twice
		if c != nil {
			_ = c.Close()
		}
	}
}
