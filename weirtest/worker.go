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

	"github.com/aws/aws-sdk-go-v2/service/kinesis"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/lease"
)

const (
	// patience limits Until, and the time for a worker to end.
	patience = time.Minute
	// poll is the pause between two checks of a condition.
	poll = 5 * time.Millisecond
)

// Running is a function that runs until its context ends. Its methods are for the goroutine of the
// test.
type Running struct {
	tb     testing.TB
	cancel context.CancelFunc
	done   chan struct{} // closed when err is set
	err    error
	told   bool // the result is reported, or does not matter
}

// Go calls run in a goroutine, for example the Run of an application that contains its consumer.
// The end of the test ends its context and waits for it.
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

// Until waits until all conditions hold at the same time. It fails the test with the current state
// after a minute, or if the function has ended.
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

// unmet returns the conditions that do not hold, in words.
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

// Stop ends the function gracefully, waits for it, and fails the test if it returned an error. The
// end of the test does the same; a second call does nothing.
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
	// Consumer is the running consumer; Counts and Shards may be called at any time.
	Consumer *weir.Consumer
}

// Start runs a consumer. The test fails if options are invalid. Without a Logger the consumer logs
// warnings to the test's output.
func Start(tb testing.TB, client *kinesis.Client, store lease.Store, options weir.Options, handler weir.Handler) *Worker {
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

// Kill simulates kill -9: the handler is not called any more, and no write of the worker reaches
// the store, so records whose progress was not saved with a heartbeat are handled again. A running
// call of the handler continues until it returns. Other workers take over after
// Options.FailoverAfter.
func (w *Worker) Kill() {
	w.tb.Helper()
	w.told = true
	w.life.end()
	w.cancel()
}

var errDead = errors.New("weirtest: the worker was killed")

// life is the state of a worker: alive or dead.
type life struct {
	over   chan struct{}
	killed atomic.Bool
}

func (l *life) end() {
	if !l.killed.Swap(true) {
		close(l.over)
	}
}

// check waits until ctx ends if the worker is dead, because it gets no answers.
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

// mortal is a store that a worker can reach only while it is alive.
type mortal struct {
	lease.Store
	life *life
}

func (m mortal) Beat(ctx context.Context, app string, r lease.Report) (lease.Orders, error) {
	if err := m.life.check(ctx); err != nil {
		return lease.Orders{}, err
	}
	return m.Store.Beat(ctx, app, r)
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
