// Package page_test tests the dashboard in a real browser.
package page_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/dashboard"
	"github.com/weir-go/weir/internal/proof/integration/servers"
	"github.com/weir-go/weir/internal/proof/integration/worker"
	"github.com/weir-go/weir/internal/proof/leaktest"
	"github.com/weir-go/weir/kinesistest"
	"github.com/weir-go/weir/lease"
	"github.com/weir-go/weir/shard"
	"github.com/weir-go/weir/store/memstore"
)

func TestMain(m *testing.M) {
	worker.Main()
	os.Exit(leaktest.Run(m))
}

const prefix = "/tools/weir"

// site is a dashboard under a prefix, and a browser that shows it.
type site struct {
	t      *testing.T
	url    string
	ctx    context.Context
	silent atomic.Bool // the page does not answer

	mu       sync.Mutex
	asked    []string // all addresses that the browser requested
	problems []string // messages in the browser's console
}

func open(t *testing.T, store lease.Store, o dashboard.Options) *site {
	t.Helper()
	o.Prefix = prefix
	return openPage(t, dashboard.Handler(store, o))
}

// openPage serves a page under the prefix and opens it in a browser.
func openPage(t *testing.T, page http.Handler) *site {
	t.Helper()
	path, env := servers.Browser(t)
	s := &site{t: t}
	mux := http.NewServeMux()
	mux.HandleFunc(prefix+"/", func(w http.ResponseWriter, r *http.Request) {
		if s.silent.Load() {
			http.Error(w, "silent", http.StatusServiceUnavailable)
			return
		}
		page.ServeHTTP(w, r)
	})
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	s.url = server.URL + prefix + "/"

	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(path), chromedp.Env(env...),
		chromedp.NoSandbox, chromedp.DisableGPU, chromedp.UserDataDir(profileDir(t)), chromedp.WindowSize(1200, 900))
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	t.Cleanup(cancel)
	ctx, end := chromedp.NewExecAllocator(ctx, options...)
	t.Cleanup(end)
	ctx, end = chromedp.NewContext(ctx)
	t.Cleanup(func() { _ = chromedp.Cancel(ctx); end() })
	chromedp.ListenTarget(ctx, func(e any) {
		s.mu.Lock()
		defer s.mu.Unlock()
		switch e := e.(type) {
		case *network.EventRequestWillBeSent:
			s.asked = append(s.asked, e.Request.URL)
		case *runtime.EventExceptionThrown:
			s.problems = append(s.problems, e.ExceptionDetails.Error())
		case *log.EventEntryAdded:
			if !s.silent.Load() {
				s.problems = append(s.problems, e.Entry.Text)
			}
		}
	})
	s.ctx = ctx
	s.do(network.Enable(), log.Enable())
	return s
}

// profileDir returns a directory for the browser's profile. Some processes of the browser outlive
// the first one for a moment and still write to the directory. So profileDir tries several times to
// remove the directory. A directory that stays is not a fault of the page, and does not fail the
// test.
func profileDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "weir-page-") //nolint:usetesting // t.TempDir fails the test if a file stays
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for range 50 {
			if err = os.RemoveAll(dir); err == nil {
				return
			}
			<-time.After(100 * time.Millisecond)
		}
		t.Log("the browser's profile stays:", err)
	})
	return dir
}

func (s *site) do(actions ...chromedp.Action) {
	s.t.Helper()
	if err := chromedp.Run(s.ctx, actions...); err != nil {
		s.t.Fatal(err)
	}
}

// goTo performs an action that leads to another page, and waits for that page.
func (s *site) goTo(action chromedp.Action) {
	s.t.Helper()
	if _, err := chromedp.RunResponse(s.ctx, action); err != nil {
		s.t.Fatal(err)
	}
}

// until waits for a condition in the page.
func (s *site) until(what string) {
	s.t.Helper()
	var so bool
	if err := chromedp.Run(s.ctx, chromedp.Poll(what, &so, chromedp.WithPollingTimeout(30*time.Second))); err != nil {
		var text string
		_ = chromedp.Run(s.ctx, chromedp.Evaluate("document.body.innerText", &text))
		s.t.Fatalf("%s: %v, on a page that says:\n%s", what, err, text)
	}
}

func (s *site) number(what string) (n int) {
	s.t.Helper()
	s.do(chromedp.Evaluate(what, &n))
	return n
}

// picture stores a screenshot among the artifacts of the test.
func (s *site) picture(name string) {
	s.t.Helper()
	var png []byte
	s.do(chromedp.FullScreenshot(&png, 100))
	if err := os.WriteFile(filepath.Join(s.t.ArtifactDir(), name+".png"), png, 0o644); err != nil {
		s.t.Fatal(err)
	}
}

// clean checks that the browser made no unexpected requests and reported no problems.
func (s *site) clean() {
	s.t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.asked) < 3 {
		s.t.Errorf("the browser asked for %q only", s.asked)
	}
	for _, url := range s.asked {
		if !strings.HasPrefix(url, s.url) && !strings.HasPrefix(url, "data:") {
			s.t.Errorf("the browser asked for %s", url)
		}
	}
	for _, p := range s.problems {
		s.t.Errorf("the browser complains: %s", p)
	}
}

