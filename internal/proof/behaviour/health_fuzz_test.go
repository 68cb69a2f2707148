package behaviour

import (
	"bufio"
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"path"
	"regexp"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/kinesis"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/store/memstore"
)

// FuzzHealth sends any request that net/http accepts to the health checks. For each status there is
// one fixed answer, so the answer contains nothing from the request.
func FuzzHealth(f *testing.F) {
	c, err := weir.New(kinesis.New(kinesis.Options{}), memstore.New(), weir.Options{App: "app", Streams: []string{"s"}})
	if err != nil {
		f.Fatal(err)
	}
	for _, s := range []string{
		"GET /livez HTTP/1.1\r\nHost: localhost:8080\r\n\r\n", "HEAD /a/b/readyz HTTP/1.1\r\nHost: [::1]\r\n\r\n", "GET /readyz HTTP/1.0\r\n\r\n",
		"POST /livez HTTP/1.1\r\nHost: 10.0.0.1\r\nContent-Length: 3\r\n\r\nabc", "GET /<script>?livez HTTP/1.1\r\nHost: <b>\r\nX-Forwarded-Host: localhost\r\n\r\n",
		"GET http://rebound.example/livez HTTP/1.1\r\nHost: localhost\r\n\r\n", "OPTIONS * HTTP/1.1\r\nHost: 127.0.0.1.rebound.example:80\r\n\r\n",
		"CONNECT livez:80 HTTP/1.1\r\nHost: livez:80\r\n\r\n", "GET /%2e%2e/livez/%0d%0aSet-Cookie:a HTTP/1.1\r\nHost: localhost.\r\n\r\n",
	} {
		f.Add([]byte(s), true)
		f.Add([]byte(s), false)
	}
	const (
		plain = "text/plain; charset=utf-8"
		ready = `{"ok":false,"reasons":["Run was not called, or has returned"],"shards":0,"verdict":{"state":"unknown","sentence":"unknown: it has no shards yet","steps":[]}}` + "\n"
	)
	answers := map[int]struct{ contentType, body string }{
		http.StatusOK:                 {"application/json", `{"ok":true,"reasons":[],"shards":0,"verdict":{"state":"unknown","sentence":"unknown: it has no shards yet","steps":[]}}` + "\n"},
		http.StatusServiceUnavailable: {"application/json", ready},
		http.StatusForbidden:          {plain, "over a loopback address, health checks are served only to requests for localhost and IP addresses\n"},
		http.StatusNotFound:           {plain, "404 page not found\n"},
		http.StatusMethodNotAllowed:   {plain, "only GET and HEAD\n"},
	}
	f.Fuzz(func(t *testing.T, raw []byte, loopback bool) {
		req, err := http.ReadRequest(bufio.NewReader(strings.NewReader(string(raw))))
		if err != nil {
			return
		}
		local := &net.TCPAddr{IP: net.IPv4(10, 0, 0, 1), Port: 8080}
		if loopback {
			local.IP = net.IPv4(127, 0, 0, 1)
		}
		w := httptest.NewRecorder()
		c.HealthHandler().ServeHTTP(w, req.WithContext(context.WithValue(t.Context(), http.LocalAddrContextKey, net.Addr(local))))
		want, documented := answers[w.Code]
		if w.Code < 400 || w.Code == http.StatusServiceUnavailable {
			if base := path.Base(req.URL.Path); (base == "livez") != (w.Code == http.StatusOK) || base != "livez" && base != "readyz" {
				t.Errorf("%s %q: %d", req.Method, req.URL.Path, w.Code)
			}
			if req.Method == http.MethodHead {
				want.body = ""
			} else if req.Method != http.MethodGet {
				t.Errorf("%q: %d", req.Method, w.Code)
			}
		}
		if !documented || w.Body.String() != want.body || w.Header().Get("Content-Type") != want.contentType {
			t.Errorf("%q: %d %v %q", raw, w.Code, w.Header(), w.Body)
		}
		if w.Code == http.StatusForbidden && !loopback || someName.MatchString(req.Host) && loopback && (w.Code == http.StatusForbidden) == ourName.MatchString(req.Host) {
			t.Errorf("the host %q, loopback %v: %d", req.Host, loopback, w.Code)
		}
		for name, values := range w.Header() {
			switch strings.Join(values, "|") {
			case want.contentType, "no-store", "nosniff", "GET, HEAD":
			default:
				t.Errorf("%q: %s is %q", raw, name, values)
			}
		}
	})
}

// someName matches host names. ourName matches host names that no third party can own.
var (
	someName = regexp.MustCompile(`^[A-Za-z0-9_.-]+(:[0-9]*)?$`)
	ourName  = regexp.MustCompile(`^((?i:localhost\.?)|` + number + `(\.` + number + `){3})(:[0-9]*)?$`)
)

const number = `(25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d)`
