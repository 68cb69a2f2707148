package sim

import (
	"context"
	"log/slog"
	"time"

	"github.com/weir-go/weir/event"
)

// hookCall is a faulty call of Options.OnEvent or of the logger.
type hookCall struct{ fault Fault }

// longestHook is the maximum duration of a hookCall.
const longestHook = 3 * time.Minute

// hooks returns the OnEvent of a worker. Most of its calls do nothing; some block or panic.
func (l *life) hooks() func(context.Context, event.Event) {
	if l.w.profile.Rates[HookBlocks] == 0 {
		return event.On(func(context.Context, event.LeaseTaken) {})
	}
	return event.Join(
		event.On(func(_ context.Context, e event.LeaseTaken) { l.hook("taken", about(e.Stream, e.Shard), e.Epoch) }),
		event.On(func(_ context.Context, e event.LeaseEnded) { l.hook("ended", about(e.Stream, e.Shard), e.Epoch) }),
		event.On(func(_ context.Context, e event.Leading) { l.hook("leading", "", 0) }),
		event.On(func(_ context.Context, e event.BatchHandled) { l.hook("handled", about(e.Stream, e.Shard), 0) }),
		event.On(func(_ context.Context, e event.StoreFailed) { l.hook("store failed", "", 0) }),
	)
}

// hook is called by the goroutine that calls hooks. Each life has one such goroutine.
func (l *life) hook(what, about string, epoch uint64) {
	w := l.w
	if w.calm.Load() || l.dead.Load() {
		return
	}
	d := roll(w.seed, "hook "+l.String()+what+about, epoch, uint64(time.Since(w.began)))
	f := Fault("")
	switch {
	case d.chance(w.profile.Rates[HookBlocks]):
		f = HookBlocks
	case what != "log" && d.chance(w.profile.Rates[HookPanics]):
		// The logger never panics, because weir would print its panics on standard error.
		f = HookPanics
	default:
		return
	}
	c := &call{life: l, op: "hook", about: what, ctx: l.ctx, deaf: true, body: hookCall{f}}
	if r := w.gate.wait(c); r.err == nil && r.value == HookPanics {
		panic("sim: a hook panics")
	}
}

// admitHook decides how long a call of a hook takes.
func (w *world) admitHook(c *call, h hookCall) {
	if !w.strikes(h.fault, c.id(h.fault)) {
		w.answer(c, reply{})
		return
	}
	d := w.dice(c, "")
	w.note(c.life, c.op, c.about, c.n, string(h.fault))
	took := d.often(0, 10*time.Millisecond)
	if h.fault == HookBlocks {
		took = d.often(time.Second, longestHook)
	}
	w.after(took, func() { w.answer(c, reply{value: h.fault}) })
}

// logger returns the logger of a worker.
func (l *life) logger() *slog.Logger {
	if l.w.profile.Rates[HookBlocks] == 0 {
		return quiet
	}
	return slog.New(logs{l})
}

// logs is a log handler with the faults of hooks.
type logs struct{ l *life }

func (logs) Enabled(_ context.Context, level slog.Level) bool { return level >= slog.LevelWarn }
func (h logs) WithAttrs([]slog.Attr) slog.Handler             { return h }
func (h logs) WithGroup(string) slog.Handler                  { return h }

func (h logs) Handle(_ context.Context, r slog.Record) error {
	h.l.hook("log", "", uint64(r.Level)) // not by the message, which may contain a stack trace
	return nil
}
