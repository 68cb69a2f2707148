package dynamostore

import (
	"net/http"
	"time"

	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
)

// pool contains the connections over which a Store sends its requests.
type pool struct {
	client dynamodb.HTTPClient
	// closeIdle closes unused connections. After a request without an answer, other connections may
	// be dead as well. A failed gateway, or a gateway that dropped its connections, sends nothing.
	// Each dead connection would cost another attempt. With many dead connections, the leases could
	// become invalid before the attempts have found all of them.
	closeIdle func()
	// longest is the maximum duration of an attempt.
	longest time.Duration
}

// ownPool returns a pool with new connections and the settings of the client from. It does not
// modify from. If it cannot copy the settings, the pool uses from itself, and closes the idle
// connections of from if from supports that.
func ownPool(from dynamodb.HTTPClient) pool {
	p := pool{client: from, closeIdle: func() {}, longest: longestAttempt}
	switch c := from.(type) {
	case *awshttp.BuildableClient:
		t := c.GetTransport()
		if d, ok := c.GetReadTimeout(); ok && d > 0 {
			p.longest = min(p.longest, d) // answers are small, so they arrive at once or not at all
		}
		p.client, p.closeIdle = &http.Client{Transport: t, Timeout: c.GetTimeout(), CheckRedirect: stay}, t.CloseIdleConnections
	case *http.Client:
		shared := c.Transport
		if shared == nil {
			shared = http.DefaultTransport
		}
		t, ok := shared.(*http.Transport)
		if !ok {
			p.closeIdle = c.CloseIdleConnections
			break
		}
		t = t.Clone()
		own := *c
		own.Transport = t
		p.client, p.closeIdle = &own, t.CloseIdleConnections
	case interface{ CloseIdleConnections() }:
		p.closeIdle = c.CloseIdleConnections
	}
	return p
}

// stay follows no redirect, because the signature covers the host.
func stay(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
