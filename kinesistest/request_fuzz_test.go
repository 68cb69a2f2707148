package kinesistest_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/weir-go/weir/kinesistest"
)

// FuzzRequest sends whole requests, with any method, target, headers and body that net/http
// accepts. Each request must be answered, and an invalid one with a client error. A request for a
// foreign host name must be refused with status 403.
func FuzzRequest(f *testing.F) {
	const good = "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/x-amz-json-1.1\r\nX-Amz-Target: Kinesis_20131202.ListStreams\r\n" +
		"X-Amz-Date: 20200101T000000Z\r\nAuthorization: AWS4-HMAC-SHA256 Credential=k, SignedHeaders=host, Signature=0\r\nContent-Length: 2\r\n\r\n{}"
	for _, change := range [][2]string{
		{"", ""}, {"POST / ", "GET / "}, {"POST / ", "OPTIONS * "}, {"POST / ", "CONNECT evil.example:80 "}, {"POST / ", "POST //evil.example/?X-Amz-Signature=1 "},
		{"POST / ", "POST http://evil.example/ "}, {"Host: localhost", "Host: evil.example"}, {"Host: localhost", "Host: [::1]:"}, {"Host: localhost", "Host: [fe80::1%25x]"},
		{"x-amz-json-1.1", "x-amz-cbor-1.1"}, {"application/x-amz-json-1.1", "application/x-amz-json-1.1; x=\""}, {"Kinesis_20131202.ListStreams", "Kinesis_20131202."},
		{"AWS4-HMAC-SHA256 ", "AWS4-"}, {"Content-Length: 2", "Content-Encoding: gzip\r\nContent-Length: 2"},
		{"Content-Length: 2\r\n\r\n{}", "Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n"}, {"Content-Length: 2", "Content-Length: 99"},
	} {
		f.Add(strings.Replace(good, change[0], change[1], 1))
	}
	s, _ := start(f, kinesistest.Config{InMemory: true, NoLimits: true, MaxBytes: 1 << 20, ShardLimit: 200})
	f.Fuzz(func(t *testing.T, request string) {
		r, err := http.ReadRequest(bufio.NewReader(strings.NewReader(request)))
		if err != nil {
			return
		}
		w := httptest.NewRecorder()
		aborted := false
		func() {
			defer func() {
				if p := recover(); p == http.ErrAbortHandler { //nolint:errorlint // a panic is thrown with the value itself
					aborted = true // the body was cut off
				} else if p != nil {
					panic(p)
				}
			}()
			s.ServeHTTP(w, r.WithContext(t.Context()))
		}()
		if aborted {
			return
		}
		answer := w.Body.Bytes()
		switch {
		case w.Code < 200 || w.Code >= 500:
			t.Errorf("%q was answered with %d %s", request, w.Code, answer)
		case w.Header().Get("Content-Length") != fmt.Sprint(len(answer)):
			t.Errorf("the header is %v for %d bytes", w.Header(), len(answer))
		case strings.Contains(w.Header().Get("Content-Type"), "json") && len(answer) > 0 && !json.Valid(answer):
			t.Errorf("%q was answered with %s", request, answer)
		case w.Code != 403 && strings.Contains(r.Host, "evil") && !strings.HasSuffix(strings.ToLower(r.Host), "localhost") && !strings.Contains(strings.ToLower(r.Host), ".localhost:") &&
			!strings.HasSuffix(strings.ToLower(r.Host), "localhost."):
			t.Errorf("%q was answered with %d", r.Host, w.Code)
		case len(w.Header()["Access-Control-Allow-Origin"]) > 0:
			t.Error("pages of other origins are let in")
		}
	})
}
