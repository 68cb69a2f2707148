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

// endpoint is where calls about a stream go, and how they are signed.
type endpoint struct {
	url    *url.URL
	host   string // as the Host header has it
	path   string // as it is signed
	agent  []string
	signer signer
	format formatChoice
	quiet  *silence
	// lean is nil where net/http makes the calls.
	lean *http1.Host
	// strange is that an answer was not understood, so that net/http makes the calls from then on.
	strange   atomic.Bool
	templates templates
	// reason why calls cannot be made here without the SDK; "" if they can.
	reason string
}

// maxEndpoints bounds what is remembered. A program reads from fewer streams.
const maxEndpoints = 10_000

// endpointKey is what an endpoint depends on besides the client's options.
type endpointKey struct{ arn, account string }

// resolved is an endpoint and what for.
type resolved struct {
	endpointKey
	*endpoint
}

// endpointFor returns the endpoint for calls about a stream, or about a consumer of one, which the
// SDK chooses.
func (c *Caller) endpointFor(ctx context.Context, cred *aws.Credentials, arn string) (*endpoint, error) {
	if last := c.resolved.Load(); last != nil && last.arn == arn && last.account == cred.AccountID {
		return last.endpoint, nil
	}
	key := endpointKey{arn, cred.AccountID}
	if ep, ok := c.endpoints.Load(key); ok {
		return ep.(*endpoint), nil
	}
	// One at a time, because thousands of shards start at once. This is no mutex, because the
	// client's options may run the user's code.
	select {
	case c.resolving <- struct{}{}:
		defer func() { <-c.resolving }()
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	if ep, ok := c.endpoints.Load(key); ok {
		return ep.(*endpoint), nil
	}
	same := *cred // the SDK keeps it for a while, and the caller's is to stay where it is
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

// capture is an HTTP client that keeps the request and sends nothing.
type capture struct {
	request *http.Request
	body    []byte
	err     error
}

var errCaptured = errors.New("wire: the request was only looked at")

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

// resolve has the SDK make a call up to the point where it would be sent, and takes from it where
// it would go, how it is signed and what it calls itself. So all of the SDK's rules for endpoints
// hold. Signing that very request must give the signature that the SDK gave it; otherwise the
// client is one that we do not understand, and its calls stay with the SDK.
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

// usualHeaders are those of the SDK's requests that need not be repeated, or are made anew.
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
		ep.reason = "its requests are no plain POST"
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
		ep.reason = "its requests are signed in a way of their own"
	}
	return ep
}

// endpointPath is the path of a URL as it is signed: escaped as it stands in the request line, and
// once more.
func endpointPath(u *url.URL) string {
	if u.Path == "" {
		return "/"
	}
	return httpbinding.EscapePath(u.EscapedPath(), false)
}

// parseAuthorization takes an Authorization header apart: the scope (day, region, service,
// terminator) and the signed headers.
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
	if len(parts) < 5 { // an access key ID might have a slash of its own
		return nil, nil, false
	}
	return parts[len(parts)-4:], strings.Split(names, ";"), true
}

// withoutDefaultPort is a host as HTTP clients send and sign it.
func withoutDefaultPort(host, scheme string) string {
	switch scheme {
	case "http":
		host = strings.TrimSuffix(host, ":80")
	case "https":
		host = strings.TrimSuffix(host, ":443")
	}
	return host
}

// readAtMost reads a body to its end, at most n bytes of it.
func readAtMost(r io.Reader, n int64) ([]byte, error) {
	var b bytes.Buffer
	_, err := b.ReadFrom(io.LimitReader(r, n))
	return b.Bytes(), err
}
