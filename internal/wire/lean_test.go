package wire

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptrace"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"

	"github.com/weir-go/weir/internal/wire/codec"
)

// On the path OwnCall, this package's HTTP client makes the calls. The exception is a user's HTTP
// client with a feature that this package's client does not support.
func TestWhoMakesOwnCalls(t *testing.T) {
	server := newFake(t, func(w http.ResponseWriter, _ seen) { write(w, 200, codec.CBORType, "\xa0") })
	proxied := errors.New("the proxy was asked for")
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	dial := new(net.Dialer).DialContext
	buildable := awshttp.NewBuildableClient()
	for name, c := range map[string]struct {
		client kinesis.HTTPClient
		lean   bool
	}{
		"the SDK's":                             {buildable, true},
		"the SDK's with timeouts":               {buildable.WithTimeout(time.Minute).WithReadTimeout(time.Second), true},
		"the default":                           {http.DefaultClient, true},
		"a bare transport":                      {&http.Client{Transport: new(http.Transport)}, true},
		"a transport that dials":                {&http.Client{Transport: &http.Transport{DialContext: dial, ResponseHeaderTimeout: time.Minute}}, true},
		"one that dials TLS":                    {&http.Client{Transport: &http.Transport{DialTLSContext: dial}}, false},
		"one that dials without a context":      {&http.Client{Transport: &http.Transport{Dial: net.Dial}}, false}, //nolint:staticcheck // old programs use it
		"one that keeps nothing":                {&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}, false},
		"a transport of another type":           {&http.Client{Transport: roundTripper(http.DefaultTransport.RoundTrip)}, false},
		"a proxy":                               {&http.Client{Transport: &http.Transport{Proxy: http.ProxyURL(mustParse(t, server.URL))}}, false},
		"no proxy for this":                     {&http.Client{Transport: &http.Transport{Proxy: func(*http.Request) (*url.URL, error) { return nil, nil }}}, true},
		"a proxy that fails":                    {&http.Client{Transport: &http.Transport{Proxy: func(*http.Request) (*url.URL, error) { return nil, proxied }}}, false},
		"a jar":                                 {&http.Client{Jar: jar}, false},
		"one with CheckRedirect":                {&http.Client{CheckRedirect: stay}, false},
		"a proxy, with the SDK's client":        {buildable.WithTransportOptions(func(t *http.Transport) { t.Proxy = http.ProxyURL(mustURL(server.URL)) }), false},
		"a TLS configuration, not used by HTTP": {&http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{ServerName: "x"}}}, true},
	} {
		caller := newCaller(t, fakeClient(server.URL, func(o *kinesis.Options) { o.HTTPClient = c.client }), Options{})
		var p codec.Page
		err := caller.GetRecords(t.Context(), Request{Iterator: "it"}, &p)
		if (name == "a proxy that fails") != errors.Is(err, proxied) || (err != nil && !errors.Is(err, proxied)) {
			t.Errorf("%s: %v", name, err)
		}
		lean := false
		caller.endpoints.Range(func(_, ep any) bool {
			lean = ep.(*endpoint).lean != nil
			return true
		})
		if lean != c.lean {
			t.Errorf("%s: our own client is used: %v", name, lean)
		}
		caller.Close()
	}
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func mustURL(s string) *url.URL {
	u, err := url.Parse(s)
	if err != nil {
		return new(url.URL)
	}
	return u
}

// A call whose context has an HTTP trace goes over net/http, which supports traces.
func TestTracesAreServed(t *testing.T) {
	server := newFake(t, func(w http.ResponseWriter, _ seen) { write(w, 200, codec.CBORType, "\xa0") })
	caller := newCaller(t, fakeClient(server.URL), Options{})
	var got atomic.Int32
	ctx := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { got.Add(1) }})
	var p codec.Page
	for range 2 {
		if err := caller.GetRecords(ctx, Request{Iterator: "it"}, &p); err != nil {
			t.Fatal(err)
		}
		if err := caller.GetRecords(t.Context(), Request{Iterator: "it"}, &p); err != nil {
			t.Fatal(err)
		}
	}
	if got.Load() != 2 {
		t.Errorf("%d connections were traced, want 2", got.Load())
	}
}

