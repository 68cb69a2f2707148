package kinesistest_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"
	"github.com/aws/aws-sdk-go-v2/service/kinesis/types"

	"github.com/weir-go/weir/kinesistest"
)

func TestRequestsThatAreRefused(t *testing.T) {
	s, _ := start(t, kinesistest.Config{NoLimits: true, Hosts: []string{"Kinesis.local"}})
	body := []byte(`{}`)
	host := func(h string) func(*http.Request) { return func(r *http.Request) { r.Host = h } }
	unsigned := func(r *http.Request) { r.Header.Del("Authorization") }
	const whole = "X-Amz-Algorithm=a&X-Amz-Credential=b&X-Amz-Signature=c&X-Amz-SignedHeaders=d&X-Amz-Date=e"
	presigned := func(query string) func(*http.Request) {
		return func(r *http.Request) {
			unsigned(r)
			r.URL.RawQuery = query
		}
	}
	header := func(k, v string) func(*http.Request) { return func(r *http.Request) { r.Header.Set(k, v) } }
	for _, tc := range []struct {
		name   string
		action string
		body   []byte
		change func(*http.Request)
		status int
		code   string // error code; empty for a successful answer
	}{
		{"a good one", "ListStreams", body, nil, 200, ""},
		{"without a body", "ListStreams", nil, nil, 400, "SerializationException"},
		{"without a body and of an unknown operation", "EatCake", nil, nil, 400, "UnknownOperationException"},
		{"by a loopback name", "ListStreams", body, host("localhost:1"), 200, ""},
		{"by a name below localhost", "ListStreams", body, host("000000000000.data-kinesis.localhost"), 200, ""},
		{"by another loopback address", "ListStreams", body, host("127.1.2.3"), 200, ""},
		{"by IPv6", "ListStreams", body, host("[::1]:4567"), 200, ""},
		{"by a configured name", "ListStreams", body, host("kinesis.LOCAL:80"), 200, ""},
		{"by somebody's name", "ListStreams", body, host("evil.example"), 403, "AccessDeniedException"},
		{"by somebody's name that looks like an address", "ListStreams", body, host("127.0.0.1.evil.example"), 403, "AccessDeniedException"},
		{"by an address elsewhere", "ListStreams", body, host("192.0.2.1:80"), 403, "AccessDeniedException"},
		{"of an unknown operation", "EatCake", body, nil, 400, "UnknownOperationException"},
		{"of an unknown operation, and not signed", "EatCake", body, unsigned, 400, "UnknownOperationException"},
		{"of channels", "CreateChannel", body, nil, 400, "UnknownOperationException"},
		{"without a target", "", body, func(r *http.Request) { r.Header.Del("X-Amz-Target") }, 400, "UnknownOperationException"},
		{"with another service's target", "", body, header("X-Amz-Target", "DynamoDB_20120810.ListTables"), 400, "UnknownOperationException"},
		{"without a signature", "ListStreams", body, unsigned, 400, "MissingAuthenticationTokenException"},
		{"without a signature or JSON", "ListStreams", []byte("what"), unsigned, 400, "SerializationException"},
		{"with half a signature", "ListStreams", body, header("Authorization", "AWS4-HMAC-SHA256 Credential=k"), 400, "IncompleteSignatureException"},
		{"with a password", "ListStreams", body, header("Authorization", "Basic eA=="), 400, "IncompleteSignatureException"},
		{"without a date", "ListStreams", body, func(r *http.Request) { r.Header.Del("X-Amz-Date") }, 400, "IncompleteSignatureException"},
		{"with a signature in the query", "ListStreams", body, presigned(whole), 200, ""},
		{"with half a signature in the query", "ListStreams", body, presigned("X-Amz-Algorithm=a&X-Amz-Credential=b&X-Amz-Signature=c&X-Amz-Date=d"), 400, "IncompleteSignatureException"},
		{"with a signature in the query that names no algorithm", "ListStreams", body, presigned("X-Amz-Credential=a&X-Amz-Signature=b&X-Amz-SignedHeaders=c&X-Amz-Date=d"), 400, "MissingAuthenticationTokenException"},
		{"with two signatures", "ListStreams", body, func(r *http.Request) { r.URL.RawQuery = whole }, 400, "InvalidSignatureException"},
		{"with a charset", "ListStreams", body, header("Content-Type", "application/x-amz-json-1.1; charset=utf-8"), 200, ""},
		{"with gzip", "ListStreams", body, header("Content-Encoding", "gzip"), 400, "SerializationException"},
		{"to another path", "ListStreams", body, func(r *http.Request) { r.URL.Path = "/x" }, 404, "UnknownOperationException"},
		{"with a body that is too large", "ListStreams", bytes.Repeat([]byte(" "), 21<<20), nil, 413, "RequestEntityTooLargeException"},
		{"with no JSON", "ListStreams", []byte(`what`), nil, 400, "SerializationException"},
		{"with half a JSON", "ListStreams", []byte(`{"Limit":`), nil, 400, "SerializationException"},
		{"with two JSONs", "ListStreams", []byte(`{}{}`), nil, 400, "SerializationException"},
		{"with a list", "ListStreams", []byte(`[]`), nil, 400, "SerializationException"},
		{"with text for a number", "ListStreams", []byte(`{"Limit":"3"}`), nil, 400, "SerializationException"},
		{"with a fraction, which is cut", "ListStreams", []byte(`{"Limit":1.5}`), nil, 200, ""},
		{"with deep nesting", "ListStreams", []byte(`{"x":` + strings.Repeat("[", 100_000)), nil, 400, "SerializationException"},
		{"with bad base64", "PutRecord", []byte(`{"Data":"*"}`), nil, 400, "SerializationException"},
		{"with a null and an unknown member", "ListStreams", []byte(` { "Limit" : null, "x" : [1e3, {"y":"\ud83d\udef6"}] } `), nil, 200, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var change []func(*http.Request)
			if tc.change != nil {
				change = append(change, tc.change)
			}
			status, h, answer := post(t, s, tc.action, jsonType, tc.body, change...)
			if status != tc.status {
				t.Errorf("answered %d %s, want %d", status, answer, tc.status)
			}
			if h.Get("X-Amzn-Requestid") == "" || h.Get("Content-Type") != jsonType {
				t.Errorf("the header is %v", h)
			}
			if h.Get("Access-Control-Allow-Origin") != "" {
				t.Error("pages of other origins are let in")
			}
			if tc.code == "" {
				return
			}
			var got struct {
				Type    string `json:"__type"`
				Message string // some answers use this name for the message
			}
			if err := json.Unmarshal(answer, &got); err != nil || got.Type != tc.code {
				t.Errorf("answered %s, %v", answer, err)
			}
			if h.Get("X-Amzn-Errortype") != tc.code {
				t.Errorf("X-Amzn-ErrorType is %q", h.Get("X-Amzn-Errortype"))
			}
			if capital := bytes.Contains(answer, []byte(`"Message"`)); capital && tc.code != "SerializationException" {
				t.Errorf("the message is spelled wrong: %s", answer)
			}
		})
	}
}

