package notify

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

// Logger returns a logger whose records reach h through the queue, with their original times. h is
// user code, so only the queue's goroutine calls it. h is called with ctx.
//
// The queue calls [slog.Handler.Enabled] at the start. It calls it again when a record arrives and
// the last answer is older than a second. Until the first answer, every level counts as enabled,
// and records of a level that turns out to be disabled are dropped. If h enables a level later, the
// queue finds out at the next record of another enabled level.
func (q *Queue) Logger(ctx context.Context, h slog.Handler) *slog.Logger {
	l := &levels{}
	l.on.Store(^uint32(0))
	q.Add(Important, nil, func() { l.ask(ctx, h) })
	return slog.New(&handler{queue: q, ctx: ctx, inner: func() slog.Handler { return h }, levels: l})
}

// levels caches which levels a handler has enabled.
type levels struct {
	on    atomic.Uint32 // a bit for each level in askedFor
	asked time.Time     // time of the last query to the handler; owned by the queue's goroutine
	said  sync.Once
}

// panicked reports the panic of a logger once on standard error, because it cannot be logged.
func (l *levels) panicked(err error) {
	l.said.Do(func() {
		fmt.Fprintln(os.Stderr, "weir: the logger", err)
		var p *Panic
		if errors.As(err, &p) {
			fmt.Fprintln(os.Stderr, p.Stack)
		}
	})
}

var askedFor = [...]slog.Level{slog.LevelDebug, slog.LevelInfo, slog.LevelWarn, slog.LevelError}

func (l *levels) ask(ctx context.Context, h slog.Handler) {
	l.asked = time.Now()
	var on uint32
	for i, level := range askedFor {
		if err := contained(func() {
			if h.Enabled(ctx, level) {
				on |= 1 << i
			}
		}); err != nil {
			l.panicked(err)
		}
	}
	l.on.Store(on)
}

func (l *levels) enabled(level slog.Level) bool {
	for i := len(askedFor) - 1; i >= 0; i-- {
		if level >= askedFor[i] {
			return l.on.Load()&(1<<i) != 0
		}
	}
	return false
}

type handler struct {
	queue  *Queue
	ctx    context.Context
	inner  func() slog.Handler // owned by the queue's goroutine
	levels *levels
	limit  *limiter // nil if each line is logged
}

func (h *handler) Enabled(_ context.Context, level slog.Level) bool { return h.levels.enabled(level) }

func (h *handler) Handle(_ context.Context, r slog.Record) error {
	class := Detail
	if r.Level >= slog.LevelWarn {
		class = Important
	}
	h.queue.Add(class, nil, func() {
		if err := contained(func() {
			inner := h.inner()
			if time.Since(h.levels.asked) >= time.Second {
				h.levels.ask(h.ctx, inner)
			}
			switch {
			case !inner.Enabled(h.ctx, r.Level):
			case h.limit == nil:
				handleNow(h.ctx, inner, r, 1)
			default:
				h.limit.pass(causeOf(r), time.Now(), func(repeated int) { handleNow(h.ctx, inner, r, repeated) })
			}
		}); err != nil {
			h.levels.panicked(err)
		}
	})
	return nil
}

func (h *handler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return h.with(func(inner slog.Handler) slog.Handler { return inner.WithAttrs(attrs) })
}

func (h *handler) WithGroup(name string) slog.Handler {
	return h.with(func(inner slog.Handler) slog.Handler { return inner.WithGroup(name) })
}

func (h *handler) with(change func(slog.Handler) slog.Handler) slog.Handler {
	derived, before := *h, h.inner
	var made slog.Handler // nil after a panic, so that the next record tries again
	derived.inner = func() slog.Handler {
		if made == nil {
			made = change(before())
		}
		return made
	}
	return &derived
}