// net/http and this package's client send the same request with the SDK's signature. Only
// Connection and similar headers differ.
func TestBothClientsSendTheSame(t *testing.T) {
	server := newFake(t, func(w http.ResponseWriter, r seen) {
		write(w, 200, r.Header.Get("Content-Type"), map[string]string{codec.CBORType: "\xa0", codec.JSONType: "{}"}[r.Header.Get("Content-Type")])
	})
	for _, token := range []string{"", " a  token "} {
		for _, f := range []codec.Format{codec.CBOR, codec.JSON} {
			for _, path := range []string{"", "/a%20b/c;d=1"} {
				var from [2]seen
				for i, client := range []*http.Client{{Transport: new(http.Transport)}, {Transport: new(http.Transport), CheckRedirect: stay}} {
					caller := newCaller(t, fakeClient(server.URL+path, func(o *kinesis.Options) {
						o.HTTPClient, o.Credentials = client, staticCredentials(token)
					}), Options{Format: f})
					var p codec.Page
					if err := caller.GetRecords(t.Context(), Request{Iterator: "it", StreamARN: "arn:aws:kinesis:eu-west-3:123456789012:stream/s"}, &p); err != nil {
						t.Fatal(err)
					}
					all := server.take()
					if len(all) != 1 {
						t.Fatalf("%d requests", len(all))
					}
					from[i] = all[0]
					cred, _ := staticCredentials(token).Retrieve(t.Context())
					if got, want := all[0].Header.Get("Authorization"), sdkSigns(t, all[0].Request, all[0].body, "eu-west-3", cred); got != want {
						t.Errorf("client %d, token %q: %s, want %s", i, token, got, want)
					}
					caller.Close()
				}
				a, b := from[0], from[1]
				if a.Host != b.Host || a.RequestURI != b.RequestURI || string(a.body) != string(b.body) || a.ContentLength != b.ContentLength || a.Proto != b.Proto {
					t.Errorf("%s %s %q, %s %s %q", a.Host, a.RequestURI, a.body, b.Host, b.RequestURI, b.body)
				}
				for _, h := range []http.Header{a.Header, b.Header} {
					h.Del("Authorization") // compared with that of the SDK
					h.Del("X-Amz-Date")
				}
				if fmt.Sprint(a.Header) != fmt.Sprint(b.Header) {
					t.Errorf("%v\n%v", a.Header, b.Header)
				}
			}
		}
	}
}

// Credentials cannot add header fields to a request.
func TestCredentialsThatAreNoText(t *testing.T) {
	server := newFake(t, func(w http.ResponseWriter, _ seen) { write(w, 200, codec.CBORType, "\xa0") })
	for _, bad := range []aws.Credentials{
		{AccessKeyID: "a\r\nX-Evil: 1", SecretAccessKey: "s"}, {AccessKeyID: "a", SecretAccessKey: "s", SessionToken: "t\r\n\r\nGET / HTTP/1.1"},
		{AccessKeyID: "a", SecretAccessKey: "s", SessionToken: "t\x00"},
	} {
		client := fakeClient(server.URL, func(o *kinesis.Options) {
			o.Credentials = aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) { return bad, nil })
		})
		var p codec.Page
		err := newCaller(t, client, Options{}).GetRecords(t.Context(), Request{Iterator: "it"}, &p)
		if err == nil || !strings.Contains(err.Error(), "invalid header field value") {
			t.Errorf("%q: %v", bad.SessionToken, err)
		}
		if n := len(server.take()); n != 0 {
			t.Errorf("%q: %d requests arrived", bad.SessionToken, n)
		}
	}
}

// The response inside an error has the usual methods and fields.
func TestResponsesInErrors(t *testing.T) {
	server := newFake(t, func(w http.ResponseWriter, _ seen) {
		w.Header().Set("X-Amzn-Requestid", "r-7")
		w.Header().Add("X-Two", "a")
		w.Header().Add("X-Two", "b")
		write(w, 400, codec.JSONType, `{"__type":"ProvisionedThroughputExceededException","message":"slow down"}`)
	})
	caller := newCaller(t, fakeClient(server.URL), Options{})
	var p codec.Page
	err := caller.GetRecords(t.Context(), Request{Iterator: "it"}, &p)
	var response *awshttp.ResponseError
	if !errors.As(err, &response) {
		t.Fatal(err)
	}
	r := response.Response
	b, rerr := io.ReadAll(r.Body)
	if r.Status != "400 Bad Request" || r.StatusCode != 400 || r.ProtoMajor != 1 || len(r.Header["X-Two"]) != 2 || r.Header.Get("x-amzn-requestid") != "r-7" ||
		r.Request.URL.String() != server.URL+"/" || r.Request.Method != "POST" || r.ContentLength == 0 || rerr != nil || len(b) != 0 || r.Body.Close() != nil {
		t.Errorf("%+v of %+v", r, r.Request)
	}
	if response.ServiceRequestID() != "r-7" {
		t.Error(response)
	}
}

// A server repeatedly sends only the beginning of an answer and then closes the connection. Each
// time the client returns an error. It never hangs and never mixes answers.
func TestAnswersThatBreakOff(t *testing.T) {
	body := cborPage(20, 100)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan struct{})
	go func() {
		defer close(served)
		for n := 0; ; n++ {
			c, err := listener.Accept()
			if err != nil {
				return
			}
			if _, err := http.ReadRequest(bufio.NewReader(c)); err == nil {
				_, _ = fmt.Fprintf(c, "HTTP/1.1 200 OK\r\nContent-Type: %s\r\nX-Amzn-Requestid: id-%d\r\nContent-Length: %d\r\n\r\n%s", codec.CBORType, n, len(body), body[:n%len(body)])
			}
			_ = c.Close()
		}
	}()
	caller := newCaller(t, fakeClient("http://"+listener.Addr().String()), Options{})
	var p codec.Page
	for n := range 10 {
		err := caller.GetRecords(t.Context(), Request{Iterator: "it"}, &p)
		var response *awshttp.ResponseError
		if !errors.As(err, &response) || response.RequestID != fmt.Sprint("id-", n) || !strings.Contains(err.Error(), fmt.Sprintf("broke off after %d bytes", n)) {
			t.Errorf("%d: %v", n, err)
		}
	}
	caller.Close()
	_ = listener.Close()
	<-served
}
