package wire

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"
	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/weir-go/weir/internal/proof/answers"
	"github.com/weir-go/weir/internal/wire/codec"
)

func cborPage(n, size int) string { return string(answers.CBOR{}.Encode(answers.Sample(n, size))) }

// Requests in CBOR and JSON have the expected headers and members, and the SDK's signature.
func TestRequestsAsTheyArrive(t *testing.T) {
	const arn = "arn:aws:kinesis:eu-west-3:123456789012:stream/s"
	server := newFake(t, func(w http.ResponseWriter, r seen) {
		w.Header().Set("X-Amz-Requestid", "id-1")
		if r.Header.Get("Content-Type") == codec.JSONType {
			write(w, 200, codec.JSONType, "{}")
			return
		}
		write(w, 200, codec.CBORType, "\xa0")
	})
	for _, token := range []string{"", "a session token"} {
		for _, f := range []codec.Format{codec.CBOR, codec.JSON} {
			client := fakeClient(server.URL+"/some/path", func(o *kinesis.Options) { o.Credentials = staticCredentials(token) })
			var p codec.Page
			caller := newCaller(t, client, Options{Format: f})
			if err := caller.GetRecords(t.Context(), Request{Iterator: "it\"é", Limit: 77, StreamARN: arn}, &p); err != nil || p.RequestID != "id-1" {
				t.Fatal(err, p.RequestID)
			}
			all := server.take()
			if len(all) != 1 {
				t.Fatalf("%d requests", len(all))
			}
			r := all[0]
			if r.Method != "POST" || r.URL.Path != "/some/path" || r.Header.Get("X-Amz-Target") != "Kinesis_20131202.GetRecords" ||
				r.Header.Get("Accept-Encoding") != "identity" || !slices.Equal(r.TransferEncoding, nil) || r.ContentLength != int64(len(r.body)) ||
				!strings.Contains(r.UserAgent(), "lib/weir") || r.Header.Get("Idempotency-Key") != "" {
				t.Errorf("%s %s %v", r.Method, r.URL, r.Header)
			}
			cred, _ := client.Options().Credentials.Retrieve(t.Context())
			if got, want := r.Header.Get("Authorization"), sdkSigns(t, r.Request, r.body, "eu-west-3", cred); got != want {
				t.Errorf("%s, want %s", got, want)
			}
			if f == codec.JSON {
				if want := `{"ShardIterator":"it\"é","Limit":77,"StreamARN":"` + arn + `"}`; string(r.body) != want {
					t.Errorf("asked for %s", r.body)
				}
				continue
			}
			if got, err := answers.Tree(r.body); got != `[{ShardIterator it"é} {Limit {77 false}} {StreamARN `+arn+`}]` {
				t.Errorf("asked for %s, %v", got, err)
			}
		}
	}
}

// A Caller reads only over HTTP/1.1. The user's transports are not modified.
func TestHTTP1IsChosenByALPN(t *testing.T) {
	var protos sync.Map
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		protos.Store(r.Proto+" "+r.TLS.NegotiatedProtocol, true)
		write(w, 200, r.Header.Get("Content-Type"), map[string]string{codec.CBORType: "\xa0", codec.JSONType: "{}"}[r.Header.Get("Content-Type")])
	}))
	server.EnableHTTP2 = true
	server.TLS = &tls.Config{NextProtos: []string{"h2", "http/1.1"}}
	server.StartTLS()
	defer server.Close()
	roots := x509.NewCertPool()
	roots.AddCert(server.Certificate())
	config := &tls.Config{RootCAs: roots}
	used := &http.Transport{TLSClientConfig: config.Clone(), ForceAttemptHTTP2: true}
	defer used.CloseIdleConnections()
	// This call makes the transport set up HTTP/2.
	resp, err := (&http.Client{Transport: used}).Post(server.URL, "", nil)
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	if resp.ProtoMajor != 2 {
		t.Fatal("the server does not speak HTTP/2")
	}
	buildable := awshttp.NewBuildableClient().WithTransportOptions(func(t *http.Transport) { t.TLSClientConfig = config.Clone() })
	for name, client := range map[string]kinesis.HTTPClient{
		"the SDK's":                     buildable,
		"the SDK's with a read timeout": buildable.WithReadTimeout(time.Minute),
		"a used one":                    &http.Client{Transport: used},
		"one with a jar":                &http.Client{Transport: used, Timeout: time.Minute},
	} {
		protos.Clear()
		for _, path := range []Path{OwnCall, UnderSDK, PlainSDK} {
			c := newCaller(t, fakeClient(server.URL, func(o *kinesis.Options) { o.HTTPClient = client }), Options{Path: path})
			var p codec.Page
			for range 2 {
				if err := c.GetRecords(t.Context(), Request{Iterator: "it"}, &p); err != nil {
					t.Fatalf("%s, %s: %v", name, path, err)
				}
			}
			c.Close()
		}
		protos.Range(func(proto, _ any) bool {
			if proto != "HTTP/1.1 http/1.1" {
				t.Errorf("%s speaks %s", name, proto)
			}
			return true
		})
	}
	// The user's client still uses HTTP/2.
	if resp, err = (&http.Client{Transport: used}).Post(server.URL, "", nil); err != nil || resp.ProtoMajor != 2 {
		t.Error(err, resp)
	} else {
		_ = resp.Body.Close()
	}
}

