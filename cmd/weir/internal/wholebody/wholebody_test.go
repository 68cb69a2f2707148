package wholebody

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
)

type inner func(*http.Request) (*http.Response, error)

func (f inner) Do(r *http.Request) (*http.Response, error) { return f(r) }

// body counts how often it is closed.
type body struct {
	io.Reader
	closed int
}

func (b *body) Close() error { b.closed++; return nil }

func TestTheBodyIsWhole(t *testing.T) {
	sent := &body{Reader: io.MultiReader(strings.NewReader("two "), strings.NewReader("parts"))}
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://127.0.0.1/", sent)
	if err != nil {
		t.Fatal(err)
	}
	_, err = Client(inner(func(r *http.Request) (*http.Response, error) {
		if sent.closed != 1 {
			t.Errorf("the body was closed %d times before the request was sent", sent.closed)
		}
		again, err := r.GetBody()
		if err != nil {
			t.Fatal(err)
		}
		for _, b := range []io.Reader{r.Body, again} {
			if text, err := io.ReadAll(b); string(text) != "two parts" || err != nil {
				t.Errorf("sent %q, %v", text, err)
			}
		}
		if r.ContentLength != 9 {
			t.Errorf("length %d", r.ContentLength)
		}
		return &http.Response{StatusCode: 200}, nil
	})).Do(request)
	if err != nil || request.Body != sent {
		t.Errorf("error %v, or the caller's request was changed", err)
	}
}

func TestNoBodyAndBrokenBody(t *testing.T) {
	called := 0
	c := Client(inner(func(r *http.Request) (*http.Response, error) {
		called++
		return &http.Response{StatusCode: 200}, nil
	}))
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://127.0.0.1/", nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Do(request); err != nil || called != 1 {
		t.Errorf("no body: %v, %d calls", err, called)
	}
	broken := errors.New("broken")
	request.Body = &body{Reader: io.MultiReader(strings.NewReader("x"), failing{broken})}
	if _, err := c.Do(request); !errors.Is(err, broken) || called != 1 {
		t.Errorf("a broken body: %v, %d calls", err, called)
	}
}

type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }

func TestIdleConnectionsAreClosed(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer server.Close()
	dials := 0
	c := Client(awshttp.NewBuildableClient().WithTransportOptions(func(tr *http.Transport) {
		tr.DialContext = func(ctx context.Context, network, addr string) (net.Conn, error) {
			dials++
			return new(net.Dialer).DialContext(ctx, network, addr)
		}
	}))
	closer := c.(interface{ CloseIdleConnections() })
	for _, want := range []int{1, 1, 2} {
		if want == 2 {
			closer.CloseIdleConnections()
		}
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL, nil)
		if err != nil {
			t.Fatal(err)
		}
		answer, err := c.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, answer.Body)
		answer.Body.Close()
		if dials != want {
			t.Errorf("%d connections were made, not %d", dials, want)
		}
	}
	closer.CloseIdleConnections()
	Client(inner(nil)).(interface{ CloseIdleConnections() }).CloseIdleConnections() // inner does not support it
}
