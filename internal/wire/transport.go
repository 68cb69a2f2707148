package wire

import (
	"crypto/tls"
	"net/http"
	"net/url"
	"time"

	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"

	"github.com/weir-go/weir/internal/http1"
)

// doer is an HTTP client.
type doer interface {
	Do(*http.Request) (*http.Response, error)
}

// ownClient returns an HTTP client with its own connections and the settings of the given HTTP
// client. It uses only HTTP/1.1, which takes half the CPU time of HTTP/2 for answers of a megabyte.
// It uses at most conns connections to a host at a time. closeIdle closes the idle ones. An HTTP
// client whose transport cannot be changed is returned unchanged.
func ownClient(from kinesis.HTTPClient, conns int) (client doer, closeIdle func()) {
	nothing := func() {}
	switch c := from.(type) {
	case *awshttp.BuildableClient:
		if d, ok := c.GetReadTimeout(); ok && d > 0 {
			// Only the SDK's client itself can apply a read timeout. closeIdle then does nothing.
			// The idle connections close after some time.
			return c.WithTransportOptions(func(t *http.Transport) { tune(t, conns) }), nothing
		}
		t := c.GetTransport()
		tune(t, conns)
		return &http.Client{Transport: t, Timeout: c.GetTimeout(), CheckRedirect: stay}, t.CloseIdleConnections
	case *http.Client:
		shared := c.Transport
		if shared == nil {
			shared = http.DefaultTransport
		}
		t, ok := shared.(*http.Transport)
		if !ok || !tunable(t) {
			return c, nothing
		}
		t = t.Clone()
		tune(t, conns)
		own := *c
		own.Transport = t
		return &own, t.CloseIdleConnections
	}
	return from, nothing
}

// surplus is how long an unused connection is kept. The most recently used connection is reused
// first, so an unused one was only needed for a burst, such as a start. The next burst is unlikely
// to follow soon. Each connection takes about 15 KB. Fewer idle connections also mean that fewer
// can die silently.
const surplus = 10 * time.Second

// leanClient returns a client of package http1 with the settings of from, or nil if that package
// does not support them. proxy returns the proxy of a request. net/http makes requests that need a
// proxy.
func leanClient(from kinesis.HTTPClient, opts Options) (client *http1.Client, proxy func(*http.Request) (*url.URL, error)) {
	var t *http.Transport
	var timeout, read time.Duration
	switch c := from.(type) {
	case *awshttp.BuildableClient:
		t, timeout = c.GetTransport(), c.GetTimeout()
		read, _ = c.GetReadTimeout()
	case *http.Client:
		if c.Jar != nil || c.CheckRedirect != nil {
			return nil, nil
		}
		shared := c.Transport
		if shared == nil {
			shared = http.DefaultTransport
		}
		var ok bool
		if t, ok = shared.(*http.Transport); !ok {
			return nil, nil
		}
		t, timeout = t.Clone(), c.Timeout
	default:
		return nil, nil
	}
	o, err := http1.FromTransport(t)
	if err != nil {
		return nil, nil // net/http makes the calls
	}
	if o.MaxConns == 0 || o.MaxConns > opts.MaxConns {
		o.MaxConns = opts.MaxConns
	}
	o.Timeout = max(timeout, 0)
	if o.IdleTimeout <= 0 || o.IdleTimeout > surplus {
		o.IdleTimeout = surplus
	}
	if read > 0 && read < opts.Timeout { // a longer timeout never ends before the call
		o.ReadTimeout = read
	}
	return http1.New(o), t.Proxy
}

// stay follows no redirect, because the signature covers the host.
func stay(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

// tunable reports whether a transport can be restricted to HTTP/1.1. This is impossible if it has
// its own function to dial TLS, or if it only allows HTTP/2.
func tunable(t *http.Transport) bool {
	//nolint:staticcheck // DialTLS is deprecated, but old programs set it
	return t.DialTLS == nil && t.DialTLSContext == nil && (t.Protocols == nil || t.Protocols.HTTP1())
}

func tune(t *http.Transport, conns int) {
	if !tunable(t) {
		return
	}
	t.ForceAttemptHTTP2 = false
	t.TLSNextProto = map[string]func(string, *tls.Conn) http.RoundTripper{}
	t.Protocols = new(http.Protocols)
	t.Protocols.SetHTTP1(true)
	if t.TLSClientConfig == nil {
		t.TLSClientConfig = new(tls.Config)
	} else {
		t.TLSClientConfig = t.TLSClientConfig.Clone()
	}
	t.TLSClientConfig.NextProtos = []string{"http/1.1"}
	t.DisableCompression = true
	// The default keeps so few idle connections that many shards would dial for each poll.
	if t.MaxConnsPerHost == 0 || t.MaxConnsPerHost > conns {
		t.MaxConnsPerHost = conns
	}
	t.MaxIdleConnsPerHost = max(t.MaxIdleConnsPerHost, t.MaxConnsPerHost)
	if t.MaxIdleConns != 0 {
		t.MaxIdleConns = max(t.MaxIdleConns, t.MaxIdleConnsPerHost)
	}
	if t.IdleConnTimeout <= 0 || t.IdleConnTimeout > surplus {
		t.IdleConnTimeout = surplus
	}
}
