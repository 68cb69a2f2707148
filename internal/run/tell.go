package run

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weir-go/weir/event"
	"github.com/weir-go/weir/internal/emit"
	"github.com/weir-go/weir/internal/guard"
	"github.com/weir-go/weir/internal/notify"
	"github.com/weir-go/weir/internal/shardrun"
	"github.com/weir-go/weir/internal/streams"
)

// User is the user's code. Package weir implements it.
type User interface {
	shardrun.User
	// AskStreams calls Options.DiscoverStreams. ParseStreams parses the result, and returns these
	// streams together with those of the options.
	AskStreams(ctx context.Context) ([]string, error)
	ParseStreams(asked []string) ([]streams.Stream, error)
	// HookPanic returns a panic of Options.OnEvent as an error.
	HookPanic(p *notify.Panic) error
}

const (
	// queueRoom is the size of the queue of events and log records. If the queue is full, detail
	// events are dropped.
	queueRoom = 1024
	// hooksMayTake is how long hooks and the logger may still be at work when everything else has
	// ended.
	hooksMayTake = 5 * time.Second
	// goneAgain is the time between two log lines that a stream does not exist.
	goneAgain = 10 * time.Minute
)

// telling is a run's queue of events. The queue's goroutine calls the hooks and the logger.
type telling struct {
	to       *slog.Logger // the user's
	registry *Registry
	user     User

	queue   *notify.Queue
	events  *emit.Events
	log     *slog.Logger // goes through the queue
	repeats *slog.Logger // as log; it limits repeated lines

	dropping atomic.Bool // events are being dropped, and a log line said so
	gone     sync.Map    // streams by name, and when it was logged that they do not exist
	panics   sync.Map    // by Panic.Who: the text of the last panic that was logged with its stack
}

// start starts the goroutine that calls hooks and the logger. stop waits for that goroutine. If a
// hook or the logger does not return, stop returns an error that wraps [ErrAbandoned].
func (t *telling) start(ctx context.Context, app, worker string, onEvent func(context.Context, event.Event)) (stop func() error) {
	values, end := context.WithCancel(context.WithoutCancel(ctx))
	t.queue = notify.New(queueRoom)
	t.registry.opens(t.queue)
	t.log = t.queue.Logger(values, t.to.Handler()).With("app", app, "worker", worker)
	t.repeats = t.queue.Repeats(t.log)
	t.events = emit.New(values, onEvent, t.queue, t.drops)
	go t.queue.Run(func(err error) { t.hookPanicked(app, worker, err) })
	return func() error {
		defer end()
		t.queue.Flush()
		made := t.queue.Close(hooksMayTake)
		t.registry.closed(t.queue)
		if !made {
			return fmt.Errorf("%w: Options.OnEvent, or the logger, does not return", ErrAbandoned)
		}
		return nil
	}
}

// hookPanicked logs that a hook panicked. The queue's goroutine calls hookPanicked, and the log
// line does not go through the queue, because the queue may be closed by then.
func (t *telling) hookPanicked(app, worker string, err error) {
	var p *notify.Panic
	if errors.As(err, &p) {
		err = t.user.HookPanic(p)
	}
	_ = guard.Call(func() error { // a panic of the logger can be reported nowhere
		to := t.to.With("app", app, "worker", worker)
		t.logPanic(to, "Options.OnEvent, or the logger, panicked; the event or log line is not delivered again", err)
		return nil
	})
}

// logPanic logs an error of the user's code. It adds the stack of a panic, unless the last panic of
// the same function was the same.
func (t *telling) logPanic(to *slog.Logger, what string, err error, args ...any) {
	args = append(args, "err", err)
	if stack := t.newStack(err); stack != "" {
		args = append(args, "stack", stack)
	}
	to.Error(what, args...)
}

// newStack returns the stack of a panic that err wraps. It returns "" if the last panic of the same
// function had the same text.
func (t *telling) newStack(err error) string {
	p := t.user.PanicIn(err)
	if inner := (*guard.Panic)(nil); errors.As(err, &inner) { // such as one on a store's goroutine
		p = shardrun.Panic{Who: err.Error(), Text: err.Error(), Stack: inner.Stack}
	}
	if p.Stack == "" {
		return ""
	}
	if last, some := t.panics.Swap(p.Who, p.Text); some && last == p.Text {
		return ""
	}
	return p.Stack
}

// goneAgain reports whether to log now that a stream does not exist.
func (t *telling) goneAgain(stream string, now time.Time) bool {
	last, told := t.gone.LoadOrStore(stream, now)
	return !told || now.Sub(last.(time.Time)) >= goneAgain && t.gone.CompareAndSwap(stream, last, now)
}

// drops logs that events are dropped. It logs this once until the events that wait at that time are
// delivered.
func (t *telling) drops() {
	if !t.dropping.CompareAndSwap(false, true) {
		return
	}
	before := t.queue.Counts().Dropped
	t.log.Warn("Options.OnEvent, or the logger, cannot keep up: detail events are dropped; " +
		"Consumer.Counts has exact numbers")
	t.queue.Add(notify.State, stateKey{}, func() {
		t.dropping.Store(false)
		t.log.Log(context.Background(), slog.LevelInfo, "events are delivered again",
			"dropped", t.queue.Counts().Dropped-before)
	})
}

// stateKey identifies the report that events are delivered again.
type stateKey struct{}

// FellBack returns a function that logs that an endpoint is called through net/http from now on.
func FellBack(to *slog.Logger) func(host string, why error) {
	return func(host string, why error) {
		to.Warn("weir could not parse an answer of the service; net/http makes all further calls to this endpoint, which needs more CPU time",
			"endpoint", host, "err", why)
	}
}