func TestTransportsThatAreLeftAlone(t *testing.T) {
	var h2 http.Protocols
	h2.SetUnencryptedHTTP2(true)
	for name, transport := range map[string]http.RoundTripper{
		"of another type": http.NewFileTransport(http.Dir(".")),
		"that dials TLS":  &http.Transport{DialTLSContext: func(context.Context, string, string) (net.Conn, error) { return nil, nil }},
		"that speaks h2c": &http.Transport{Protocols: &h2},
		//nolint:staticcheck // old programs use it
		"that dials TLS in the old way": &http.Transport{DialTLS: func(string, string) (net.Conn, error) { return nil, nil }},
	} {
		from := &http.Client{Transport: transport}
		if got, _ := ownClient(from, 3); got != from {
			t.Errorf("a transport %s is changed", name)
		}
	}
	got, _ := ownClient(&http.Client{Transport: &http.Transport{MaxConnsPerHost: 2, MaxIdleConns: 1}, Timeout: time.Hour}, 8)
	own := got.(*http.Client).Transport.(*http.Transport)
	if own.MaxConnsPerHost != 2 || own.MaxIdleConnsPerHost != 2 || own.MaxIdleConns != 2 || got.(*http.Client).Timeout != time.Hour ||
		own.IdleConnTimeout != surplus || surplus >= defaultTimeout {
		t.Errorf("%+v", own)
	}
	got, _ = ownClient(&http.Client{Transport: &http.Transport{IdleConnTimeout: time.Second}}, 8)
	if own = got.(*http.Client).Transport.(*http.Transport); own.IdleConnTimeout != time.Second {
		t.Errorf("connections are kept for %v, not the second that they were to be", own.IdleConnTimeout)
	}
	if got, _ = ownClient(&http.Client{}, 8); got.(*http.Client).Transport == nil || got.(*http.Client).Transport == http.DefaultTransport {
		t.Error("the default transport is not copied")
	}
}

func TestAnswersAreBounded(t *testing.T) {
	body := cborPage(100, 1000)
	chunked := false
	server := newFake(t, func(w http.ResponseWriter, r seen) {
		w.Header().Set("Content-Type", codec.CBORType)
		if chunked {
			w.(http.Flusher).Flush()
		} else {
			w.Header().Set("Content-Length", fmt.Sprint(len(body)))
		}
		_, _ = io.WriteString(w, body)
	})
	for _, reuse := range []bool{true, false} {
		for _, path := range []Path{OwnCall, UnderSDK} {
			for _, chunked = range []bool{true, false} {
				for _, limit := range []int{len(body) - 1, len(body), len(body) + 1, codec.MostBody} {
					var p codec.Page
					err := newCaller(t, fakeClient(server.URL), Options{Path: path, Reuse: reuse, MaxBody: limit}).GetRecords(t.Context(), Request{Iterator: "it"}, &p)
					if limit < len(body) != errors.Is(err, codec.ErrTooLarge) || (err == nil && len(p.Records) != 100) {
						t.Errorf("%s, at most %d, chunked %v: %v", path, limit, chunked, err)
					}
					p.Release()
				}
			}
		}
	}
	if n := len(server.take()); n != 2*2*2*4 {
		t.Errorf("%d requests: an answer that is too large is no matter of the format", n)
	}
}

