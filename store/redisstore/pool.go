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
	// lookWithin bounds a look at the connections of the pool, which takes a round trip if they are
	// well.
	lookWithin = 500 * time.Millisecond
	// mostLooked is at how many of them, for each server.
	mostLooked = 64
)

// lend calls do, which asks the server, and minds what its connections are worth.
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

// lookAtConns asks the servers over as many connections as nobody uses, all at once; the client
// closes those that do not answer. A server that is gone, or a gateway that has forgotten its
// connections, tells nobody: each would cost one whole call, and a pool that the program uses for
// more than its leases may hold more of them than calls fit into the time for which leases are
// trusted.
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
		_ = c.ForEachMaster(ctx, look) // what fails fails again when it is needed
	}
}
