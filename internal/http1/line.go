package http1

import (
	"context"
	"time"
)

// Bound is when a call must be over, and the error if it is not. The zero Bound has no limit. It
// may fire early, by a sixteenth of the allowed time, which saves the system a timer for each call.
type Bound struct {
	At  time.Time
	Why error
	// Silence is how long no byte may arrive while an answer is awaited. After that, Listener
	// decides whether to close the connection. With 0 there is no limit, and with a nil Listener
	// the connection is never closed. Connections that do not support deadlines are not checked.
	Silence  time.Duration
	Listener Listener
}

// Listener decides about a call whose connection is silent.
type Listener interface {
	// GiveUp is called by the goroutine that waits for the answer. If it returns true, the call
	// fails with ErrSilent and its connection is closed. Otherwise the call continues until the end
	// of its bound, and GiveUp is not called for it again.
	GiveUp() bool
}

// Line makes consecutive requests and keeps the connection between them, so that a series of small
// requests neither uses the pool nor checks whether the connection is still open. Only one
// goroutine at a time may use it. The zero Line is ready to use. Call Park when no request follows.
type Line struct {
	c     *conn // unused since stop was made; nil while an answer is open
	done  <-chan struct{}
	stop  func() bool // the watch over the context of done; nil if there is none
	asked bool        // the answer to a request on c was not read yet
}

// fresh is how long a line's connection counts as open without a check. If it is closed, the
// request is repeated as for any other closed connection.
const fresh = 50 * time.Millisecond

// Do is [Host.Do]. The answer must be closed before the next request.
func (l *Line) Do(ctx context.Context, h *Host, message []byte, repeat bool, b Bound) (*Response, error) {
	return h.do(ctx, l, message, repeat, b)
}

// Fresh is Do over a new connection, as with [Host.Fresh]. The line keeps that connection.
func (l *Line) Fresh(ctx context.Context, h *Host, message []byte, b Bound) (*Response, error) {
	l.Park()
	return h.fresh(ctx, l, message, b)
}

// Ask sends a request and leaves the answer to [Line.Answer], so that many lines can send requests
// before any answer is awaited. It uses only an existing connection, the line's own or an unused
// one, and does not wait for one. If it returns false, the caller must make the request with
// [Line.Do]. The service may have seen the request in that case, so it must be repeatable.
func (l *Line) Ask(ctx context.Context, h *Host, message []byte, b Bound) bool {
	if ctx.Err() != nil {
		return false
	}
	now := time.Now()
	b = h.bound(now, b)
	c, stop := l.take(ctx, h, now, b)
	if c == nil {
		if c = h.kept(now, b); c == nil {
			return false
		}
		stop = c.watch(ctx)
	}
	if err := c.ask(ctx, message); err != nil {
		if stop != nil {
			stop()
		}
		h.drop(c)
		return false
	}
	l.c, l.done, l.stop, l.asked = c, ctx.Done(), stop, true
	return true
}

// Answer is the second half of an Ask that returned true, with the same context. again says that
// the connection was closed meanwhile: the caller must repeat the request with Do.
func (l *Line) Answer(ctx context.Context) (r *Response, again bool, err error) {
	if !l.asked {
		return nil, false, ErrClosed
	}
	c, stop := l.c, l.stop
	*l = Line{}
	r, again, err = c.host.answer(ctx, l, c, stop, nil)
	if again = again && ctx.Err() == nil; again {
		c.host.closeIdle()
	}
	return r, again, err
}

// Park returns the connection to the pool. A request whose answer was not read is abandoned.
func (l *Line) Park() {
	c, stop, asked := l.c, l.stop, l.asked
	*l = Line{}
	switch {
	case c == nil:
	case stop != nil && !stop() || asked: // it is or will be interrupted, or answered
		c.host.drop(c)
	default:
		c.host.put(c)
	}
}

// take returns the line's connection and the watch over the call's context if the connection can be
// used for a call, and otherwise nil.
func (l *Line) take(ctx context.Context, h *Host, now time.Time, b Bound) (*conn, func() bool) {
	if l == nil || l.c == nil {
		return nil, nil
	}
	if l.c.host != h || l.done != ctx.Done() || l.asked {
		l.Park()
		return nil, nil
	}
	c, stop := l.c, l.stop
	*l = Line{}
	c.bind(now, b)
	if ctx.Err() != nil {
		c.cut() // the interruption may have been overwritten
	} else if h.suspects(c) || now.Sub(c.idle) > fresh && !c.reusable() {
		if stop != nil {
			stop()
		}
		h.drop(c)
		return nil, nil
	}
	return c, stop
}

// keep takes a reusable connection back, with the watch over a context. It refuses if other callers
// wait for a connection.
func (l *Line) keep(c *conn, ctx context.Context, stop func() bool) bool {
	if l.c != nil || c.host.wanted() {
		return false
	}
	c.idle = time.Now()
	c.trim()
	l.c, l.done, l.stop = c, ctx.Done(), stop
	return true
}
