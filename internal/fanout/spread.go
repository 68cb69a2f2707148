package fanout

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/weir-go/weir/internal/jitter"
	"github.com/weir-go/weir/internal/wire"
)

// Subscriptions last five minutes. If the leases of many shards were taken together, their
// subscriptions would always end together. A process would then make a thousand calls within one
// second, and each shard would send its backlog at once. Therefore the first subscription of a
// shard ends early, at a random time.

const (
	// subscriptionLife is Kinesis' limit.
	subscriptionLife = 5 * time.Minute
	// leastLife is the minimum life of a first subscription. Kinesis allows the next subscription 5
	// s after the previous one began.
	leastLife = time.Minute
	// callsAtOnce is the maximum number of concurrent calls of SubscribeToShard in a process. A
	// call without an answer counts for at most callTurn.
	callsAtOnce = 32
	callTurn    = 500 * time.Millisecond
)

// spread is true if the shard's subscriptions already end at a random time.
type spread bool

// life returns how long the next subscription is kept.
func (s spread) life() time.Duration {
	if s {
		return 2 * subscriptionLife // longer than a subscription can last
	}
	return leastLife + jitter.N(subscriptionLife-leastLife)
}

// after returns the spread after a subscription that lasted for the given time and ended with err.
func (s spread) after(err error, lasted time.Duration) spread {
	switch {
	case errors.Is(err, errRenewed):
		return true
	case errors.Is(err, wire.ErrEnded) && lasted > subscriptionLife-subscriptionLife/10:
		return s
	}
	return false // many subscriptions may have been cut at once
}

// turns limits the number of concurrent calls.
type turns struct {
	once  sync.Once
	taken chan struct{}
}

// take waits for a turn. The turn ends after callTurn, or when over is called.
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