// These are the service's answers to requests that it cannot identify, with its formats and texts.
func TestRequestsThatAreNoCalls(t *testing.T) {
	s, _ := start(t, kinesistest.Config{NoLimits: true})
	const denied = "<AccessDeniedException>\n  <Message>Unable to determine service/operation name to be authorized</Message>\n</AccessDeniedException>\n"
	header := func(k, v string) func(*http.Request) { return func(r *http.Request) { r.Header.Set(k, v) } }
	method := func(m string) func(*http.Request) { return func(r *http.Request) { r.Method = m } }
	both := func(f ...func(*http.Request)) func(*http.Request) {
		return func(r *http.Request) {
			for _, f := range f {
				f(r)
			}
		}
	}
	noTarget := func(r *http.Request) { r.Header.Del("X-Amz-Target") }
	for name, tc := range map[string]struct {
		body              string
		change            func(*http.Request)
		status            int
		contentType, want string
	}{
		"GET":                             {"", method(http.MethodGet), 403, "", denied},
		"PUT":                             {"{}", method(http.MethodPut), 403, "", denied},
		"OPTIONS":                         {"", both(method(http.MethodOptions), header("Origin", "https://evil.example")), 403, "", denied},
		"no content type":                 {"{}", header("Content-Type", ""), 404, "", "<UnknownOperationException/>\n"},
		"JSON 1.0":                        {"{}", header("Content-Type", "application/x-amz-json-1.0"), 404, "", "<UnknownOperationException/>\n"},
		"a form":                          {"{}", header("Content-Type", "text/plain"), 404, "", "<UnknownOperationException/>\n"},
		"no content type and no target":   {"{}", both(header("Content-Type", ""), noTarget), 403, "", denied},
		"application/json":                {"{}", header("Content-Type", "application/json"), 404, "application/json", `{"Output":{"__type":"com.amazon.coral.service#UnknownOperationException"},"Version":"1.0"}`},
		"application/json that is none":   {"hello", header("Content-Type", "application/json"), 400, "application/json", `{"Output":{"__type":"com.amazon.coral.service#SerializationException"},"Version":"1.0"}`},
		"no target":                       {"{}", noTarget, 400, jsonType, `{"__type":"UnknownOperationException"}`},
		"no body":                         {"", nil, 400, jsonType, `{"__type":"SerializationException"}`},
		"no JSON":                         {"hello", nil, 400, jsonType, `{"__type":"SerializationException"}`},
		"no body, content type or target": {"", both(header("Content-Type", ""), noTarget), 400, cborType, "\xa1\x66__type\x78\x19UnknownOperationException"},
		"no CBOR":                         {"", header("Content-Type", cborType), 400, cborType, "\xa1\x66__type\x76SerializationException"},
	} {
		t.Run(name, func(t *testing.T) {
			var change []func(*http.Request)
			if tc.change != nil {
				change = append(change, tc.change)
			}
			status, h, answer := post(t, s, "ListStreams", jsonType, []byte(tc.body), change...)
			if status != tc.status || string(answer) != tc.want || h.Get("Content-Type") != tc.contentType {
				t.Errorf("answered %d %q %q", status, h.Get("Content-Type"), answer)
			}
			if id := ok[[]byte](t)(base64.StdEncoding.DecodeString(h.Get("X-Amz-Id-2"))); len(id) != 72 {
				t.Errorf("X-Amz-Id-2 is %q", id)
			}
			if !regexp.MustCompile(`^[a-f0-9]{8}(-[a-f0-9]{4}){3}-[a-f0-9]{12}$`).MatchString(h.Get("X-Amzn-Requestid")) {
				t.Errorf("X-Amzn-RequestId is %q", h.Get("X-Amzn-Requestid"))
			}
			if h.Get("Access-Control-Allow-Origin") != "" {
				t.Error("pages of other origins are let in")
			}
		})
	}
}

