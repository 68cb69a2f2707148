package wire

import (
	"crypto/tls"
	"net/http"

	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"
)

// doer is an HTTP client.
type doer interface {
	Do(*http.Request) (*http.Response, error)
}

// ownClient makes an HTTP client that does what the one of a plain client's options does, with connections of its own: over
// HTTP/1.1 only, which costs half of the CPU that HTTP/2 does for answers of a megabyte, and at most conns at a time. closeIdle
// closes those that are idle; what belongs to the user is left alone.
func ownClient(from kinesis.HTTPClient, conns int) (client doer, closeIdle func()) {
	nothing := func() {}
	switch c := from.(type) {
	case *awshttp.BuildableClient:
		if d, ok := c.GetReadTimeout(); ok && d > 0 {
			// Only the client itself can do this; its connections close when they have been idle for a while.
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

// stay follows no redirect: the signature covers the host.
func stay(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

// tunable reports whether a transport can be made to speak HTTP/1.1: not one that dials TLS in its own way, and not one that
// was told to speak nothing but HTTP/2.
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
	// The default keeps so few idle connections that more shards than that dial for each poll.
	if t.MaxConnsPerHost == 0 || t.MaxConnsPerHost > conns {
		t.MaxConnsPerHost = conns
	}
	t.MaxIdleConnsPerHost = max(t.MaxIdleConnsPerHost, t.MaxConnsPerHost)
	if t.MaxIdleConns != 0 {
		t.MaxIdleConns = max(t.MaxIdleConns, t.MaxIdleConnsPerHost)
	}
}