// If a server sends nothing or only part of an answer and then stalls, the call ends after its
// timeout on every path.
func TestAStalledAnswerIsGivenUp(t *testing.T) {
	body := cborPage(1000, 100)
	for _, path := range []Path{OwnCall, UnderSDK, PlainSDK} {
		for _, send := range []int{-1, 0, len(body) / 2} {
			synctest.Test(t, func(t *testing.T) {
				network := newPipes()
				transport := &http.Transport{DialContext: network.dial}
				served := make(chan struct{})
				server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					_, _ = io.Copy(io.Discard, r.Body)
					if send >= 0 {
						w.Header().Set("Content-Length", fmt.Sprint(len(body)))
						_, _ = io.WriteString(w, body[:send])
						w.(http.Flusher).Flush()
					}
					<-r.Context().Done()
				})}
				go func() {
					defer close(served)
					if err := server.Serve(network); !errors.Is(err, http.ErrServerClosed) {
						t.Error(err)
					}
				}()
				client := fakeClient("http://pipes", func(o *kinesis.Options) { o.HTTPClient = &http.Client{Transport: transport} })
				c := newCaller(t, client, Options{Path: path, Timeout: 7 * time.Second})
				began := time.Now()
				var p codec.Page
				err := c.GetRecords(t.Context(), Request{Iterator: "it"}, &p)
				if took := time.Since(began); took != 7*time.Second || !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("%s, %d bytes: %v after %v", path, send, err, took)
				}
				if path == OwnCall && !strings.Contains(err.Error(), "no whole answer within 7s") {
					t.Error(err)
				}
				lost := errors.New("the lease is lost")
				ctx, cancel := context.WithCancelCause(t.Context())
				time.AfterFunc(time.Second, func() { cancel(lost) })
				if err := c.GetRecords(ctx, Request{Iterator: "it"}, &p); err == nil || (path == OwnCall && !errors.Is(err, lost)) {
					t.Errorf("%s: %v", path, err)
				}
				var cancelled *aws.RequestCanceledError
				if path == OwnCall && !errors.As(err, &cancelled) {
					t.Errorf("%T", err)
				}
				c.Close()
				transport.CloseIdleConnections()
				if err := server.Close(); err != nil {
					t.Error(err)
				}
				<-served
			})
		}
	}
}

func TestNobodyListens(t *testing.T) {
	var p codec.Page
	server := newFake(t, nil)
	server.Close()
	err := newCaller(t, fakeClient(server.URL), Options{}).GetRecords(t.Context(), Request{Iterator: "it"}, &p)
	var send *smithyhttp.RequestSendError
	if !errors.As(err, &send) {
		t.Errorf("%T: %v", err, err)
	}
}

// If the service's Date header shows that the local clock is wrong, the next request is signed with
// the service's time.
func TestAClockThatIsOffIsCorrected(t *testing.T) {
	const off = -3 * time.Hour
	for _, disabled := range []bool{false, true} {
		var times []string
		server := newFake(t, func(w http.ResponseWriter, r seen) {
			times = append(times, r.Header.Get("X-Amz-Date"))
			w.Header().Set("Date", time.Now().Add(off).UTC().Format(http.TimeFormat))
			if at, _ := time.Parse(timeForm, r.Header.Get("X-Amz-Date")); time.Since(at)-(-off) > 5*time.Minute || time.Since(at)-(-off) < -5*time.Minute {
				write(w, 400, codec.JSONType, `{"__type":"InvalidSignatureException","message":"Signature not yet current"}`)
				return
			}
			write(w, 200, codec.CBORType, "\xa0")
		})
		c := newCaller(t, fakeClient(server.URL, func(o *kinesis.Options) { o.DisableClockSkewCorrection = disabled }), Options{})
		var p codec.Page
		first := c.GetRecords(t.Context(), Request{Iterator: "it"}, &p)
		second := c.GetRecords(t.Context(), Request{Iterator: "it"}, &p)
		if first == nil || (second == nil) == disabled {
			t.Errorf("disabled %v: first %v, then %v, at %v", disabled, first, second, times)
		}
	}
}

