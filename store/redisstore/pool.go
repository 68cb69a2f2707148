package redisstore

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/weir-go/weir/internal/guard"
)

const (
	// lookWithin is the time limit of a check of the pool's connections. The check takes one round
	// trip if the connections work.
	lookWithin = 500 * time.Millisecond
	// mostLooked is the maximum number of connections that are checked for each server.
	mostLooked = 64
)

// lend calls do, which calls the server. It records whether the connections may be dead.
func (s *Store) lend(ctx context.Context, do func() error) error {
	if s.doubt.CompareAndSwap(true, false) {
		s.lookAtConns(ctx)
	}
	err := do()
	if err != nil && errors.Is(ctx.Err(), context.DeadlineExceeded) {
		s.doubt.Store(true)
	}
	return err
}

// lookAtConns pings each server over all unused connections at the same time. The client closes the
// connections that do not answer. A failed server, or a gateway that has dropped its connections,
// sends nothing, so each dead connection would cost one whole call. The program may use the pool
// for other purposes, so there may be many dead connections. Without the pings, the leases would
// become invalid before calls had found all dead connections.
func (s *Store) lookAtConns(ctx context.Context) {
	bound := lookWithin
	if end, ok := ctx.Deadline(); ok {
		bound = min(bound, time.Until(end)/4)
	}
	ctx, cancel := context.WithTimeout(ctx, bound)
	defer cancel()
	look := func(ctx context.Context, c *redis.Client) error {
		var looks sync.WaitGroup
		for range min(c.PoolStats().IdleConns, mostLooked) {
			looks.Go(func() { _ = guard.Call(func() error { return c.Ping(ctx).Err() }) })
		}
		looks.Wait()
		return nil
	}
	switch c := s.client.(type) {
	case *redis.Client:
		_ = look(ctx, c)
	case *redis.ClusterClient:
		_ = c.ForEachMaster(ctx, look) // a failing connection fails again when it is used
	}
}
