package wire

import (
	"net/http"
	"sync"
	"time"

	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"
)

// streamClient contains the HTTP client for subscriptions. The first subscription creates it.
type streamClient struct {
	once      sync.Once
	client    doer
	closeIdle func()
}

func (s *streamClient) of(c *Caller) doer {
	s.once.Do(func() { s.client, s.closeIdle = streamDoer(c.real.Options().HTTPClient) })
	return s.client
}

func (s *streamClient) close() {
	s.once.Do(func() { s.closeIdle = func() {} }) // nothing to close, and none is created later
	s.closeIdle()
}

const (
	// streamWindow is the maximum amount of unread data of a subscription over HTTP/2. This memory
	// is in addition to the memory of pages. The window of a connection is 1 GiB, so that thousands
	// of unread subscriptions do not block others. 256 KiB allow the 2 MiB per second of a shard
	// with round trips of up to 120 ms.
	streamWindow = 256 << 10
	// streamPing is the silence after which a connection is pinged. streamPong is the maximum wait
	// for the answer. Without an answer, all subscriptions of the connection end. Without pings,
	// new subscriptions would use the same dead connection.
	streamPing = 10 * time.Second
	streamPong = 10 * time.Second
)

// streamDoer returns an HTTP client with its own connections and the settings of the given HTTP
// client. It is tuned for streams that last minutes. It uses HTTP/2 if the transport supports it,
// any number of connections, and no timeout for whole calls. An HTTP client of another type is
// returned unchanged.
func streamDoer(from kinesis.HTTPClient) (client doer, closeIdle func()) {
	nothing := func() {}
	switch c := from.(type) {
	case *awshttp.BuildableClient:
		if d, ok := c.GetReadTimeout(); ok && d > 0 {
			// Only the SDK's client itself can apply a read timeout. It also keeps its timeout for
			// whole calls.
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
	t.MaxConnsPerHost = 0 // over HTTP/1.1 each subscription needs its own connection for minutes
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
	// Use the default of 1 GiB. Unread streams use less than that.
	h2.MaxReceiveBufferPerConnection = 0
	if h2.SendPingTimeout == 0 {
		h2.SendPingTimeout, h2.PingTimeout = streamPing, streamPong
	}
	t.HTTP2 = &h2
}
