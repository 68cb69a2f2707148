// Package wholebody makes an HTTP client send each request body as a single buffer.
//
// The AWS SDK closes a request body as soon as it has the header of the answer. A server on the
// same machine can answer before net/http has sent a streamed body. net/http then treats the close
// as a failed write, and drops the connection in the middle of the answer. A write is then retried
// needlessly, and its records are in the stream twice.
package wholebody

import (
	"bytes"
	"fmt"
	"io"
	"net/http"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
)

// limit is the maximum size of a body in memory. It is the largest request that Kinesis accepts,
// with room for the encoding.
const limit = 32 << 20

// Client returns a client that makes its calls through inner. If inner is the SDK's client, the
// result uses separate connections with the same settings. CloseIdleConnections closes these
// connections.
func Client(inner aws.HTTPClient) aws.HTTPClient {
	if b, ok := inner.(*awshttp.BuildableClient); ok {
		inner = &http.Client{Transport: b.GetTransport(), Timeout: b.GetTimeout(), CheckRedirect: stay}
	}
	return client{inner}
}

type client struct{ inner aws.HTTPClient }

// stay makes the client follow no redirects, because a signature covers the host.
func stay(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

// CloseIdleConnections closes unused connections, if inner supports that.
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
	whole := r.WithContext(r.Context()) // a copy, because the caller's request must not change
	whole.ContentLength = int64(len(body))
	whole.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(body)), nil }
	whole.Body, _ = whole.GetBody()
	return c.inner.Do(whole)
}
