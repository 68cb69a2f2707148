package http1

import (
	"context"
	"time"
)

// Bound is when a call has to be over, and what fails then. The zero Bound never comes. It may come
// early, by a sixteenth of the time that it allows, since that spares the system a timer for each
// call.
type Bound struct {
	At  time.Time
	Why error
	// Silence is how long no byte may come while an answer is waited for before Listener is asked
	// whether to give the connection up. 0 asks nobody, and a nil Listener never gives up.
	// Connections that know no deadlines are not listened to.
	Silence  time.Duration
	Listener Listener
}

// Listener decides what becomes of a call whose connection is silent.
type Listener interface {
	// GiveUp is called by whoever waits for the answer. If it returns true the call fails with
	// ErrSilent and its connection is closed; otherwise the call goes on to the end of its bound,
	// and GiveUp is not called again for it.
	GiveUp() bool
}

// Line makes requests one after the other and keeps the connection for the next, so that a run of
// small requests neither looks at the pool nor asks the system whether the connection is still
// open. It is for one goroutine at a time. The zero Line is ready; Park it when there is nothing
// more to ask.
type Line struct {
	c     *conn // not used since stop was made; nil while an answer is open
	done  <-chan struct{}
	stop  func() bool // the watch over the context that done is of; nil if there is none
	asked bool        // the answer to a request on c was not read yet
}

// fresh is how long a connection of a line counts as open without a look. If it is not, the request
// is repeated like any other that found its connection closed.
const fresh = 50 * time.Millisecond

// Do is [Host.Do]. The answer has to be closed before the next one.
func (l *Line) Do(ctx context.Context, h *Host, message []byte, repeat bool, b Bound) (*Response, error) {
	return h.do(ctx, l, message, repeat, b)
}

// Fresh is Do over a new connection, as [Host.Fresh] makes it, which the line keeps.
func (l *Line) Fresh(ctx context.Context, h *Host, message []byte, b Bound) (*Response, error) {
	l.Park()
	return h.fresh(ctx, l, message, b)
}

// Ask sends a request, and leaves the answer to [Line.Answer], so that many lines can be asked
// before any is waited for. It does so only on a connection that is there, the line's own or one
// that nobody uses, and waits for none. If it returns false the request has to be made with
// [Line.Do]; the service may have seen it then, so only what may be repeated can be asked so.
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
// the connection had been closed meanwhile: the request has to be made once more, with Do.
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

// Park gives the connection back to those that others may use. A request whose answer was not read
// is given up.
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

// take returns the line's connection if it can be used for a call, and the watch over the call's
// context; else nil.
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

// keep takes a connection back that can be used again, and the watch over a context. It refuses
// when others wait for a connection.
func (l *Line) keep(c *conn, ctx context.Context, stop func() bool) bool {
	if l.c != nil || c.host.wanted() {
		return false
	}
	c.idle = time.Now()
	c.trim()
	l.c, l.done, l.stop = c, ctx.Done(), stop
	return true
}
