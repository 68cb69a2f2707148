package weirtest

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/lease"
)

const (
	// patience is the time limit of Until, and of the wait for the end of a worker.
	patience = time.Minute
	// poll is the pause between two checks of a condition.
	poll = 5 * time.Millisecond
)

// Running is a function that runs in a goroutine until its context ends. Call its methods only from
// the goroutine of the test.
type Running struct {
	tb     testing.TB
	cancel context.CancelFunc
	done   chan struct{} // closed after err is set
	err    error
	told   bool // the test has reported the result, or ignores it
}

// Go calls run in a goroutine, for example the Run method of an application that contains a
// consumer. At the end of the test, Go cancels the context of run and waits for run to return.
func Go(tb testing.TB, run func(context.Context) error) *Running {
	ctx, cancel := context.WithCancel(context.Background())
	r := &Running{tb: tb, cancel: cancel, done: make(chan struct{})}
	go func() {
		defer close(r.done)
		r.err = errors.New("weirtest: it ended its goroutine")
		r.err = run(ctx)
	}()
	tb.Cleanup(func() {
		tb.Helper()
		r.stop()
	})
	return r
}

// Until waits until all conditions hold at the same time. It fails the test after a minute, or if
// the function ends before they hold. The failure describes the current state.
func (r *Running) Until(conditions ...Condition) {
	r.tb.Helper()
	began := time.Now()
	for {
		missing := unmet(conditions)
		if len(missing) == 0 {
			return
		}
		timer := time.NewTimer(poll)
		select {
		case <-timer.C:
		case <-r.done:
			timer.Stop()
			if missing = unmet(conditions); len(missing) > 0 {
				r.told = true
				r.tb.Fatalf("weirtest: it has ended with error %v, while the test waits for: %s", r.err, strings.Join(missing, "; "))
			}
			return
		}
		if time.Since(began) >= patience {
			r.tb.Fatalf("weirtest: %v have passed, and the test waits for: %s", patience, strings.Join(missing, "; "))
		}
	}
}

// unmet describes the conditions that do not hold.
func unmet(conditions []Condition) (missing []string) {
	for _, c := range conditions {
		if ok, now := c.Holds(); !ok {
			if now != "" {
				now = " (" + now + ")"
			}
			missing = append(missing, c.What+now)
		}
	}
	return missing
}

// Stop ends the function gracefully and waits for it. It fails the test if the function returned an
// error. A second call does nothing. The end of the test stops the function in the same way.
func (r *Running) Stop() {
	r.tb.Helper()
	r.stop()
}

func (r *Running) stop() {
	r.tb.Helper()
	r.cancel()
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case <-r.done:
	case <-timer.C:
		r.tb.Errorf("weirtest: it goes on %v after its context has ended", patience)
		return
	}
	if r.err != nil && !r.told {
		r.told = true
		r.tb.Errorf("weirtest: %v", r.err)
	}
}

// Worker is a worker of an application.
type Worker struct {
	*Running
	life *life
	// Consumer is the running consumer. Its methods Counts and Shards may be called at any time.
	Consumer *weir.Consumer
}

// Start runs a consumer until the test ends. It fails the test if the options are invalid. If
// options.Logger is nil, the consumer logs warnings to the output of the test.
func Start(tb testing.TB, client weir.Kinesis, store lease.Store, options weir.Options, handler weir.Handler) *Worker {
	tb.Helper()
	if options.Logger == nil {
		options.Logger = slog.New(slog.NewTextHandler(tb.Output(), &slog.HandlerOptions{Level: slog.LevelWarn}))
	}
	life := &life{over: make(chan struct{})}
	consumer, err := weir.New(client, mortal{store, life}, options)
	if err != nil {
		tb.Fatalf("weirtest: %v", err)
	}
	w := &Worker{Consumer: consumer, life: life}
	w.Running = Go(tb, func(ctx context.Context) error {
		return consumer.Run(ctx, weir.HandlerFunc(func(ctx context.Context, b *weir.Batch) error { return life.handle(ctx, handler, b) }))
	})
	return w
}

// Kill simulates kill -9. The handler is not called again, and no write of the worker reaches the
// store. Records that were handled after the last saved heartbeat are therefore handled again. A
// call of the handler that is in progress continues until it returns. Other workers take over after
// Options.Timing.FailoverAfter.
func (w *Worker) Kill() {
	w.tb.Helper()
	w.told = true
	w.life.end()
	w.cancel()
}

var errDead = errors.New("weirtest: the worker was killed")

// life records whether a worker is alive or dead.
type life struct {
	over   chan struct{}
	killed atomic.Bool
}

func (l *life) end() {
	if !l.killed.Swap(true) {
		close(l.over)
	}
}

// check returns nil while the worker is alive. For a dead worker it waits until ctx ends, because a
// dead worker receives no answers, and then returns an error.
func (l *life) check(ctx context.Context) error {
	select {
	case <-l.over:
		<-ctx.Done()
		return fmt.Errorf("%w: %w", errDead, context.Cause(ctx))
	default:
		return nil
	}
}

func (l *life) handle(ctx context.Context, h weir.Handler, b *weir.Batch) error {
	if err := l.check(ctx); err != nil {
		return err
	}
	if err := h.Handle(ctx, b); err != nil {
		return err
	}
	return l.check(ctx)
}

// mortal is a store that a worker can use only while it is alive.
type mortal struct {
	lease.Store
	life *life
}

func (m mortal) Heartbeat(ctx context.Context, app string, r lease.Report) (lease.Orders, error) {
	if err := m.life.check(ctx); err != nil {
		return lease.Orders{}, err
	}
	return m.Store.Heartbeat(ctx, app, r)
}

func (m mortal) View(ctx context.Context, app, since string) (lease.View, error) {
	if err := m.life.check(ctx); err != nil {
		return lease.View{}, err
	}
	return m.Store.View(ctx, app, since)
}

func (m mortal) Apply(ctx context.Context, app string, actions []lease.Action) ([]bool, error) {
	if err := m.life.check(ctx); err != nil {
		return nil, err
	}
	return m.Store.Apply(ctx, app, actions)
}

func (m mortal) Lead(ctx context.Context, app, session string, term uint64) (bool, error) {
	if err := m.life.check(ctx); err != nil {
		return false, err
	}
	return m.Store.Lead(ctx, app, session, term)
}

func (m mortal) Leave(ctx context.Context, app string, r lease.Report) error {
	if err := m.life.check(ctx); err != nil {
		return err
	}
	return m.Store.Leave(ctx, app, r)
}