// If the server closed an idle connection, the request is repeated on another connection without an
// error.
func TestIdleConnectionsMayBeClosed(t *testing.T) {
	server := newFake(t, func(w http.ResponseWriter, r seen) { write(w, 200, codec.CBORType, "\xa0") })
	for _, path := range []Path{OwnCall, UnderSDK} {
		c := newCaller(t, fakeClient(server.URL), Options{Path: path})
		var p codec.Page
		for range 20 {
			if err := c.GetRecords(t.Context(), Request{Iterator: "it"}, &p); err != nil {
				t.Fatal(path, err)
			}
			server.CloseClientConnections()
		}
		if n := len(server.take()); n != 20 {
			t.Errorf("%s: %d requests", path, n)
		}
	}
}

func TestErrorsThatAreNoErrorsOfTheService(t *testing.T) {
	for name, c := range map[string]struct {
		status            int
		contentType, body string
		code              string
		undecodable       bool
	}{
		"a gateway":         {502, "text/html", "<html>Bad Gateway", "", true},
		"an empty 500":      {500, "", "", "UnknownError", false},
		"no content":        {204, "", "", "UnknownError", false},
		"a redirect":        {307, "", "", "UnknownError", false},
		"broken CBOR":       {400, codec.CBORType, "\xa1\x66__type\x7b", "", true},
		"CBOR of nothing":   {503, codec.CBORType, "\xa0", "UnknownError", false},
		"code in CBOR":      {400, codec.CBORType, "\xa2\x64code\x61X\x67Message\x61y", "X", false},
		"a prefix":          {400, codec.JSONType, `{"__type":"com.amazonaws.kinesis.v20131202#ExpiredIteratorException"}`, "ExpiredIteratorException", false},
		"a prefix in CBOR":  {400, codec.CBORType, "\xa1\x66__type\x64a#Bc", "Bc", false},
		"much of it":        {400, codec.JSONType, `{"__type":"X","message":"` + strings.Repeat("x", maxErrorBody) + `"}`, "", true},
		"no JSON, JSON typ": {400, codec.JSONType, "no", "", true},
	} {
		t.Run(name, func(t *testing.T) {
			server := newFake(t, func(w http.ResponseWriter, _ seen) {
				w.Header().Set("X-Amzn-Requestid", "r-7")
				write(w, c.status, c.contentType, c.body)
			})
			for _, path := range []Path{OwnCall, UnderSDK} {
				var p codec.Page
				err := newCaller(t, fakeClient(server.URL), Options{Path: path, Format: codec.CBOR}).GetRecords(t.Context(), Request{Iterator: "it"}, &p)
				var (
					api      smithy.APIError
					decode   *smithy.DeserializationError
					response *awshttp.ResponseError
				)
				if !errors.As(err, &response) || response.HTTPStatusCode() != c.status || response.RequestID != "r-7" {
					t.Fatalf("%s: %v", path, err)
				}
				if errors.As(err, &decode) != c.undecodable || errors.As(err, &api) == c.undecodable || (api != nil && api.ErrorCode() != c.code) {
					t.Errorf("%s: %v", path, err)
				}
			}
		})
	}
}

func TestCredentialsThatFail(t *testing.T) {
	broken := errors.New("no role")
	client := fakeClient("http://localhost:1", func(o *kinesis.Options) {
		o.Credentials = aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) { return aws.Credentials{}, broken })
	})
	var p codec.Page
	if err := newCaller(t, client, Options{}).GetRecords(t.Context(), Request{Iterator: "it"}, &p); !errors.Is(err, broken) {
		t.Error(err)
	}
}
