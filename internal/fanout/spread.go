package fanout

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/weir-go/weir/internal/jitter"
	"github.com/weir-go/weir/internal/wire"
)

// Subscriptions last five minutes. Those of shards that were taken together would end together for
// ever after, and a thousand calls would be made in one second, each to be followed by what the
// shard has sent meanwhile. So the first subscription of a shard is ended early, at a time of its
// own.

const (
	// subscriptionLife is the service's.
	subscriptionLife = 5 * time.Minute
	// leastLife is that of a first subscription, at least: the service allows another when the one
	// before is 5 s old.
	leastLife = time.Minute
	// callsAtOnce is how many calls of SubscribeToShard a process makes at a time. One that is not
	// answered does not count for longer than callTurn.
	callsAtOnce = 32
	callTurn    = 500 * time.Millisecond
)

// spread knows whether a shard's subscriptions end at a time of their own.
type spread bool

// life is how long the next subscription is kept.
func (s spread) life() time.Duration {
	if s {
		return 2 * subscriptionLife // longer than it can last
	}
	return leastLife + jitter.N(subscriptionLife-leastLife)
}

// after is what holds after a subscription that ended with err when it had lasted so long.
func (s spread) after(err error, lasted time.Duration) spread {
	switch {
	case errors.Is(err, errRenewed):
		return true
	case errors.Is(err, wire.ErrEnded) && lasted > subscriptionLife-subscriptionLife/10:
		return s
	}
	return false // perhaps many were cut at once
}

// turns bounds how many calls are made at once.
type turns struct {
	once  sync.Once
	taken chan struct{}
}

// take waits for a turn, which is over after callTurn or when over is called.
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
