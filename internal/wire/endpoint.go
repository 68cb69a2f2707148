package wire

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"
	"github.com/aws/aws-sdk-go-v2/service/kinesis/types"
	"github.com/aws/smithy-go/encoding/httpbinding"

	"github.com/weir-go/weir/internal/http1"
)

// endpoint describes the destination and the signing of calls about a stream.
type endpoint struct {
	url    *url.URL
	host   string // in the form of the Host header
	path   string // in the form that is signed
	agent  []string
	signer signer
	format formatChoice
	puts   formatChoice // like format, for PutRecords
	quiet  *silence
	// lean is nil if net/http makes the calls.
	lean *http1.Host
	// strange is set after an answer that could not be parsed. After that, net/http makes the
	// calls.
	strange   atomic.Bool
	templates templates
	// reason explains why calls to this endpoint need the SDK. It is empty if they do not.
	reason string
}

// maxEndpoints limits the number of cached endpoints. Programs read fewer streams than that.
const maxEndpoints = 10_000

// endpointKey contains the values that determine an endpoint, besides the client's options.
type endpointKey struct{ arn, account string }

// resolved is an endpoint with its key.
type resolved struct {
	endpointKey
	*endpoint
}

// endpointFor returns the endpoint that the SDK selects for calls about a stream or a stream's
// consumer.
func (c *Caller) endpointFor(ctx context.Context, cred *aws.Credentials, arn string) (*endpoint, error) {
	if last := c.resolved.Load(); last != nil && last.arn == arn && last.account == cred.AccountID {
		return last.endpoint, nil
	}
	key := endpointKey{arn, cred.AccountID}
	if ep, ok := c.endpoints.Load(key); ok {
		return ep.(*endpoint), nil
	}
	// Resolve one endpoint at a time, because thousands of shards start at once. resolving is a
	// channel and not a mutex, because the client's options may run user code.
	select {
	case c.resolving <- struct{}{}:
		defer func() { <-c.resolving }()
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	if ep, ok := c.endpoints.Load(key); ok {
		return ep.(*endpoint), nil
	}
	same := *cred // the SDK keeps a pointer, and the caller's value must not escape
	ep, err := c.resolve(ctx, &same, arn)
	if err != nil {
		return nil, err
	}
	if c.known++; c.known > maxEndpoints {
		c.endpoints.Clear()
		c.silences.Clear()
		c.known = 1
	}
	c.endpoints.Store(key, ep)
	c.resolved.Store(&resolved{key, ep})
	return ep, nil
}

// capture is an HTTP client that stores the request and sends nothing.
type capture struct {
	request *http.Request
	body    []byte
	err     error
}

var errCaptured = errors.New("wire: the request was captured and not sent")

func (c *capture) Do(r *http.Request) (*http.Response, error) {
	c.request = r.Clone(context.WithoutCancel(r.Context()))
	if r.Body != nil {
		c.body, c.err = io.ReadAll(r.Body)
		if err := r.Body.Close(); c.err == nil {
			c.err = err
		}
	}
	return nil, errCaptured
}

// resolve lets the SDK prepare a call up to the point where it would be sent. It takes the
// destination, the signing scope and the user agent from that request, so all endpoint rules of the
// SDK apply. It then signs the same request. If the signature differs from the SDK's, this package
// does not understand the client, and the client's calls go through the SDK.
func (c *Caller) resolve(ctx context.Context, cred *aws.Credentials, arn string) (*endpoint, error) {
	var seen capture
	look := func(o *kinesis.Options) {
		o.HTTPClient = &seen
		o.Retryer = aws.NopRetryer{}
		o.Credentials = aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) { return *cred, nil })
	}
	var err error
	if strings.Contains(arn, "/consumer/") {
		req := SubscribeRequest{ConsumerARN: arn, Shard: "endpoint", At: types.StartingPosition{Type: types.ShardIteratorTypeLatest}}
		_, err = c.client.SubscribeToShard(ctx, req.input(), look)
	} else {
		req := Request{Iterator: "endpoint", StreamARN: arn}
		_, err = c.client.GetRecords(ctx, req.input(), look)
	}
	if seen.request == nil || seen.err != nil {
		if err = errors.Join(seen.err, err); err == nil {
			err = errors.New("the SDK made no request")
		}
		return nil, fmt.Errorf("find the endpoint: %w", err)
	}
	ep := endpointOf(seen.request, seen.body, cred)
	ep.lean = c.leanHost(ep)
	ep.quiet = c.silenceOf(ep.url.Scheme + "://" + ep.url.Host)
	return ep, nil
}

