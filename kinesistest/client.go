package kinesistest

import (
	"bytes"
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"
)

// Transport returns a new HTTP transport for the server. The transport trusts the server's
// certificate. If the server runs on a network in memory, the transport dials that network. It uses
// HTTP/1.1, or HTTP/2 if TLS negotiates HTTP/2. Set its Protocols field to use other protocols.
// [Server.Close] closes its idle connections.
func (s *Server) Transport() *http.Transport {
	t := &http.Transport{
		MaxIdleConnsPerHost: 1024, // keeps the connections of a client that reads many shards
		DisableCompression:  true,
	}
	if s.memory != nil {
		t.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) { return s.memory.Dial(ctx) }
	}
	if s.cert != nil {
		t.TLSClientConfig = &tls.Config{RootCAs: s.CACert(), MinVersion: tls.VersionTLS12}
		t.ForceAttemptHTTP2 = true
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closed {
		s.transports = append(s.transports, t)
	}
	return t
}

// HTTPClient returns a new HTTP client for the server. All clients from HTTPClient and
// [Server.Client] share one pool of connections.
func (s *Server) HTTPClient() *http.Client { return &http.Client{Transport: s.shared} }

// Client returns a new Kinesis client of the AWS SDK for the server. It uses the server's region
// and dummy credentials. opts are applied last, so they can override these settings.
func (s *Server) Client(opts ...func(*kinesis.Options)) *kinesis.Client {
	return kinesis.New(kinesis.Options{
		Region:       s.cfg.Region,
		BaseEndpoint: aws.String(s.URL()),
		HTTPClient:   s.HTTPClient(),
		Credentials:  dummyCredentials,
	}, opts...)
}

// AWSConfig returns a configuration for clients of the server, with its region and dummy
// credentials. Code under test that needs an aws.Config, such as a consumer of a queue, can use it
// in place of the one of config.LoadDefaultConfig.
func (s *Server) AWSConfig() aws.Config {
	return aws.Config{Region: s.cfg.Region, BaseEndpoint: aws.String(s.URL()), HTTPClient: s.HTTPClient(), Credentials: dummyCredentials}
}

var dummyCredentials = aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
	return aws.Credentials{AccessKeyID: "kinesistest", SecretAccessKey: "kinesistest", Source: "kinesistest"}, nil
})

// wholeBody is a transport that sends each request body as a single buffer.
//
// The SDK closes a request body as soon as it has the header of the answer. A server in the same
// process can answer before the transport has written a streamed body. The transport would then
// report a failed write and drop the connection in the middle of the answer.
//
// wholeBody also changes how the body of an event stream over HTTP/1.1 is closed: it cancels the
// call first. Without that, the transport of Go 1.27 and later keeps reading for 50 ms to reuse the
// connection. It also waits for the read in progress, and no time passes in a bubble during that
// wait.
//
// wholeBody also marks receives from queues, see [receives].
type wholeBody struct {
	*http.Transport
	receives *receives
}

func (t wholeBody) RoundTrip(r *http.Request) (*http.Response, error) {
	if isReceive(r) {
		id, end := t.receives.begin()
		r = r.Clone(r.Context())
		r.Header.Set(receiveHeader, id)
		resp, err := t.send(r)
		end(err != nil)
		return resp, err
	}
	if !strings.HasSuffix(r.Header.Get("X-Amz-Target"), ".SubscribeToShard") {
		return t.send(r)
	}
	ctx, cancel := context.WithCancel(r.Context())
	resp, err := t.send(r.WithContext(ctx))
	if err != nil {
		cancel()
		return nil, err
	}
	resp.Body = &subscriptionBody{resp.Body, resp.ProtoMajor == 1, cancel}
	return resp, nil
}

type subscriptionBody struct {
	io.ReadCloser
	first  bool // cancel before Close
	cancel context.CancelFunc
}

func (b *subscriptionBody) Close() error {
	defer b.cancel()
	if b.first {
		b.cancel()
		_, _ = io.Copy(io.Discard, b.ReadCloser) // reads until the error of the cancelled call
	}
	return b.ReadCloser.Close()
}

func (t wholeBody) send(r *http.Request) (*http.Response, error) {
	if r.Body == nil || r.Body == http.NoBody {
		return t.Transport.RoundTrip(r)
	}
	buf := make([]byte, 0, max(512, min(r.ContentLength, maxBody)))
	w := bytes.NewBuffer(buf)
	_, err := io.Copy(w, r.Body)
	if cerr := r.Body.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		return nil, err
	}
	r2 := r.WithContext(r.Context()) // a copy, because a RoundTripper must not change its request
	r2.Body = io.NopCloser(bytes.NewReader(w.Bytes()))
	r2.ContentLength = int64(w.Len())
	r2.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(w.Bytes())), nil }
	return t.Transport.RoundTrip(r2)
}
