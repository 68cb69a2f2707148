package guide

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/kinesis"

	"github.com/weir-go/weir/dashboard"
	"github.com/weir-go/weir/kinesistest"
	"github.com/weir-go/weir/lease"
	"github.com/weir-go/weir/store/memstore"
)

// mountPage adds the page to the paths of mux.
func mountPage(mux *http.ServeMux, store lease.Store, client *kinesis.Client) {
	mux.Handle("/tools/weir/", dashboard.Handler(store, dashboard.Options{
		Prefix:  "/tools/weir",
		Kinesis: client,
	}))
}

// mountWritablePage adds a page on which signed-in users can make changes.
func mountWritablePage(mux *http.ServeMux, store lease.Store, client *kinesis.Client, userOf func(*http.Request) string, dir string) {
	mux.Handle("/tools/weir/", dashboard.Handler(store, dashboard.Options{
		Prefix:  "/tools/weir",
		Kinesis: client,
		Hosts:   []string{"tools.example.com"}, // names under which writes are accepted
		User:    userOf,
		Authorize: func(r *http.Request, a dashboard.Action) error {
			if a.Kind == dashboard.Reset && userOf(r) != "ann" {
				return errors.New("only Ann moves checkpoints")
			}
			return nil
		},
		SaveProgress: func(_ context.Context, app string, progress []byte) (string, error) {
			path := filepath.Join(dir, app+time.Now().UTC().Format("-20060102T150405.000000000Z")+".ndjson")
			return path, os.WriteFile(path, progress, 0o600)
		},
	}))
}

func TestThePageWritesForWhomTheProgramLets(t *testing.T) {
	store := memstore.New()
	if _, err := store.Apply(t.Context(), "billing", []lease.Action{{Kind: lease.Pause, Stream: "", On: true}}); err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	userOf := func(r *http.Request) string { return r.Header.Get("X-User") }
	mountWritablePage(mux, store, kinesistest.NewServer(t).Client(), userOf, t.TempDir())
	for form, want := range map[string]string{
		"do=reset&app=billing&to=oldest": "only Ann moves checkpoints",
		"do=resume&app=billing&seen=%3B": "no longer paused",
	} {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/tools/weir/write", strings.NewReader(form))
		r.Host = "tools.example.com"
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		r.Header.Set("Sec-Fetch-Site", "same-origin")
		r.Header.Set("X-User", "bob")
		w := httptest.NewRecorder()
		mux.ServeHTTP(w, r)
		if !strings.Contains(w.Body.String(), want) {
			t.Errorf("%s: %d %s", form, w.Code, w.Body)
		}
	}
}

func TestThePageIsThere(t *testing.T) {
	mux := http.NewServeMux()
	mountPage(mux, memstore.New(), kinesistest.NewServer(t).Client())
	w := httptest.NewRecorder()
	mux.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/tools/weir/", nil))
	if w.Code != http.StatusOK || !strings.Contains(w.Body.String(), "This store has no applications.") {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}
