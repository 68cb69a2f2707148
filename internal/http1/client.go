package http1

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"time"

	"github.com/weir-go/weir/internal/lock"
)

// Options configures a [Client].
type Options struct {
	// DialContext makes network connections. The default is the method of a net.Dialer.
	DialContext func(ctx context.Context, network, addr string) (net.Conn, error)
	// TLS is copied for each host. If it has no server name, the host's name is used.
	TLS *tls.Config
	// TLSHandshakeTimeout limits a handshake. With 0 only the context limits it.
	TLSHandshakeTimeout time.Duration
	// HeaderTimeout limits the time from the end of the request to the end of the answer's head.
	// With 0 only the context limits it.
	HeaderTimeout time.Duration
	// ReadTimeout is the maximum time without a received byte while an answer is awaited. With 0
	// only the context limits it.
	ReadTimeout time.Duration
	// Timeout limits each request, from before it waits for a connection until its answer is closed
	// or gets another bound. With 0 only the context limits it.
	Timeout time.Duration
	// IdleTimeout is how long an unused connection is kept. Default 90 s.
	IdleTimeout time.Duration
	// MaxConns is the maximum number of connections to one host. Default 128.
	MaxConns int
	// MaxHead is the maximum size of the head of an answer in bytes. Default 64 KiB.
	MaxHead int
}

const (
	defaultIdleTimeout = 90 * time.Second
	defaultMaxConns    = 128
)

// Client sends requests over connections that it keeps. It may be used concurrently.
type Client struct {
	opts  Options
	born  time.Time
	mu    lock.Mutex[lock.Client]
	hosts map[string]*Host
}

// New returns a client. It starts no goroutine and makes no connection.
func New(o Options) *Client {
	if o.DialContext == nil {
		o.DialContext = new(net.Dialer).DialContext
	}
	if o.IdleTimeout <= 0 {
		o.IdleTimeout = defaultIdleTimeout
	}
	if o.MaxConns <= 0 {
		o.MaxConns = defaultMaxConns
	}
	if o.MaxHead <= 0 {
		o.MaxHead = defaultMaxHead
	}
	return &Client{opts: o, born: time.Now(), hosts: make(map[string]*Host)}
}

// Host returns the host for URLs with this scheme (http or https) and host, which may include a
// port. It makes no connection.
func (c *Client) Host(scheme, host string) (*Host, error) {
	secure := scheme == "https"
	if !secure && scheme != "http" {
		return nil, fmt.Errorf("the scheme is %q, not http or https", scheme)
	}
	name, addr, err := address(host, secure)
	if err != nil {
		return nil, err
	}
	key := scheme + "://" + addr
	c.mu.Lock()
	defer c.mu.Unlock()
	if h, ok := c.hosts[key]; ok {
		return h, nil
	}
	h := &Host{client: c, addr: addr}
	if secure {
		h.tls = tlsConfig(c.opts.TLS, name)
	}
	c.hosts[key] = h
	return h, nil
}

// CloseIdle closes unused connections. Connections in use are closed when they are returned, unless
// another request began before. The client can still be used, and keeps the connections of later
// requests.
func (c *Client) CloseIdle() {
	c.mu.Lock()
	hosts := make([]*Host, 0, len(c.hosts))
	for _, h := range c.hosts {
		hosts = append(hosts, h)
	}
	c.mu.Unlock()
	for _, h := range hosts {
		h.closeIdle()
	}
}

// Do sends a request and returns when the head of the answer was read. message is the complete
// request with head and body. Do does not retain it. Redirects are ordinary answers.
//
// If repeat is set and a kept connection turns out to be closed, the request is sent again over
// another connection. The service may then get it twice.
//
// ctx also applies to the answer until it is closed. If ctx ends, the error is its cause. Other
// errors are the error of the bound, [ErrSilent], errors that wrap [ErrMalformed] or
// [ErrHeadTooLarge], a [*TimeoutError], and network errors.
func (h *Host) Do(ctx context.Context, message []byte, repeat bool, b Bound) (*Response, error) {
	return h.do(ctx, nil, outgoing{whole: message}, repeat, b)
}

