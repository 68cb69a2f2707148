package dashboard_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode"

	"github.com/weir-go/weir/dashboard"
	"github.com/weir-go/weir/lease"
	"github.com/weir-go/weir/store/memstore"
)

// waitingStore answers a View only after open is closed.
type waitingStore struct {
	*memstore.Store
	open chan struct{}
}

func (s waitingStore) View(ctx context.Context, app, known string) (lease.View, error) {
	<-s.open
	return s.Store.View(ctx, app, known)
}

// A browser gets the shell of a page before the store has answered.
func TestTheShellComesBeforeTheData(t *testing.T) {
	t.Parallel()
	for _, encoding := range []string{"identity", "gzip"} {
		store := waitingStore{memstore.New(), make(chan struct{})}
		fill(t, store, "billing", 4)
		server := httptest.NewServer(dashboard.Handler(store, dashboard.Options{}))
		t.Cleanup(server.Close)
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL+"/app?app=billing", nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Accept", "text/html,*/*")
		if encoding == "identity" { // otherwise the client asks for gzip, and decodes it
			req.Header.Set("Accept-Encoding", encoding)
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		var shell strings.Builder
		for buf := make([]byte, 1); !strings.Contains(shell.String(), "takes some seconds.</p></div>"); {
			if _, err := resp.Body.Read(buf); err != nil {
				t.Fatalf("%s: %v after %q", encoding, err, shell.String())
			}
			shell.Write(buf)
		}
		if resp.StatusCode != http.StatusOK || !strings.Contains(shell.String(), "<h1>billing</h1>") {
			t.Errorf("%s: %s %q", encoding, resp.Status, shell.String())
		}
		close(store.open)
		rest, err := io.ReadAll(resp.Body)
		if err != nil || !strings.Contains(string(rest), "shardId-000000000003") || !strings.HasSuffix(string(rest), "</html>\n") {
			t.Errorf("%s: %v, and the rest is %q", encoding, err, rest)
		}
	}
}

// The status of an answer depends on the data, so a client that is no browser gets no shell.
func TestAProbeGetsTheStatus(t *testing.T) {
	t.Parallel()
	h := dashboard.Handler(memstore.New(), dashboard.Options{})
	if w := answer(t, h, http.MethodGet, "/app?app=other", "Accept", "*/*"); w.Code != http.StatusNotFound {
		t.Errorf("%d", w.Code)
	}
	w := answer(t, h, http.MethodGet, "/app?app=another", "Accept", "text/html")
	if body := w.Body.String(); w.Code != http.StatusOK || !strings.Contains(body, "no application with this name") {
		t.Errorf("%d %s", w.Code, body)
	}
}

// A client that has the current view gets 304. A client that has another text gets the view.
func TestAnUnchangedPageAnswers304(t *testing.T) {
	for _, target := range []string{"/", "/app?app=billing&span=1h", "/app?app=billing&span=1h&part=1", "/shard?app=billing&stream=orders&shard=shardId-000000000001", "/events?app=billing", "/page.css", "/page.js"} {
		synctest.Test(t, func(t *testing.T) {
			store := memstore.New()
			fill(t, store, "billing", 400) // reads of so many leases are at least 2 s apart
			h := dashboard.Handler(store, dashboard.Options{})
			w := answer(t, h, http.MethodGet, target)
			tag := w.Header().Get("ETag")
			if w.Code != http.StatusOK || tag == "" {
				t.Errorf("%s: %d, tag %q", target, w.Code, tag)
			}
			if w := answer(t, h, http.MethodGet, target, "If-None-Match", tag); w.Code != http.StatusNotModified || w.Body.Len() > 0 {
				t.Errorf("%s again: %d and %d bytes", target, w.Code, w.Body.Len())
			}
			if w := answer(t, h, http.MethodGet, target, "If-None-Match", `W/"else"`); w.Code != http.StatusOK {
				t.Errorf("%s with another tag: %d", target, w.Code)
			}
			if w := answer(t, h, http.MethodGet, target, "If-None-Match", "*"); w.Code != http.StatusNotModified {
				t.Errorf("%s with any tag: %d", target, w.Code)
			}
		})
	}
}

// The page of an application without changes usually stays the same although its worker sends
// heartbeats.
func TestHeartbeatsDoNotChangeThePage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const target = "/app?app=billing&span=24h&part=1"
		store := memstore.New()
		fill(t, store, "billing", 4)
		lags := func(context.Context, []lease.Lease) (map[lease.Key]dashboard.Lag, error) { return nil, nil }
		h := dashboard.Handler(store, dashboard.Options{Lags: lags})
		tag, same := "", 0
		for range 30 {
			time.Sleep(2 * time.Second)
			beatOnce(t, store, "billing", false)
			w := answer(t, h, http.MethodGet, target, "If-None-Match", tag)
			if w.Code == http.StatusNotModified {
				same++
			} else {
				tag = w.Header().Get("ETag")
			}
		}
		if same < 20 {
			t.Errorf("%d of 30 answers were 304", same)
		}
	})
}

// The HTML contains no control characters, also if the name of an application has some.
func TestNamesWithControlCharacters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const app = "bill\x1b[31m\u009bing"
		store := memstore.New()
		fill(t, store, app, 4)
		h := dashboard.Handler(store, dashboard.Options{})
		for _, target := range []string{"/", "/app?" + url.Values{"app": {app}}.Encode()} {
			for _, accept := range []string{"*/*", "text/html"} {
				w := answer(t, h, http.MethodGet, target, "Accept", accept)
				text := w.Body.String()
				if i := strings.IndexFunc(text, func(r rune) bool { return unicode.IsControl(r) && r != '\n' && r != '\t' }); i >= 0 {
					t.Errorf("%s for %s: %q", target, accept, text[max(0, i-20):min(len(text), i+20)])
				}
				if target != "/" && !strings.Contains(text, "bill&#27;[31m") {
					t.Errorf("%s for %s does not name the application", target, accept)
				}
			}
		}
	})
}
