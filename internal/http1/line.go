package http1

import (
	"context"
	"time"
)

// Bound is when a call has to be over, and what fails then. The zero Bound never comes. It may come early, by a sixteenth of the time that it
// allows, since that spares the system a timer for each call.
type Bound struct {
	At  time.Time
	Why error
}

// Line makes requests one after the other and keeps the connection for the next, so that a run of small requests neither looks
// at the pool nor asks the system whether the connection is still open. It is for one goroutine at a time. The zero Line is ready; Park it when
// there is nothing more to ask.
type Line struct {
	c    *conn // not used since stop was made; nil while an answer is open
	done <-chan struct{}
	stop func() bool // the watch over the context that done is of; nil if there is none
}

// fresh is how long a connection of a line counts as open without a look. If it is not, the request is repeated like any other that found
// its connection closed.
const fresh = 50 * time.Millisecond

// Do is [Host.Do]. The answer has to be closed before the next one.
func (l *Line) Do(ctx context.Context, h *Host, message []byte, repeat bool, b Bound) (*Response, error) {
	return h.do(ctx, l, message, repeat, b)
}

// Park gives the connection back to those that others may use.
func (l *Line) Park() {
	c, stop := l.c, l.stop
	l.c, l.done, l.stop = nil, nil, nil
	switch {
	case c == nil:
	case stop != nil && !stop(): // it is or will be interrupted
		c.host.drop(c)
	default:
		c.host.put(c)
	}
}

// take returns the line's connection if it can be used for a call, and the watch over the call's context; else nil.
func (l *Line) take(ctx context.Context, h *Host, now time.Time, b Bound) (*conn, func() bool) {
	if l == nil || l.c == nil {
		return nil, nil
	}
	if l.c.host != h || l.done != ctx.Done() {
		l.Park()
		return nil, nil
	}
	c, stop := l.c, l.stop
	l.c, l.done, l.stop = nil, nil, nil
	c.bind(now, b)
	if ctx.Err() != nil {
		c.cut() // the interruption may have been overwritten
	} else if now.Sub(c.idle) > fresh && !c.reusable() {
		if stop != nil {
			stop()
		}
		h.drop(c)
		return nil, nil
	}
	return c, stop
}

// keep takes a connection back that can be used again, and the watch over a context. It refuses when others wait for a connection.
func (l *Line) keep(c *conn, ctx context.Context, stop func() bool) bool {
	if l.c != nil || c.host.wanted() {
		return false
	}
	c.idle = time.Now()
	c.trim()
	l.c, l.done, l.stop = c, ctx.Done(), stop
	return true
}