// DoParts is like Do without repeat, for a request in several parts: message, which contains the
// head, and the parts that follow it. The parts must not change before DoParts returns.
func (h *Host) DoParts(ctx context.Context, message []byte, parts [][]byte, b Bound) (*Response, error) {
	return h.do(ctx, nil, outgoing{message, parts}, false, b)
}

// outgoing is a request to write: a slice, and the parts that follow it.
type outgoing struct {
	whole []byte
	parts [][]byte
}

// do is like Do. If l is not nil, it uses the connection of that line.
func (h *Host) do(ctx context.Context, l *Line, message outgoing, repeat bool, b Bound) (*Response, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	now := time.Now()
	b = h.bound(now, b)
	r, kept, err := h.try(ctx, l, message, now, b)
	if err != nil && kept && repeat && ctx.Err() == nil {
		h.closeIdle() // all of them were idle for longer than the closed one
		r, _, err = h.try(ctx, l, message, now, b)
	}
	return r, err
}

// Fresh is like Do, but uses a new connection. It is for a request that got no answer over an old
// connection. If no further connection is allowed, the new connection replaces an idle one. If all
// connections are in use, Fresh waits, and may get a connection that another caller returns.
func (h *Host) Fresh(ctx context.Context, message []byte, b Bound) (*Response, error) {
	return h.fresh(ctx, nil, message, b)
}

func (h *Host) fresh(ctx context.Context, l *Line, message []byte, b Bound) (*Response, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	now := time.Now()
	b = h.bound(now, b)
	c, err := h.get(ctx, b, true)
	if err != nil {
		return nil, because(ctx, err)
	}
	c.bind(now, b)
	stop := c.watch(ctx)
	r, _, err := h.answer(ctx, l, c, stop, c.ask(ctx, outgoing{whole: message}))
	return r, err
}

// bound returns the earlier of b and the client's own bound.
func (h *Host) bound(now time.Time, b Bound) Bound {
	if d := h.client.opts.Timeout; d > 0 && (b.At.IsZero() || b.At.Sub(now) > d) {
		b.At, b.Why = now.Add(d), &TimeoutError{"whole answer", d}
	}
	if b.Why == nil {
		b.Why = context.DeadlineExceeded
	}
	return b
}

// try sends a request once. again reports that it failed because a kept connection had been closed.
func (h *Host) try(ctx context.Context, l *Line, message outgoing, now time.Time, b Bound) (r *Response, again bool, err error) {
	c, stop := l.take(ctx, h, now, b)
	if c == nil {
		if c, err = h.get(ctx, b, false); err != nil {
			return nil, false, because(ctx, err)
		}
		c.bind(now, b)
		stop = c.watch(ctx)
	}
	err = c.ask(ctx, message)
	return h.answer(ctx, l, c, stop, err)
}

// watch interrupts the use of the connection when ctx ends. Calling stop prevents the interruption.
// stop is nil if ctx never ends.
func (c *conn) watch(ctx context.Context) (stop func() bool) {
	if ctx.Done() == nil {
		return nil
	}
	return context.AfterFunc(ctx, c.cut)
}

// answer reads the head of the answer. err is the error of writing the request. again has the same
// meaning as for try.
func (h *Host) answer(ctx context.Context, l *Line, c *conn, stop func() bool, err error) (r *Response, again bool, _ error) {
	var head head
	if err == nil {
		head, err = c.answer(ctx)
	}
	if err == nil {
		r = &Response{Status: head.status, Waited: c.heard.Sub(c.asked), ctx: ctx, stop: stop, c: c, line: l}
		r.framing, r.Length, r.keep, err = head.body()
		r.left = max(r.Length, 0)
	}
	if err != nil {
		if stop != nil {
			stop()
		}
		why := c.bound.Why
		late := c.late(err)
		h.drop(c)
		if late {
			return nil, false, because(ctx, why)
		}
		if err == ErrSilent { //nolint:errorlint // it is not wrapped here
			return nil, false, because(ctx, err)
		}
		_, timeout := err.(*TimeoutError) //nolint:errorlint // a TimeoutError of this package is never wrapped
		return nil, c.used && !c.answered && !timeout, because(ctx, err)
	}
	c.used = true
	return r, false, nil
}
