package fanout

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/weir-go/weir/internal/jitter"
	"github.com/weir-go/weir/internal/wire"
)

// Subscriptions last five minutes. Those of shards that were taken together would always end
// together. A process would then make a thousand calls within one second, and each shard would send
// its backlog at once. Therefore the first subscription of a shard ends early, at a random time.

const (
	// subscriptionLife is the service's limit.
	subscriptionLife = 5 * time.Minute
	// leastLife is the minimum for a first subscription. The service allows the next one 5 s after
	// the previous one began.
	leastLife = time.Minute
	// callsAtOnce is how many concurrent calls of SubscribeToShard a process makes. A call that is
	// not answered counts for at most callTurn.
	callsAtOnce = 32
	callTurn    = 500 * time.Millisecond
)

// spread is true if a shard's subscriptions already end at a random time.
type spread bool

// life returns how long the next subscription is kept.
func (s spread) life() time.Duration {
	if s {
		return 2 * subscriptionLife // longer than it can last
	}
	return leastLife + jitter.N(subscriptionLife-leastLife)
}

// after returns the spread after a subscription that ended with err after the given time.
func (s spread) after(err error, lasted time.Duration) spread {
	switch {
	case errors.Is(err, errRenewed):
		return true
	case errors.Is(err, wire.ErrEnded) && lasted > subscriptionLife-subscriptionLife/10:
		return s
	}
	return false // perhaps many were cut at once
}

// turns limits how many calls are made at once.
type turns struct {
	once  sync.Once
	taken chan struct{}
}

// take waits for a turn, which ends after callTurn or when over is called.
func (t *turns) take(ctx context.Context) (over func(), err error) {
	t.once.Do(func() { t.taken = make(chan struct{}, callsAtOnce) })
	select {
	case t.taken <- struct{}{}:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	give := sync.OnceFunc(func() { <-t.taken })
	timer := time.AfterFunc(callTurn, give)
	return func() {
		timer.Stop()
		give()
	}, nil
}
