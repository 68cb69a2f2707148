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

// Transport returns a new transport for the server: it trusts the server's certificate, and dials
// the network in memory if the server uses it. It speaks HTTP/1.1, and HTTP/2 if TLS negotiates it;
// set its Protocols for anything else. Close closes its idle connections.
func (s *Server) Transport() *http.Transport {
	t := &http.Transport{
		MaxIdleConnsPerHost: 1024, // a client with many shards keeps its connections
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

// HTTPClient returns a new HTTP client for the server. All of them, and those that [Server.Client]
// returns, share their connections.
func (s *Server) HTTPClient() *http.Client { return &http.Client{Transport: s.shared} }

// Client returns a new Kinesis client of the AWS SDK for the server, with its region and dummy
// credentials. Options are applied after these settings.
func (s *Server) Client(opts ...func(*kinesis.Options)) *kinesis.Client {
	return kinesis.New(kinesis.Options{
		Region:       s.cfg.Region,
		BaseEndpoint: aws.String(s.URL()),
		HTTPClient:   s.HTTPClient(),
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{AccessKeyID: "kinesistest", SecretAccessKey: "kinesistest", Source: "kinesistest"}, nil
		}),
	}, opts...)
}

// wholeBody sends each request body as one buffer.
//
// The SDK closes a body as soon as it has the head of the answer. A server in the same process
// answers before the transport has finished a streamed body. The transport then treats the close as
// a failed write and drops the connection in the middle of the answer.
//
// For an event stream over HTTP/1.1 it cancels the call before it closes the body. Otherwise, from
// Go 1.27 on, the transport keeps reading for 50 ms to reuse the connection, and waits for the read
// in progress. In a bubble time does not advance meanwhile.
type wholeBody struct{ *http.Transport }

func (t wholeBody) RoundTrip(r *http.Request) (*http.Response, error) {
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
	first  bool // cancels the call first
	cancel context.CancelFunc
}

func (b *subscriptionBody) Close() error {
	defer b.cancel()
	if b.first {
		b.cancel()
		_, _ = io.Copy(io.Discard, b.ReadCloser) // until the resulting error
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
	r2 := r.WithContext(r.Context()) // a copy, because a RoundTripper may not change its request
	r2.Body = io.NopCloser(bytes.NewReader(w.Bytes()))
	r2.ContentLength = int64(w.Len())
	r2.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(w.Bytes())), nil }
	return t.Transport.RoundTrip(r2)
}
