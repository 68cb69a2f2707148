package dynamostore

import (
	"net/http"
	"time"

	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
)

// pool contains the connections over which a Store makes its requests.
type pool struct {
	client dynamodb.HTTPClient
	// closeIdle closes unused connections. After an unanswered request, the others may be dead as
	// well: a failed gateway, or one that has dropped them, sends nothing. Each would cost the
	// store one more attempt. There may be so many that trust in the leases would end before all
	// were found.
	closeIdle func()
	// longest limits an attempt.
	longest time.Duration
}

// ownPool makes a pool with the settings of a client, which is not changed. If that is impossible,
// the pool uses that client, and closes its idle connections if it supports that.
func ownPool(from dynamodb.HTTPClient) pool {
	p := pool{client: from, closeIdle: func() {}, longest: longestAttempt}
	switch c := from.(type) {
	case *awshttp.BuildableClient:
		t := c.GetTransport()
		if d, ok := c.GetReadTimeout(); ok && d > 0 {
			p.longest = min(p.longest, d) // an answer is small: if it comes, it comes at once
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