// The texts are those of the service.
func TestSignaturesThatAreNotWhole(t *testing.T) {
	s, _ := start(t, kinesistest.Config{NoLimits: true})
	for _, tc := range []struct{ authorization, date, query, want string }{
		{"X", "", "", "Authorization header requires 'Credential' parameter. Authorization header requires 'Signature' parameter. Authorization header requires 'SignedHeaders' parameter. " +
			"Authorization header requires existence of either a 'X-Amz-Date' or a 'Date' header. Authorization=X"},
		{"AWS4- Signature=b, Credential=a", "d", "X-Amz-Algorith", "Authorization header requires 'SignedHeaders' parameter. Authorization=AWS4- Signature=b, Credential=a"},
		{"AWS4- Signature=b Credential=a,SignedHeaders=", "d", "", "Authorization header requires 'SignedHeaders' parameter. Authorization=AWS4- Signature=b Credential=a,SignedHeaders="},
		{"", "", "X-Amz-Algorithm", "AWS query-string parameters must include 'X-Amz-Algorithm'. AWS query-string parameters must include 'X-Amz-Credential'. " +
			"AWS query-string parameters must include 'X-Amz-Signature'. AWS query-string parameters must include 'X-Amz-SignedHeaders'. AWS query-string parameters must include 'X-Amz-Date'. " +
			"Re-examine the query-string parameters."},
		{"X", "", "X-Amz-Algorithm", "Found both 'X-Amz-Algorithm' as a query-string param and 'Authorization' as HTTP header."},
		{"", "", "", "Missing Authentication Token"},
	} {
		_, _, answer := post(t, s, "ListStreams", jsonType, []byte("{}"), func(r *http.Request) {
			r.Header.Set("Authorization", tc.authorization)
			r.Header.Set("X-Amz-Date", tc.date)
			r.URL.RawQuery = tc.query
		})
		var got struct{ Message string }
		if err := json.Unmarshal(answer, &got); err != nil || got.Message != tc.want {
			t.Errorf("%q: %s, %v", tc.authorization, answer, err)
		}
	}
}

