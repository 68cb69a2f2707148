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
	// lookWithin bounds a look at the connections of the pool, which takes a round trip if they are
	// well.
	lookWithin = 500 * time.Millisecond
	// mostLooked is at how many of them.
	mostLooked = 64
)

// onConn lends one connection of the pool. One that a failed transaction may have left in an
// unknown state is closed.
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

// lookAtConns pings the connections that nobody uses, all at once, and closes those that do not
// answer. A server that is gone, or a gateway that has forgotten its connections, tells nobody:
// each would cost one whole call, and a pool that the program uses for more than its leases may
// hold more of them than calls fit into the time for which leases are trusted.
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
			_ = guard.Call(func() error { // an error comes again when the connection is used
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
	for _, c := range conns { // not before all are there: else one could be given out twice
		if c != nil {
			_ = c.Close()
		}
	}
}
