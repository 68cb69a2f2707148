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
	// lookWithin limits a check of the pool's connections, which takes one round trip if they work.
	lookWithin = 500 * time.Millisecond
	// mostLooked is how many of them are checked.
	mostLooked = 64
)

// onConn lends one connection of the pool. It closes a connection that a failed transaction may
// have left in an unknown state.
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

// lookAtConns pings all unused connections at once, and closes those that do not answer. A failed
// server, or a gateway that has dropped its connections, sends nothing. Each dead connection would
// cost one whole call. In a pool that the program also uses for other purposes there may be many,
// and trust in the leases would end before all were found.
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
					_ = c.Raw(func(any) error { return driver.ErrBadConn }) // closes it
				}
				return nil
			})
		})
	}
	looks.Wait()
	for _, c := range conns { // not before all are borrowed: otherwise one could be borrowed twice
		if c != nil {
			_ = c.Close()
		}
	}
}
