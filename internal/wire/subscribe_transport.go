package wire

import (
	"net/http"
	"sync"
	"time"

	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"
)

// streamClient is the HTTP client for subscriptions, made with the first one.
type streamClient struct {
	once      sync.Once
	client    doer
	closeIdle func()
}

func (s *streamClient) of(c *Caller) doer {
	s.once.Do(func() { s.client, s.closeIdle = streamDoer(c.client.Options().HTTPClient) })
	return s.client
}

func (s *streamClient) close() {
	s.once.Do(func() { s.closeIdle = func() {} }) // nothing to close, and no later start
	s.closeIdle()
}

const (
	// streamWindow is how much unread data of a subscription may have arrived over HTTP/2. This
	// memory is in addition to that of pages. The window of a connection is 1 GiB, so that
	// thousands of unread subscriptions leave it open for others. The service's 2 MiB per second of
	// a shard pass with round trips of up to 120 ms.
	streamWindow = 256 << 10
	// streamPing is how long a connection may be silent before it is pinged. streamPong is how long
	// the answer may take. After that all its subscriptions end. Without this, new ones would use
	// the same dead connection.
	streamPing = 10 * time.Second
	streamPong = 10 * time.Second
)

// streamDoer makes an HTTP client with the settings of the one in a client's options and its own
// connections. These are tuned for streams that last minutes: over HTTP/2 if the transport supports
// it, with as many connections as necessary, and without a timeout for whole calls.
func streamDoer(from kinesis.HTTPClient) (client doer, closeIdle func()) {
	nothing := func() {}
	switch c := from.(type) {
	case *awshttp.BuildableClient:
		if d, ok := c.GetReadTimeout(); ok && d > 0 {
			// only the client itself can do this
			return c.WithTransportOptions(tuneForStreams), nothing
		}
		t := c.GetTransport()
		tuneForStreams(t)
		return &http.Client{Transport: t, CheckRedirect: stay}, t.CloseIdleConnections
	case *http.Client:
		own := *c
		own.Timeout = 0
		shared := c.Transport
		if shared == nil {
			shared = http.DefaultTransport
		}
		t, ok := shared.(*http.Transport)
		if !ok {
			return &own, nothing
		}
		t = t.Clone()
		tuneForStreams(t)
		own.Transport = t
		return &own, t.CloseIdleConnections
	}
	return from, nothing
}

func tuneForStreams(t *http.Transport) {
	t.DisableCompression = true
	t.MaxConnsPerHost = 0 // over HTTP/1.1 each subscription needs one for minutes
	//nolint:staticcheck // DialTLS is deprecated, but old programs set it
	dials := t.DialTLS != nil || t.DialTLSContext != nil
	if !dials && t.TLSNextProto == nil && (t.Protocols == nil || t.Protocols.HTTP2()) {
		t.ForceAttemptHTTP2 = true
	}
	var h2 http.HTTP2Config
	if t.HTTP2 != nil {
		h2 = *t.HTTP2
	}
	if h2.MaxReceiveBufferPerStream == 0 || h2.MaxReceiveBufferPerStream > streamWindow {
		h2.MaxReceiveBufferPerStream = streamWindow
	}
	// the default, 1 GiB; unread streams use less than that
	h2.MaxReceiveBufferPerConnection = 0
	if h2.SendPingTimeout == 0 {
		h2.SendPingTimeout, h2.PingTimeout = streamPing, streamPong
	}
	t.HTTP2 = &h2
}
