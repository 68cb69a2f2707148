package wire

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"
)

func staticCredentials(token string) aws.CredentialsProvider {
	return aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
		return aws.Credentials{AccessKeyID: "AKIDEXAMPLE", SecretAccessKey: "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY", SessionToken: token}, nil
	})
}

// fakeClient returns a plain client of a server at url.
func fakeClient(url string, opts ...func(*kinesis.Options)) *kinesis.Client {
	return kinesis.New(kinesis.Options{
		Region: "eu-west-3", BaseEndpoint: aws.String(url), Credentials: staticCredentials(""), HTTPClient: &http.Client{Transport: &http.Transport{}},
	}, opts...)
}

// seen is a request that the server received.
type seen struct {
	*http.Request
	body []byte
}

// fake is a server whose answers come from the function answer.
type fake struct {
	*httptest.Server
	mu       sync.Mutex
	requests []seen
}

func newFake(tb testing.TB, answer func(w http.ResponseWriter, r seen)) *fake {
	tb.Helper()
	f := new(fake)
	f.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			tb.Error(err)
		}
		s := seen{r, body}
		f.mu.Lock()
		f.requests = append(f.requests, s)
		f.mu.Unlock()
		answer(w, s)
	}))
	tb.Cleanup(f.Close)
	return f
}

func (f *fake) take() []seen {
	f.mu.Lock()
	defer f.mu.Unlock()
	all := f.requests
	f.requests = nil
	return all
}

func write(w http.ResponseWriter, status int, contentType, body string) {
	w.Header()["Content-Type"] = []string{contentType}
	if contentType == "" {
		w.Header()["Content-Type"] = nil
	}
	w.WriteHeader(status)
	_, _ = io.WriteString(w, body)
}

// pipes is a network of net.Pipe connections, which work with virtual time.
type pipes struct {
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

func newPipes() *pipes { return &pipes{conns: make(chan net.Conn), closed: make(chan struct{})} }

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error {
	p.once.Do(func() { close(p.closed) })
	return nil
}

func (p *pipes) Addr() net.Addr { return &net.UnixAddr{Name: "pipes"} }

func (p *pipes) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	client, server := net.Pipe()
	select {
	case p.conns <- server:
		return client, nil
	case <-p.closed:
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}
