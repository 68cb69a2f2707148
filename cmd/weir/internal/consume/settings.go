package consume

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/event"
	"github.com/weir-go/weir/internal/fanout"
)

// options returns the options of the worker, which writes to log.
func (o *options) options(log *slog.Logger, from weir.Position) weir.Options {
	options := o.settings
	options.App, options.Streams, options.Worker, options.Start = o.app, o.streams, o.worker, from
	options.FanOut = o.fanOut.FanOut
	// Without a bucket and without parallel keys, the handlers copy the parts of records that they
	// keep. The worker can then reuse its buffers.
	options.ReuseBuffers = o.to.bucket == "" && options.Concurrency.Keys < 2
	options.Logger = log
	var many throttles
	options.OnEvent = event.Join(options.OnEvent, event.On(func(ctx context.Context, e event.ReadFailed) {
		if many.count(e, time.Now()) {
			log.WarnContext(ctx, "reads are throttled again and again: more is read from the stream than it allows; see --read-share",
				"app", o.app, "worker", o.worker, "stream", e.Stream, "shard", e.Shard)
		}
	}))
	return options
}

// throttles detects that reads are throttled again and again. A few throttled reads are normal, for
// example when a shard moves to another worker.
type throttles struct {
	mu    sync.Mutex
	since time.Time
	n     int
}

const (
	throttledFor  = time.Minute
	manyThrottled = 10
)

// count adds a failed read. A subscription that waits for the end of the previous one does not
// count, because that wait is short.
func (c *throttles) count(e event.ReadFailed, now time.Time) bool {
	return e.Throttled && !errors.Is(e.Err, fanout.ErrSubscribed) && c.add(now)
}

// add counts a throttled read. At most once a minute, it reports that there were many.
func (c *throttles) add(now time.Time) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if now.Sub(c.since) >= throttledFor {
		c.since, c.n = now, 0
	}
	c.n++
	return c.n == manyThrottled
}
