// Package wholebody makes an HTTP client send each request body as one buffer.
//
// The AWS SDK closes a request's body as soon as the head of the answer is there. A server on the
// same machine answers before net/http is done with a streamed body; the close then passes for a
// failed write, and the connection is dropped in the middle of the answer. For a write that means a
// needless retry, and records that are in the stream twice.
package wholebody

import (
	"bytes"
	"fmt"
	"io"
	"net/http"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
)

// limit bounds what is read into memory: the largest request that Kinesis takes, with room for its
// encoding.
const limit = 32 << 20

// Client returns a client that calls through inner. If inner is the SDK's client, it uses separate
// connections with the same settings; CloseIdleConnections closes them.
func Client(inner aws.HTTPClient) aws.HTTPClient {
	if b, ok := inner.(*awshttp.BuildableClient); ok {
		inner = &http.Client{Transport: b.GetTransport(), Timeout: b.GetTimeout(), CheckRedirect: stay}
	}
	return client{inner}
}

type client struct{ inner aws.HTTPClient }

// stay follows no redirect: the signature covers the host.
func stay(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

// CloseIdleConnections closes unused connections if inner supports that.
func (c client) CloseIdleConnections() {
	if closer, ok := c.inner.(interface{ CloseIdleConnections() }); ok {
		closer.CloseIdleConnections()
	}
}

func (c client) Do(r *http.Request) (*http.Response, error) {
	if r.Body == nil || r.Body == http.NoBody {
		return c.inner.Do(r)
	}
	body, err := io.ReadAll(io.LimitReader(r.Body, limit+1))
	if closing := r.Body.Close(); err == nil {
		err = closing
	}
	if err != nil {
		return nil, err
	}
	if len(body) > limit {
		return nil, fmt.Errorf("a request of more than %d bytes", limit)
	}
	whole := r.WithContext(r.Context()) // a copy: the caller's request stays as it is
	whole.ContentLength = int64(len(body))
	whole.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(body)), nil }
	whole.Body, _ = whole.GetBody()
	return c.inner.Do(whole)
}