// Users of weir local read this text, and may not know kinesistest.
func TestAnOperationThatIsNotServedIsExplained(t *testing.T) {
	s, _ := start(t, kinesistest.Config{NoLimits: true})
	for action, group := range map[string]string{
		"CreateChannel": "channels", "ListChannels": "channels", "UpdateChannel": "channels",
		"EatCake": "EatCake is not a known operation",
	} {
		_, _, answer := post(t, s, action, jsonType, []byte("{}"))
		for _, word := range []string{action, group, "weir local", "UnknownOperationException"} {
			if !strings.Contains(string(answer), word) {
				t.Errorf("%s: %s lacks %s", action, answer, word)
			}
		}
	}
}

func TestTheDateIsThatOfTheBubble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, _ := start(t)
		time.Sleep(1234567 * time.Second)
		for range 2 {
			_, h, _ := post(t, s, "ListStreams", jsonType, nil)
			if got := ok[time.Time](t)(http.ParseTime(h.Get("Date"))); !got.Equal(time.Now().Truncate(time.Second)) {
				t.Errorf("Date is %v, it is %v", got, time.Now())
			}
			time.Sleep(time.Hour)
		}
	})
}

func TestProtocols(t *testing.T) {
	for _, memory := range []bool{false, true} {
		for _, secure := range []bool{false, true} {
			for _, two := range []bool{false, true} {
				t.Run(fmt.Sprintf("memory %v, TLS %v, HTTP/2 %v", memory, secure, two), func(t *testing.T) {
					s := kinesistest.NewServer(t, kinesistest.Config{InMemory: memory, TLS: secure, NoLimits: true})
					transport := s.Transport()
					transport.Protocols = new(http.Protocols)
					switch {
					case !two:
						transport.Protocols.SetHTTP1(true)
					case secure:
						transport.Protocols.SetHTTP2(true)
					default:
						transport.Protocols.SetUnencryptedHTTP2(true)
					}
					proto := ""
					s.Control("ListStreams", func(call *kinesistest.Call) kinesistest.Fault {
						proto = call.Proto
						return kinesistest.Fault{}
					})
					c := s.Client(func(o *kinesis.Options) { o.HTTPClient = &http.Client{Transport: transport} })
					ok[*kinesis.ListStreamsOutput](t)(c.ListStreams(t.Context(), &kinesis.ListStreamsInput{}))
					if (proto == "HTTP/2.0") != two {
						t.Errorf("it came over %s", proto)
					}
					exchangeMegabytes(t, s, c)
				})
			}
		}
	}
}

