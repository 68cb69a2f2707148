package http1

import (
	"container/list"
	"context"
	"crypto/tls"
	"slices"
	"sync/atomic"
	"time"

	"github.com/weir-go/weir/internal/lock"
)

// Host is one of a client's hosts, with its connections. It may be used concurrently.
type Host struct {
	client *Client
	addr   string
	tls    *tls.Config // nil without TLS

	mu      lock.Mutex[lock.Host]
	idle    []*conn // the most recently used connection is last
	open    int     // number of connections: idle, in use, or being made
	waiting list.List
	queue   atomic.Int32 // number of waiting callers
	expiry  *time.Timer  // closes idle connections; nil if there have been none
	closing bool         // keep no connection until the next request

	// silent belongs to the last connection that was closed because it was silent. It is the time
	// at which that silence began, in nanoseconds since the client was made. It is 0 if no
	// connection was silent. Connections that have not answered since then are suspect, because one
	// failure often affects all of them.
	silent atomic.Int64
}

// turn delivers a connection to a waiting caller, or nil as permission to make a connection.
type turn chan *conn

// get returns a connection, which the caller then owns. It prefers the most recently used one, so
// that unneeded connections expire. Callers wait in order. If unused is set, get makes a new
// connection, which may replace an idle one.
func (h *Host) get(ctx context.Context, b Bound, unused bool) (*conn, error) {
	bounded := b.At.IsZero()
	for {
		h.mu.Lock()
		h.closing = false
		var c, old *conn
		var wait turn
		var place *list.Element
		switch n := len(h.idle); {
		case n > 0 && !unused:
			c = h.idle[n-1]
			h.idle[n-1] = nil
			h.idle = h.idle[:n-1]
		case h.open < h.client.opts.MaxConns:
			h.open++
		case n > 0:
			old = h.idle[0] // the new connection takes its place
			h.idle = slices.Delete(h.idle, 0, 1)
		default:
			wait = make(turn, 1)
			place = h.waiting.PushBack(wait)
			h.queue.Add(1)
		}
		h.mu.Unlock()

		if old != nil {
			old.end()
		}
		if c == nil && !bounded {
			bounded = true
			var end context.CancelFunc
			ctx, end = context.WithDeadlineCause(ctx, b.At, b.Why)
			defer end()
		}
		if wait != nil {
			select {
			case c = <-wait:
			case <-ctx.Done():
				h.leave(place, wait)
				return nil, context.Cause(ctx)
			}
		}
		if c == nil {
			c, err := h.dial(ctx)
			if err != nil {
				err = because(ctx, err)
			}
			return c, err
		}
		if h.good(c, time.Now(), b) {
			return c, nil
		}
	}
}

// good reports whether an idle connection can be used, and binds it to the call. It drops an
// unusable connection.
func (h *Host) good(c *conn, now time.Time, b Bound) bool {
	c.bind(now, b) // an expired deadline would look like a closed connection
	if now.Sub(c.idle) < h.client.opts.IdleTimeout && !h.suspects(c) && c.reusable() {
		return true
	}
	h.drop(c)
	return false
}

// kept is like get without waiting. It returns nil if there is no usable idle connection.
func (h *Host) kept(now time.Time, b Bound) *conn {
	for {
		h.mu.Lock()
		h.closing = false
		n := len(h.idle)
		if n == 0 {
			h.mu.Unlock()
			return nil
		}
		c := h.idle[n-1]
		h.idle[n-1] = nil
		h.idle = h.idle[:n-1]
		h.mu.Unlock()
		if h.good(c, now, b) {
			return c
		}
	}
}

// leave removes a caller from the queue. If the caller has just received a turn, leave passes it
// on.
func (h *Host) leave(place *list.Element, wait turn) {
	h.mu.Lock()
	h.waiting.Remove(place)
	h.queue.Store(int32(h.waiting.Len()))
	h.mu.Unlock()
	select {
	case c := <-wait:
		if c != nil {
			h.put(c)
		} else {
			h.free()
		}
	default:
	}
}

// next returns the caller that has waited longest, or nil. The caller holds h.mu.
func (h *Host) next() turn {
	first := h.waiting.Front()
	if first == nil {
		return nil
	}
	wait := h.waiting.Remove(first).(turn)
	h.queue.Store(int32(h.waiting.Len()))
	return wait
}

// wanted reports whether at least one caller waits for a connection.
func (h *Host) wanted() bool { return h.queue.Load() > 0 }

// put takes back a reusable connection.
func (h *Host) put(c *conn) {
	c.trim()
	if c.timer != nil { // the timer would interrupt the connection
		c.bind(time.Time{}, Bound{})
	}
	h.mu.Lock()
	now := time.Now()
	c.idle = now
	if wait := h.next(); wait != nil {
		h.mu.Unlock()
		wait <- c
		return
	}
	if h.closing {
		h.mu.Unlock()
		h.drop(c)
		return
	}
	h.idle = append(h.idle, c)
	if h.expiry == nil {
		h.expiry = time.AfterFunc(h.client.opts.IdleTimeout, h.expire)
	}
	h.mu.Unlock()
}

// drop closes a connection, so that another one can be made.
func (h *Host) drop(c *conn) {
	c.end()
	h.free()
}

// end closes a connection.
func (c *conn) end() {
	if c.timer != nil {
		c.timer.Stop()
	}
	_ = c.Close() // an error does not matter
}

// suspects reports whether a connection may be dead for the same reason as a connection that was
// closed because it was silent.
func (h *Host) suspects(c *conn) bool {
	silent := h.silent.Load()
	return silent > 0 && int64(c.heard.Sub(h.client.born)) < silent
}

// suspect is called before a silent connection is closed. since is the beginning of the silence.
// All connections that have not answered since then become suspect. suspect closes the idle ones.
// Connections in use are closed when they would otherwise be reused.
func (h *Host) suspect(since time.Time) {
	at := int64(since.Sub(h.client.born))
	for last := h.silent.Load(); last < at && !h.silent.CompareAndSwap(last, at); {
		last = h.silent.Load()
	}
	h.mu.Lock()
	var dead []*conn
	h.idle = slices.DeleteFunc(h.idle, func(c *conn) bool {
		if !h.suspects(c) {
			return false
		}
		dead = append(dead, c)
		return true
	})
	h.mu.Unlock()
	for _, c := range dead {
		h.drop(c)
	}
}

// free releases the place of a connection.
func (h *Host) free() {
	h.mu.Lock()
	wait := h.next()
	if wait == nil {
		h.open--
	}
	h.mu.Unlock()
	if wait != nil {
		wait <- nil
	}
}

// expire closes connections that have been idle for too long, and sets the timer for the next
// connection. All connections share one timer.
func (h *Host) expire() {
	h.mu.Lock()
	now := time.Now()
	n := 0
	for n < len(h.idle) && now.Sub(h.idle[n].idle) >= h.client.opts.IdleTimeout {
		n++
	}
	old := slices.Clone(h.idle[:n])
	h.idle = slices.Delete(h.idle, 0, n)
	h.expiry = nil
	if len(h.idle) > 0 {
		h.expiry = time.AfterFunc(h.client.opts.IdleTimeout-now.Sub(h.idle[0].idle), h.expire)
	}
	h.mu.Unlock()
	for _, c := range old {
		h.drop(c)
	}
}

func (h *Host) closeIdle() {
	h.mu.Lock()
	all := h.idle
	h.idle = nil
	h.closing = true
	if h.expiry != nil {
		h.expiry.Stop()
		h.expiry = nil
	}
	h.mu.Unlock()
	for _, c := range all {
		h.drop(c)
	}
}