func TestASplitIsWatchedLive(t *testing.T) {
	kinesis := kinesistest.NewServer(t)
	kinesis.CreateStream("orders", 3)
	store := memstore.New()
	c, err := weir.New(kinesis.Client(), store, weir.Options{Streams: []string{"orders"}, App: "billing", Worker: "worker-1", Timing: weir.Timing{HeartbeatInterval: 200 * time.Millisecond}})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	var running sync.WaitGroup
	defer running.Wait()
	defer stop()
	running.Go(func() {
		if err := c.Run(ctx, weir.HandlerFunc(func(context.Context, *weir.Batch) error { return nil })); err != nil {
			t.Error(err)
		}
	})
	s := open(t, store, dashboard.Options{Kinesis: kinesis.Client(), Lags: func(_ context.Context, leases []lease.Lease) (map[lease.Key]dashboard.Lag, error) {
		lags := map[lease.Key]dashboard.Lag{}
		for _, l := range leases {
			lags[l.Key] = dashboard.Lag{}
		}
		return lags, nil
	}})

	s.goTo(chromedp.Navigate(s.url))
	s.until(`document.body.innerText.includes("all 3 shards are up to date")`)
	s.picture("applications")
	s.goTo(chromedp.Click(`a[href="app?app=billing"]`))
	s.until(`document.querySelectorAll(".shards a").length === 3 && document.body.innerText.includes("alive")`)
	s.until(`document.getElementById("live").textContent === "Live"`)

	// The keyboard moves between rectangles, and the page describes the selected one.
	s.do(chromedp.Evaluate(`window.stays = true; document.querySelector(".shards a").focus()`, nil))
	s.do(chromedp.KeyEvent(kb.ArrowDown))
	s.until(`document.activeElement.dataset.k.startsWith("shardId-000000000001") && document.getElementById("told").textContent.includes("Shard 1, ok")`)

	// A split appears without a reload, and the focus stays.
	kinesis.Split("orders", "shardId-000000000002")
	s.until(`document.querySelectorAll(".shards a").length === 5 && document.querySelector(".shards rect.finished") !== null`)
	s.until(`window.stays === true && document.activeElement.dataset.k.startsWith("shardId-000000000001")`)
	s.picture("split")
	s.goTo(chromedp.KeyEvent(kb.Enter))
	s.until(`document.querySelector("h1").textContent.includes("shardId-000000000001") && document.body.innerText.includes("as old as the stream")`)
	s.picture("shard")

	// If the server does not answer, the page shows that its content is old. Later it recovers.
	s.silent.Store(true)
	s.until(`document.getElementById("live").classList.contains("old")`)
	// A screen reader announces each change, so the text must not change while the page is old.
	s.until(`/^Old: this is from \d\d:\d\d:\d\d UTC$/.test(window.was = document.getElementById("live").textContent)`)
	s.do(chromedp.Sleep(2 * time.Second))
	s.until(`document.getElementById("live").textContent === window.was`)
	s.picture("old")
	s.silent.Store(false)
	s.until(`document.getElementById("live").textContent === "Live"`)
	s.clean()
}

func TestNarrowDarkAndLarge(t *testing.T) {
	store := memstore.New()
	var actions []lease.Action
	const n = 1000
	for i := range uint64(n) {
		part := ^uint64(0) / n
		actions = append(actions, lease.Action{Kind: lease.Create, Lease: lease.Lease{
			Key: lease.Key{Stream: "orders", Shard: fmt.Sprintf("shardId-%012d", i)}, Epoch: 1, Position: shard.Oldest,
			Range: shard.HashRange{Start: shard.HashKey{Hi: i * part}, End: shard.HashKey{Hi: (i+1)*part - 1, Lo: ^uint64(0)}},
		}})
	}
	if _, err := store.Apply(t.Context(), "billing", actions); err != nil {
		t.Fatal(err)
	}
	s := open(t, store, dashboard.Options{})
	for _, c := range []struct {
		name   string
		width  int64
		colour string
	}{{"wide", 1200, "light"}, {"narrow", 400, "light"}, {"dark", 1200, "dark"}} {
		s.do(emulation.SetDeviceMetricsOverride(c.width, 900, 1, false),
			emulation.SetEmulatedMedia().WithFeatures([]*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: c.colour}}),
			chromedp.Navigate(s.url+"app?app=billing"))
		s.until(`document.querySelectorAll(".shards a").length > 100`)
		if got := s.number(`document.documentElement.scrollWidth`); got > int(c.width) {
			t.Errorf("%s: the page is %d wide on a screen of %d", c.name, got, c.width)
		}
		if got := s.number(`document.querySelectorAll("*").length`); got > 3000 {
			t.Errorf("%s: %d elements", c.name, got)
		}
		s.picture(c.name)
	}
	// A row of several shards can be opened.
	s.goTo(chromedp.Navigate(s.url + "app?app=billing"))
	s.goTo(chromedp.Click(`.shards a[href*="keys="]`))
	s.until(`document.body.innerText.includes("Show all of them") && document.querySelectorAll(".shards a").length > 1 && document.querySelector('.shards a[href*="keys="]') === null`)
	s.picture("opened")
	s.clean()
}
