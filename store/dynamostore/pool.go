package dynamostore

import (
	"net/http"
	"time"

	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
)

// pool is the connections that a Store makes its requests over.
type pool struct {
	client dynamodb.HTTPClient
	// closeIdle closes those that nobody uses. When a request was not answered, the others may be
	// as dead as its own: a gateway that is gone or has forgotten them tells nobody. Each would
	// cost the store one more attempt, and there may be more of them than fit into the time for
	// which leases are trusted.
	closeIdle func()
	// longest bounds an attempt.
	longest time.Duration
}

// ownPool makes a pool with the settings of a client's, which stays the user's own and is not
// touched. Where that cannot be done it is that one, and its idle connections are closed if it can
// do that.
func ownPool(from dynamodb.HTTPClient) pool {
	p := pool{client: from, closeIdle: func() {}, longest: longestAttempt}
	switch c := from.(type) {
	case *awshttp.BuildableClient:
		t := c.GetTransport()
		if d, ok := c.GetReadTimeout(); ok && d > 0 {
			p.longest = min(p.longest, d) // an answer is small: it comes at once when it comes
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

// stay follows no redirect: the signature covers the host.
func stay(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
