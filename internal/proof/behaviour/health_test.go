package behaviour

import (
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/kinesis"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/kinesistest"
	"github.com/weir-go/weir/lease"
	"github.com/weir-go/weir/store/memstore"
)

// stuckStore is a store whose calls ignore their contexts while it is stuck.
type stuckStore struct {
	lease.Store
	hang atomic.Pointer[chan struct{}]
}

func (s *stuckStore) Heartbeat(ctx context.Context, app string, r lease.Report) (lease.Orders, error) {
	if hang := s.hang.Load(); hang != nil {
		<-*hang
	}
	return s.Store.Heartbeat(ctx, app, r)
}

func TestHealth(t *testing.T) {
	bubble(t, 2, func(t *testing.T, srv *kinesistest.Server) {
		store := &faultyStore{Store: memstore.New()}
		stuck := &stuckStore{Store: store}
		c, err := weir.New(srv.Client(), stuck, weir.Options{App: "app", Streams: []string{"s"}, Logger: quiet, Timing: weir.Timing{StopTimeout: 20 * time.Second}})
		if err != nil {
			t.Fatal(err)
		}
		health := c.HealthHandler()
		check := func(when, live, ready string) {
			t.Helper()
			for path, want := range map[string]string{"/livez": live, "/weir/readyz": ready} {
				w := httptest.NewRecorder()
				health.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
				var got struct {
					OK      *bool
					Reasons []string
					Shards  *int
				}
				if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil || got.OK == nil || got.Reasons == nil || got.Shards == nil {
					t.Errorf("%s: %s answered %q", when, path, w.Body)
					continue
				}
				if *got.OK != (want == "") || (w.Code == http.StatusOK) != *got.OK || !strings.Contains(strings.Join(got.Reasons, "; "), want) {
					t.Errorf("%s: %s answered %d %s, want %q", when, path, w.Code, w.Body, want)
				}
			}
		}
		check("before", "", "Run was not called")

		store.set(true, 0)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() {
			done <- c.Run(ctx, weir.HandlerFunc(func(context.Context, *weir.Batch) error {
				time.Sleep(5 * time.Second)
				return nil
			}))
		}()
		time.Sleep(time.Minute)
		check("without a store from the start", "", "not joined")
		store.set(false, 0)
		time.Sleep(5 * time.Second)
		check("all is well", "", "")
		store.set(true, 0)
		time.Sleep(3 * time.Second)
		check("the store is silent for a moment", "", "")
		time.Sleep(time.Hour)
		check("the store is silent", "", "has not answered for 1h0m")
		store.set(false, 0)
		time.Sleep(5 * time.Second)
		check("it is back", "", "")

		hang := make(chan struct{})
		stuck.hang.Store(&hang)
		time.Sleep(20 * time.Second)
		check("the store's driver hangs", "no heartbeat for", "has not answered")
		stuck.hang.Store(nil)
		close(hang)
		time.Sleep(5 * time.Second)
		check("it hangs no more", "", "")

		srv.Put("s", "k", []byte("x"))
		time.Sleep(3 * time.Second)
		cancel()
		time.Sleep(10 * time.Millisecond)
		check("while it stops", "", "it stops")
		if err := <-done; err != nil {
			t.Error(err)
		}
		check("afterwards", "Run has returned", "has returned")
	})
}

func TestHealthIsForReading(t *testing.T) {
	c, err := weir.New(kinesis.New(kinesis.Options{}), memstore.New(), weir.Options{App: "app", Streams: []string{"s"}})
	if err != nil {
		t.Fatal(err)
	}
	for _, q := range []struct {
		method, path string
		want         int
		body         bool
	}{
		{http.MethodGet, "/livez", 200, true},
		{http.MethodHead, "/livez", 200, false},
		{http.MethodHead, "/readyz", 503, false},
		{http.MethodPost, "/livez", 405, true},
		{http.MethodDelete, "/readyz", 405, true},
		{http.MethodGet, "/", 404, true},
		{http.MethodGet, "/livez/../secrets", 404, true},
	} {
		w := httptest.NewRecorder()
		c.HealthHandler().ServeHTTP(w, httptest.NewRequest(q.method, q.path, nil))
		if w.Code != q.want || (w.Body.Len() > 0) != q.body || (q.want == 405) != (w.Header().Get("Allow") != "") {
			t.Errorf("%s %s: %d %q", q.method, q.path, w.Code, w.Body)
		}
	}
}

// On a loopback address, the health check accepts only host names that no third party can own.
func TestHealthOverLoopbackAnswersToNoNames(t *testing.T) {
	c, err := weir.New(kinesis.New(kinesis.Options{}), memstore.New(), weir.Options{App: "app", Streams: []string{"s"}})
	if err != nil {
		t.Fatal(err)
	}
	tcp := func(ip string) net.Addr { return &net.TCPAddr{IP: net.ParseIP(ip), Port: 8080} }
	allowed := []string{"localhost", "LocalHost:8080", "localhost.", "127.0.0.1", "127.1.2.3:80", "[::1]", "[::1]:8080", "10.1.2.3:8080", "[fd00::1]", ""}
	refused := []string{"rebound.example", "rebound.example:8080", "127.0.0.1.rebound.example", "localhost.rebound.example", "a.localhost", "pod",
		"0x7f000001", "2130706433", "127.0.0.1:80:80", "::1:x", "\xff", " "}
	for _, q := range []struct {
		local    net.Addr
		loopback bool
	}{
		{tcp("127.0.0.1"), true},
		{tcp("127.9.9.9"), true},
		{tcp("::1"), true},
		{tcp("10.1.2.3"), false},
		{tcp("fe80::1"), false},
		{&net.UnixAddr{Name: "/run/health", Net: "unix"}, false},
		{nil, false}, // a handler that the user calls without a server
	} {
		for _, hosts := range [][]string{allowed, refused} {
			for _, host := range hosts {
				want := http.StatusOK
				if q.loopback && &hosts[0] == &refused[0] {
					want = http.StatusForbidden
				}
				req := httptest.NewRequest(http.MethodGet, "/livez", nil)
				req.Host = host
				if q.local != nil {
					req = req.WithContext(context.WithValue(req.Context(), http.LocalAddrContextKey, q.local))
				}
				w := httptest.NewRecorder()
				c.HealthHandler().ServeHTTP(w, req)
				if w.Code != want {
					t.Errorf("%q at %v: %d %s, want %d", host, q.local, w.Code, w.Body, want)
				}
			}
		}
	}
}

// net/http passes the local address of the connection to the handler.
func TestHealthBehindAServerRefusesNames(t *testing.T) {
	c, err := weir.New(kinesis.New(kinesis.Options{}), memstore.New(), weir.Options{App: "app", Streams: []string{"s"}})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(c.HealthHandler())
	defer server.Close()
	for host, want := range map[string]int{"": http.StatusOK, "localhost": http.StatusOK, "rebound.example": http.StatusForbidden} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL+"/livez", nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Host = host // "" means the host of the URL
		resp, err := server.Client().Do(req)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err != nil || resp.StatusCode != want || strings.Contains(string(body), "rebound") {
			t.Errorf("%q: %d %s, %v", host, resp.StatusCode, body, err)
		}
	}
}
