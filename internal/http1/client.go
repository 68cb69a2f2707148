package http1

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"time"

	"github.com/weir-go/weir/internal/lock"
)

// Options of a [Client].
type Options struct {
	// DialContext makes network connections. By default a net.Dialer does.
	DialContext func(ctx context.Context, network, addr string) (net.Conn, error)
	// TLS is copied for each host. The server's name is that of the host unless it is set here.
	TLS *tls.Config
	// TLSHandshakeTimeout bounds a handshake. 0 leaves that to the context.
	TLSHandshakeTimeout time.Duration
	// HeaderTimeout bounds the time from when a request was written until the head of the answer
	// was read. 0 leaves that to the context.
	HeaderTimeout time.Duration
	// ReadTimeout is how long nothing may come while an answer is waited for. 0 leaves that to the
	// context.
	ReadTimeout time.Duration
	// Timeout bounds each request, from before it waits for a connection until its answer is
	// closed. 0 leaves that to the context.
	Timeout time.Duration
	// IdleTimeout is how long a connection is kept that nobody uses. Default 90 s.
	IdleTimeout time.Duration
	// MaxConns is how many connections there may be to one host at a time. Default 128.
	MaxConns int
	// MaxHead is how many bytes the head of an answer may have. Default 64 KiB.
	MaxHead int
}

const (
	defaultIdleTimeout = 90 * time.Second
	defaultMaxConns    = 128
)

// Client makes requests over connections that it keeps. It may be used concurrently.
type Client struct {
	opts  Options
	born  time.Time
	mu    lock.Mutex[lock.Client]
	hosts map[string]*Host
}

// New makes a client. It starts nothing and calls nobody.
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

// Host returns the host of a URL with this scheme, http or https, and this host, which may have a
// port. It calls nobody.
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

// CloseIdle closes connections that nobody uses, and those in use as soon as they are given back.
// Requests may still be made, which keep their connections again.
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

// Do sends a request, which message is all of: head and body. It returns when the head of the
// answer was read; redirects are answers like others. If repeat is set, a request that found its
// connection closed, which had been kept from before, is sent once more over a new one; the service
// may then see it twice.
//
// The message is not kept. ctx governs the answer too, until it is closed, and when it ends the
// error is its cause. Others are the bound's, wrap [ErrMalformed] or [ErrHeadTooLarge], are a
// [*TimeoutError], or come from the network.
func (h *Host) Do(ctx context.Context, message []byte, repeat bool, b Bound) (*Response, error) {
	return h.do(ctx, nil, message, repeat, b)
}

// do is Do, on the connection that a line has, if there is a line.
func (h *Host) do(ctx context.Context, l *Line, message []byte, repeat bool, b Bound) (*Response, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	now := time.Now()
	b = h.bound(now, b)
	r, kept, err := h.try(ctx, l, message, now, b)
	if err != nil && kept && repeat && ctx.Err() == nil {
		h.closeIdle() // all of them were idle for longer than the one that was closed
		r, _, err = h.try(ctx, l, message, now, b)
	}
	return r, err
}

// Fresh is Do over a new connection, for a request that got no answer over an old one. Only where
// no other connection may be made one is taken that somebody else has just given back.
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
	r, _, err := h.answer(ctx, l, c, stop, c.ask(ctx, message))
	return r, err
}

// bound is b, or the client's own if that is sooner.
func (h *Host) bound(now time.Time, b Bound) Bound {
	if d := h.client.opts.Timeout; d > 0 && (b.At.IsZero() || b.At.Sub(now) > d) {
		b.At, b.Why = now.Add(d), &TimeoutError{"whole answer", d}
	}
	if b.Why == nil {
		b.Why = context.DeadlineExceeded
	}
	return b
}

// try sends a request once. again says that it failed because of a connection that was kept too
// long.
func (h *Host) try(ctx context.Context, l *Line, message []byte, now time.Time, b Bound) (r *Response, again bool, err error) {
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

// watch interrupts whoever waits for the connection when ctx ends, until stop is called, which is
// nil when ctx does not end.
func (c *conn) watch(ctx context.Context) (stop func() bool) {
	if ctx.Done() == nil {
		return nil
	}
	return context.AfterFunc(ctx, c.cut)
}

// answer reads the head of the answer to a request that was written with err. again is that of try.
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
		_, timeout := err.(*TimeoutError) //nolint:errorlint // it is ours, and never wrapped
		return nil, c.used && !c.answered && !timeout, because(ctx, err)
	}
	c.used = true
	return r, false, nil
}
