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

// Line is the way of calls that one goroutine makes one after the other: it keeps their connection,
// see [Request.Line]. The zero Line is ready. One goroutine at a time may use it.
type Line struct {
	line  http1.Line
	asked *life // of a call whose answer was not read yet; nil if there is none
}

// Park lets others have the connection. Call it when no call follows at once. A call that was only
// asked is given up.
func (l *Line) Park() {
	l.line.Park()
	if asked := l.asked; asked != nil {
		l.asked = nil
		asked.end()
	}
}

// life is that of a call, whose answer may be read long after the call was made. It is a context
// that ends with the caller's or when the bound is over. Most calls never wait for that: our own
// HTTP client has the bound as a deadline, so a timer is made only for who asks for Done. It also
// ends when nothing is heard of the answer, so that the call can be made a second time: see
// listening.go.
type life struct {
	caller context.Context
	line   *Line  // may be nil
	retry  *Retry // may be nil
	window int    // how much of the answer is read at a time; 0 for all of it

	// What the call is made with.
	cred  aws.Credentials
	ep    *endpoint   // nil until it is known
	state formatState // of the endpoint when it was asked
	asked bool        // the answer waits on line
	deaf  bool        // silence is somebody else's business

	mu     lock.Mutex[lock.Call]
	bound  bound
	answer *http1.Response // nil where net/http makes the call, or nothing was answered yet
	inner  context.Context // nil until somebody asks for Done
	cancel context.CancelCauseFunc
	timer  *time.Timer // ends inner
	rings  mono.Time   // when the timer does

	quiet   *silence  // of the endpoint; nil until that is known
	since   mono.Time // when net/http began to wait for a byte; zero while it does not
	silent  bool      // a connection was given up
	patient bool      // none is given up any more
	second  bool      // the call is made a second time
	posted  bool      // net/http makes it
	ended   bool
}

// bound is when the call has to be over, and what fails then.
type bound struct {
	At  time.Time
	Why error
}

// live begins the life of a call, which ends after d with a cause, or returns that of the one that
// was asked. It has to be ended.
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

// next has the call end with a cause when d has passed, and lifts the bound before, unless that is
// over already: then it fails.
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

// over reports whether err comes from the end of the context or of the bound.
func (l *life) over(err error) bool {
	return l.Err() != nil || errors.Is(err, l.bound.Why)
}

// cause is why the context has ended, or the bound.
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
		if l.window == 0 { // the bound is the only one
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