// usualHeaders are headers of the SDK's requests that this package omits or sets itself.
var usualHeaders = []string{
	"Accept-Encoding", "Amz-Sdk-Invocation-Id", "Amz-Sdk-Request", "Authorization", "Content-Length", "Content-Type", "User-Agent",
	"X-Amz-Date", "X-Amz-Security-Token", "X-Amz-Target", "X-Amzn-Trace-Id",
}

func endpointOf(r *http.Request, body []byte, cred *aws.Credentials) *endpoint {
	u := *r.URL
	ep := &endpoint{url: &u, host: r.Host, path: endpointPath(&u)}
	if ep.host == "" {
		ep.host = u.Host
	}
	ep.host = withoutDefaultPort(ep.host, u.Scheme)
	agent := "lib/weir"
	if ua := r.Header.Get("User-Agent"); ua != "" {
		agent = ua + " " + agent
	}
	ep.agent = []string{agent}
	for name := range r.Header {
		if !slices.Contains(usualHeaders, name) {
			ep.reason = "its requests have the header " + name
			return ep
		}
	}
	if u.RawQuery != "" || r.Method != http.MethodPost {
		ep.reason = "its requests are not plain POST requests"
		return ep
	}
	auth := r.Header.Get("Authorization")
	scope, names, ok := parseAuthorization(auth)
	if !ok {
		ep.reason = "its requests are not signed in the usual way"
		return ep
	}
	ep.signer.region, ep.signer.service = scope[1], scope[2]
	var headers []header
	for _, name := range names {
		value := strings.Join(r.Header.Values(name), ",")
		switch name {
		case "host":
			value = ep.host
		case "content-length":
			value = fmt.Sprint(len(body))
		}
		headers = append(headers, header{name, canonical(value)})
	}
	if at := r.Header.Get("X-Amz-Date"); len(at) != len(timeForm) || ep.signer.sign(cred, at, ep.path, headers, body) != auth {
		ep.reason = "its requests have an unknown kind of signature"
	}
	return ep
}

// endpointPath returns the path of a URL in the form that is signed: escaped as in the request
// line, and then escaped again.
func endpointPath(u *url.URL) string {
	if u.Path == "" {
		return "/"
	}
	return httpbinding.EscapePath(u.EscapedPath(), false)
}

// parseAuthorization parses an Authorization header. It returns the scope (day, region, service,
// terminator) and the names of the signed headers.
func parseAuthorization(auth string) (scope, headers []string, ok bool) {
	rest, ok := strings.CutPrefix(auth, algorithm+" Credential=")
	if !ok {
		return nil, nil, false
	}
	credential, rest, ok := strings.Cut(rest, ", SignedHeaders=")
	if !ok {
		return nil, nil, false
	}
	names, _, ok := strings.Cut(rest, ", Signature=")
	if !ok {
		return nil, nil, false
	}
	parts := strings.Split(credential, "/")
	if len(parts) < 5 { // an access key ID may contain a slash
		return nil, nil, false
	}
	return parts[len(parts)-4:], strings.Split(names, ";"), true
}

// withoutDefaultPort returns a host in the form that HTTP clients send and sign.
func withoutDefaultPort(host, scheme string) string {
	switch scheme {
	case "http":
		host = strings.TrimSuffix(host, ":80")
	case "https":
		host = strings.TrimSuffix(host, ":443")
	}
	return host
}

// readAtMost reads at most n bytes of a body.
func readAtMost(r io.Reader, n int64) ([]byte, error) {
	var b bytes.Buffer
	_, err := b.ReadFrom(io.LimitReader(r, n))
	return b.Bytes(), err
}