// exchangeMegabytes writes and reads more bytes than any buffer holds, from several goroutines.
func exchangeMegabytes(t *testing.T, s *kinesistest.Server, c *kinesis.Client) {
	t.Helper()
	s.CreateStream("s", 3)
	data := bytes.Repeat([]byte("0123456789abcdef"), 4_000)
	var wg sync.WaitGroup
	for g := range 2 {
		wg.Go(func() {
			in := &kinesis.PutRecordsInput{StreamName: aws.String("s")}
			for i := range 5 {
				in.Records = append(in.Records, types.PutRecordsRequestEntry{Data: data, PartitionKey: aws.String(fmt.Sprint(g, i))})
			}
			if out, err := c.PutRecords(t.Context(), in); err != nil || *out.FailedRecordCount > 0 {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	r := reader{t, t.Context(), c, "s"}
	n := 0
	for i := range 3 {
		for _, rec := range r.page(r.iterator(shardID(i), types.ShardIteratorTypeTrimHorizon)).Records {
			if n++; !bytes.Equal(rec.Data, data) {
				t.Errorf("%s came back otherwise", *rec.SequenceNumber)
			}
		}
	}
	if n != 10 {
		t.Errorf("read %d records", n)
	}
}

func TestCertificate(t *testing.T) {
	s := kinesistest.NewServer(t, kinesistest.Config{TLS: true, Hosts: []string{"kinesis"}})
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(s.CACertPEM()) {
		t.Fatal("the PEM holds no certificate")
	}
	for _, name := range []string{"127.0.0.1", "::1", "localhost", "kinesis"} {
		dialer := tls.Dialer{Config: &tls.Config{RootCAs: pool, ServerName: name, NextProtos: []string{"h2", "http/1.1"}}}
		conn := ok[net.Conn](t)(dialer.DialContext(t.Context(), "tcp", s.Addr()))
		if got := conn.(*tls.Conn).ConnectionState().NegotiatedProtocol; got != "h2" {
			t.Errorf("negotiated %q", got)
		}
		if err := conn.Close(); err != nil {
			t.Error(err)
		}
	}
	if _, err := http.Get(s.URL()); err == nil {
		t.Error("a client without the certificate got through")
	}
	plain, _ := start(t)
	if plain.CACert() != nil || plain.CACertPEM() != nil {
		t.Error("a server without TLS has a certificate")
	}
}

func TestAClientThatWasNotMadeByAServerInMemoryFails(t *testing.T) {
	s, _ := start(t)
	req := ok[*http.Request](t)(http.NewRequestWithContext(t.Context(), http.MethodPost, s.URL(), nil))
	transport := &http.Transport{DialContext: func(_ context.Context, _, addr string) (net.Conn, error) {
		return nil, fmt.Errorf("would dial %s", addr)
	}}
	res, err := (&http.Client{Transport: transport}).Do(req)
	if err == nil {
		_, _ = io.Copy(io.Discard, res.Body)
		_ = res.Body.Close()
	}
	if err == nil || !strings.Contains(err.Error(), ".invalid") {
		t.Errorf("got %v", err)
	}
}

func TestStartErrors(t *testing.T) {
	taken := kinesistest.NewServer(t)
	for name, cfg := range map[string]kinesistest.Config{
		"an address that is taken":    {Addr: taken.Addr()},
		"an address that is none":     {Addr: "localhost"},
		"an account that is none":     {Account: "me"},
		"a negative delay":            {StateDelay: -1},
		"a negative number of shards": {ShardLimit: -1},
		"a negative life":             {SubscriptionLife: -1},
		"a negative silence":          {IdleEvents: -1},
	} {
		if s, err := kinesistest.Start(cfg); err == nil {
			t.Errorf("%s: no error", name)
			_ = s.Close()
		} else if !strings.HasPrefix(err.Error(), "kinesistest: ") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
