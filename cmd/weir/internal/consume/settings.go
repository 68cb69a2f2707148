package consume

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/event"
	"github.com/weir-go/weir/internal/fanout"
)

// options returns the options of the worker. Its log goes to h.
func (o *options) options(h slog.Handler, from weir.Position) weir.Options {
	options := o.settings
	options.App, options.Streams, options.Worker, options.Start = o.app, o.streams, o.worker, from
	options.FanOut = o.fanOut.FanOut
	// Without a bucket and without parallel keys, the handlers copy the parts of records that they
	// keep. The worker can then reuse its buffers.
	options.ReuseBuffers = o.to.bucket == "" && options.Concurrency.Keys < 2
	log := slog.New(leases{h, o.verbose})
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

// leases is a log handler. Unless verbose is true, it drops the messages about leases that the
// worker takes and ends.
type leases struct {
	slog.Handler
	verbose bool
}

var leaseMessages = []string{"lease taken", "lease ended"}

func (h leases) Handle(ctx context.Context, r slog.Record) error {
	if !h.verbose && r.Level == slog.LevelInfo && slices.Contains(leaseMessages, r.Message) {
		return nil
	}
	return h.Handler.Handle(ctx, r)
}

func (h leases) WithAttrs(attrs []slog.Attr) slog.Handler {
	return leases{h.Handler.WithAttrs(attrs), h.verbose}
}
func (h leases) WithGroup(name string) slog.Handler {
	return leases{h.Handler.WithGroup(name), h.verbose}
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
