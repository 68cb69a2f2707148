package http1

import (
	"context"
	"time"
)

// Bound is the deadline of a call, and the error that the call returns after the deadline. The zero
// Bound has no limit. A call may end before its deadline, but earlier by at most a sixteenth of the
// time that the call had. The system therefore needs no new timer for each call.
type Bound struct {
	At  time.Time
	Why error
	// Silence is the maximum time without a received byte while an answer is awaited. After that,
	// Listener decides whether to close the connection. With 0 there is no limit. With a nil
	// Listener the connection is never closed. Connections that do not support deadlines are not
	// checked.
	Silence  time.Duration
	Listener Listener
}

// Listener decides whether to give up a silent connection.
type Listener interface {
	// GiveUp is called by the goroutine that waits for the answer. If it returns true, the
	// connection is closed and the call fails with ErrSilent. Otherwise the call continues until
	// its deadline, and GiveUp is not called for it again.
	GiveUp() bool
}

// Line sends consecutive requests and keeps the connection between them. A series of small requests
// then uses the pool only once, and rarely checks whether the connection is still open. Only one
// goroutine at a time may use it. The zero Line is ready to use. Call Park when no request follows.
type Line struct {
	c     *conn // unused since stop was set; nil while an answer is open
	done  <-chan struct{}
	stop  func() bool // ends the watch over the context of done; nil if there is none
	asked bool        // the answer to a request on c was not read yet
}

// fresh is how long a line's connection counts as open without a check. If the connection turns out
// to be closed, the request is repeated as for any other closed connection.
const fresh = 50 * time.Millisecond

// Do is like [Host.Do]. The answer must be closed before the next request.
func (l *Line) Do(ctx context.Context, h *Host, message []byte, repeat bool, b Bound) (*Response, error) {
	return h.do(ctx, l, outgoing{whole: message}, repeat, b)
}

// Fresh is like Do, but uses a new connection, as [Host.Fresh] does. The line keeps the new
// connection.
func (l *Line) Fresh(ctx context.Context, h *Host, message []byte, b Bound) (*Response, error) {
	l.Park()
	return h.fresh(ctx, l, message, b)
}

// Ask sends a request and leaves the answer to [Line.Answer]. Many lines can therefore send
// requests before any answer is awaited. Ask only uses an existing connection, either the line's
// own or an unused one, and does not wait for one. If it returns false, the caller must send the
// request with [Line.Do]. In that case the service may already have received the request, so only a
// repeatable request may be sent with Ask.
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
	if err := c.ask(ctx, outgoing{whole: message}); err != nil {
		if stop != nil {
			stop()
		}
		h.drop(c)
		return false
	}
	l.c, l.done, l.stop, l.asked = c, ctx.Done(), stop, true
	return true
}

// Answer reads the answer after an Ask that returned true. ctx must be the same. If again is set,
// the connection was closed, and the caller must repeat the request with Do.
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

// Park returns the connection to the pool. It closes the connection instead if an answer was not
// read, or if the context of the last request has ended.
func (l *Line) Park() {
	c, stop, asked := l.c, l.stop, l.asked
	*l = Line{}
	switch {
	case c == nil:
	case stop != nil && !stop() || asked: // it is interrupted soon, or may be answered
		c.host.drop(c)
	default:
		c.host.put(c)
	}
}

// take returns the line's connection and the watch over the call's context. It returns nil if the
// connection cannot be used for the call.
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

// keep takes back a reusable connection, with the watch over a context. It returns false if the
// line has another connection, or if other callers wait for one.
func (l *Line) keep(c *conn, ctx context.Context, stop func() bool) bool {
	if l.c != nil || c.host.wanted() {
		return false
	}
	c.idle = time.Now()
	c.trim()
	l.c, l.done, l.stop = c, ctx.Done(), stop
	return true
}
