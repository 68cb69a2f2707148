package wire

import (
	"context"
	"errors"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/weir-go/weir/internal/http1"
	"github.com/weir-go/weir/internal/lock"
	"github.com/weir-go/weir/internal/mono"
)

// Line keeps the connection between consecutive calls of one goroutine, see [Request.Line]. The
// zero Line is ready to use. Only one goroutine at a time may use it.
type Line struct {
	line  http1.Line
	asked *life // a call whose answer was not read yet; may be nil
}

// Park makes the connection available to other calls. Use it when no call follows at once. A call
// that was sent with Ask is abandoned.
func (l *Line) Park() {
	l.line.Park()
	if asked := l.asked; asked != nil {
		l.asked = nil
		asked.end()
	}
}

// life is the context of a call. The answer may be read long after the call was made. The context
// ends with the caller's context or at the deadline in bound. Most calls never wait for the
// context, because this package's HTTP client uses the bound as a deadline. A timer therefore
// exists only after a call of Done. The context also ends if the connection is silent, so that the
// call can be retried: see listening.go.
type life struct {
	caller context.Context
	line   *Line  // may be nil
	retry  *Retry // may be nil
	window int    // the amount of the answer to read at a time; 0 for all

	// These are the parameters of the call.
	cred  aws.Credentials
	ep    *endpoint   // nil until it is known
	state formatState // the endpoint's state when the call was made
	asked bool        // the answer is pending on line
	deaf  bool        // this life does not react to silence

	mu     lock.Mutex[lock.Call]
	bound  bound
	answer *http1.Response // nil if net/http makes the call, or before the answer
	inner  context.Context // nil until Done is called
	cancel context.CancelCauseFunc
	timer  *time.Timer // ends inner
	rings  mono.Time   // when the timer fires

	quiet   *silence  // the silence of the endpoint; nil until it is known
	since   mono.Time // when net/http began to wait for a byte; zero while it does not wait
	silent  bool      // a silent connection was closed
	patient bool      // do not close further connections because of silence
	second  bool      // the call is being retried
	posted  bool      // net/http makes the call
	ended   bool
}

// bound is the deadline of a call, and the error that the call returns after the deadline.
type bound struct {
	At  time.Time
	Why error
}

// live begins the life of a call. The life ends after d with the given cause. If the call was sent
// with Ask, live returns the life of that call. The caller must end the life.
func live(ctx context.Context, req *Request, d time.Duration, cause error) *life {
	lock.Free("the service")
	if req.Line != nil && req.Line.asked != nil {
		l := req.Line.asked
		req.Line.asked = nil
		return l
	}
	l := &life{caller: ctx, line: req.Line, retry: req.Retry, bound: bound{time.Now().Add(d), cause}}
	l.retry.reset()
	return l
}

// next replaces the deadline of the call: the call ends after d with the given cause. next fails if
// the previous deadline has passed.
func (l *life) next(d time.Duration, cause error) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	if !now.Before(l.bound.At) {
		return l.bound.Why
	}
	l.bound = bound{now.Add(d), cause}
	if l.answer != nil {
		l.answer.Until(l.limits())
	}
	if l.inner != nil {
		l.arm(mono.Of(now))
	}
	return nil
}

func (l *life) end() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ended = true
	if l.timer != nil {
		l.timer.Stop()
	}
	if l.inner != nil {
		l.cancel(nil)
	}
}

// over reports whether the context or the deadline has ended the call. err is the error of the
// call.
func (l *life) over(err error) bool {
	return l.Err() != nil || errors.Is(err, l.bound.Why)
}

// cause returns the reason why the context or the deadline has ended the call.
func (l *life) cause() error {
	if ctx := l.of(); ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return l.bound.Why
}

func (l *life) Deadline() (time.Time, bool) {
	at := l.bound.At
	if sooner, ok := l.caller.Deadline(); ok && sooner.Before(at) {
		at = sooner
	}
	return at, true
}

func (l *life) Done() <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.inner == nil {
		from, done := l.caller, func() {}
		if l.window == 0 { // the deadline never changes, so no timer is needed
			from, done = context.WithDeadlineCause(l.caller, l.bound.At, l.bound.Why)
		}
		inner, cancel := context.WithCancelCause(from)
		l.inner, l.cancel = inner, func(why error) {
			cancel(why)
			done()
		}
		if l.window > 0 || !l.since.IsZero() {
			l.arm(mono.Now())
		}
	}
	return l.inner.Done()
}

func (l *life) Err() error {
	if err := l.of().Err(); err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.inner == nil && !time.Now().Before(l.bound.At) {
		return context.DeadlineExceeded
	}
	return nil
}

func (l *life) Value(key any) any { return l.of().Value(key) }

func (l *life) of() context.Context {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.inner != nil {
		return l.inner
	}
	return l.caller
}
