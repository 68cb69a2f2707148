package dashboard_test

import (
	"compress/gzip"
	"context"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weir-go/weir/dashboard"
	"github.com/weir-go/weir/kinesistest"
	"github.com/weir-go/weir/lease"
	"github.com/weir-go/weir/shard"
	"github.com/weir-go/weir/store/memstore"
)

// fill creates an application with one worker, which holds the given number of equally large
// shards.
func fill(t *testing.T, store lease.Store, app string, shards int) {
	t.Helper()
	ctx := t.Context()
	var actions []lease.Action
	for i := range shards {
		part := ^uint64(0) / uint64(shards)
		r := shard.HashRange{Start: shard.HashKey{Hi: uint64(i) * part}, End: shard.HashKey{Hi: uint64(i+1)*part - 1, Lo: ^uint64(0)}}
		if i == shards-1 {
			r.End = shard.MaxHashKey
		}
		actions = append(actions, lease.Action{Kind: lease.Create, Lease: lease.Lease{
			Key: lease.Key{Stream: "orders", Shard: fmt.Sprintf("shardId-%012d", i)}, Range: r, Epoch: 1, Position: shard.Oldest,
		}})
	}
	if _, err := store.Apply(ctx, app, actions); err != nil {
		t.Fatal(err)
	}
	beatOnce(t, store, app, true)
	for i := range actions {
		actions[i] = lease.Action{Kind: lease.Assign, Key: actions[i].Lease.Key, Epoch: 1, Session: "s1"}
	}
	if _, err := store.Apply(ctx, app, actions); err != nil {
		t.Fatal(err)
	}
}

func beatOnce(t *testing.T, store lease.Store, app string, first bool, troubles ...lease.Trouble) {
	t.Helper()
	if _, err := store.Heartbeat(t.Context(), app, lease.Report{Session: "s1", Name: "worker-1", First: first, Troubles: troubles}); err != nil {
		t.Fatal(err)
	}
}

// answer sends a request to a handler and returns the response. more contains header names and
// values.
func answer(t *testing.T, h http.Handler, method, target string, more ...string) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), method, target, nil)
	for i := 0; i+1 < len(more); i += 2 {
		r.Header.Set(more[i], more[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

func shown(t *testing.T, h http.Handler, target string, texts ...string) string {
	t.Helper()
	w := answer(t, h, http.MethodGet, target)
	body := w.Body.String()
	if w.Code != http.StatusOK {
		t.Errorf("%s: %d %s", target, w.Code, body)
	}
	for _, text := range texts {
		if !strings.Contains(body, text) {
			t.Errorf("%s does not say %q:\n%s", target, text, body)
		}
	}
	return body
}

func TestPagesShowApplicationsShardsAndWorkers(t *testing.T) {
	t.Parallel()
	store := memstore.New()
	fill(t, store, "billing", 4)
	beatOnce(t, store, "billing", false, lease.Trouble{
		Key: lease.Key{Stream: "orders", Shard: "shardId-000000000002"}, State: "waiting to handle again", For: 3 * time.Minute, Why: "no <b>room</b>",
		Failing: lease.Failing{KeyHash: "0badcafe", Attempts: 7},
	})
	h := dashboard.Handler(store, dashboard.Options{})
	shown(t, h, "/", `href="app?app=billing"`, "stalled", "1 application, the worst first")
	body := shown(t, h, "/app?app=billing", "Shards of orders over time", "worker-1", "no &lt;b&gt;room&lt;/b&gt;", "stalled", "Without access to Kinesis", `href="shard?app=billing&amp;shard=shardId-000000000003&amp;stream=orders"`)
	if strings.Contains(body, "<b>room") {
		t.Error("an error's text is not escaped")
	}
	shown(t, h, "/shard?app=billing&stream=orders&shard=shardId-000000000002", "Shard shardId-000000000002", "worker-1, session s1", "7 attempts", "0badcafe", "waiting to handle again for 3 min")
	part := shown(t, h, "/app?app=billing&part=1", "<h1>billing</h1>")
	if strings.Contains(part, "<html") {
		t.Error("a part is a whole page")
	}
	for _, missing := range []string{"/app?app=other", "/app", "/app?app=%3Cscript%3E", "/shard?app=billing&stream=orders&shard=x", "/x", "/assets/page.css", "/page.html"} {
		if w := answer(t, h, http.MethodGet, missing); w.Code != http.StatusNotFound || strings.Contains(w.Body.String(), "<script>") {
			t.Errorf("%s: %d %s", missing, w.Code, w.Body)
		}
	}
}

func TestShardsAreDrawnFromWhenKinesisSaysTheyWereOpened(t *testing.T) {
	t.Parallel()
	server := kinesistest.NewServer(t)
	server.CreateStream("orders", 1)
	server.Split("orders", "shardId-000000000000")
	store := memstore.New()
	if _, err := store.Apply(t.Context(), "billing", []lease.Action{
		{Kind: lease.Create, Lease: lease.Lease{Key: lease.Key{Stream: "orders", Shard: "shardId-000000000000"}, Epoch: 1, Position: shard.End}},
		{Kind: lease.Create, Lease: lease.Lease{Key: lease.Key{Stream: "orders", Shard: "shardId-000000000001"}, Epoch: 1, Position: shard.Oldest}},
	}); err != nil {
		t.Fatal(err)
	}
	var asked atomic.Int32
	h := dashboard.Handler(store, dashboard.Options{Kinesis: server.Client(), Lags: func(_ context.Context, leases []lease.Lease) (map[lease.Key]dashboard.Lag, error) {
		asked.Add(1)
		return map[lease.Key]dashboard.Lag{leases[0].Key: {Behind: 23 * time.Hour}}, errors.New("one did not answer")
	}})
	body := shown(t, h, "/app?app=billing", "near the end of retention", "23 h", "one did not answer", "split from 0", "split into 1")
	if n := strings.Count(body, `<rect x=`); n != 2 {
		t.Errorf("%d rectangles, want 2 without holes, since the hash keys are the stream's:\n%s", n, body)
	}
	shown(t, h, "/app?app=billing&span=7d", "Records in the grey area at the left")
	shown(t, h, "/app?app=billing")
	if asked.Load() != 1 {
		t.Errorf("lags were asked for %d times in a moment", asked.Load())
	}
}

// The first view of a page is small, even if the application has very many shards.
func TestAThousandShardsAreALightPage(t *testing.T) {
	t.Parallel()
	store := memstore.New()
	fill(t, store, "billing", 1000)
	var troubles []lease.Trouble
	for i := range 20 {
		troubles = append(troubles, lease.Trouble{Key: lease.Key{Stream: "orders", Shard: fmt.Sprintf("shardId-%012d", i*37)}, State: "waiting to handle again", For: time.Hour, Why: strings.Repeat("why ", 20)})
	}
	beatOnce(t, store, "billing", false, troubles...)
	h := dashboard.Handler(store, dashboard.Options{})
	bytes, elements := 0, 0
	for _, target := range []string{"/app?app=billing", "/page.css", "/page.js"} {
		w := answer(t, h, http.MethodGet, target, "Accept-Encoding", "gzip")
		bytes += w.Body.Len()
		z, err := gzip.NewReader(w.Body)
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(z)
		if err != nil {
			t.Fatal(err)
		}
		elements += len(regexp.MustCompile(`<[a-z]`).FindAll(text, -1))
	}
	t.Logf("%d bytes compressed, %d elements", bytes, elements)
	if bytes > 200_000 || elements > 3000 {
		t.Errorf("%d bytes compressed and %d elements, want at most 200,000 and 3,000", bytes, elements)
	}
	shown(t, h, "/app?app=billing&page=17", "page 17 of 17")

	// The link of a row with several shards opens a page on which each of these shards has its own
	// row.
	merged := regexp.MustCompile(`href="(app\?app=billing&amp;keys=[^"]*)" data-k="[^ ]* ([0-9]+)"`)
	found := merged.FindStringSubmatch(shown(t, h, "/app?app=billing&span=5m", "each row shows the worst of them"))
	if found == nil {
		t.Fatal("no row opens")
	}
	target := "/" + strings.ReplaceAll(found[1], "&amp;", "&")
	body := shown(t, h, target, found[2]+" shards, the worst first", "Show all of them", `href="app?app=billing&amp;span=5m&amp;stream=orders"`)
	if n := strings.Count(body, "<rect x="); fmt.Sprint(n) != found[2] || merged.MatchString(body) {
		t.Errorf("%s opened as %d rows:\n%s", found[0], n, body)
	}
	for _, keys := range []string{"1", "a-b", "5-3", "0-340282366920938463463374607431768211456"} {
		if w := answer(t, h, http.MethodGet, "/app?app=billing&keys="+keys); w.Code != http.StatusNotFound || !strings.Contains(w.Body.String(), "not hash keys") {
			t.Errorf("keys %s: %d %s", keys, w.Code, w.Body)
		}
	}
}

func TestOnlyWhatNobodyElseCanPointHereIsAnswered(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(dashboard.Handler(memstore.New(), dashboard.Options{Hosts: []string{"weir.example"}}))
	defer server.Close()
	for host, want := range map[string]int{"": http.StatusOK, "evil.example": http.StatusForbidden, "weir.example": http.StatusOK, "localhost:80": http.StatusOK} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL+"/", nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Host = host
		w, err := server.Client().Do(r)
		if err != nil {
			t.Fatal(err)
		}
		_ = w.Body.Close()
		if w.StatusCode != want {
			t.Errorf("%q: %d, want %d", host, w.StatusCode, want)
		}
	}
	h := dashboard.Handler(memstore.New(), dashboard.Options{})
	if w := answer(t, h, http.MethodPost, "/"); w.Code != http.StatusMethodNotAllowed || w.Header().Get("Allow") != "GET, HEAD" {
		t.Errorf("POST: %d", w.Code)
	}
	if w := answer(t, h, http.MethodPost, "/", "Sec-Fetch-Site", "cross-site"); w.Code != http.StatusForbidden {
		t.Errorf("POST from another site: %d", w.Code)
	}
	w := answer(t, h, http.MethodGet, "/")
	policy := w.Header().Get("Content-Security-Policy")
	if !strings.Contains(policy, "default-src 'none'") || strings.Contains(policy, "unsafe") {
		t.Errorf("the policy is %q", policy)
	}
	for _, inline := range []string{" style=", " onclick=", "<style", "javascript:", "://"} {
		if strings.Contains(w.Body.String(), inline) {
			t.Errorf("the page has %q", inline)
		}
	}
}

// Links are relative, so they work with any prefix that a proxy removes.
func TestAnyPrefixWorks(t *testing.T) {
	t.Parallel()
	store := memstore.New()
	fill(t, store, "billing", 2)
	mux := http.NewServeMux()
	mux.Handle("/own/", dashboard.Handler(store, dashboard.Options{Prefix: "/own"}))
	mux.Handle("/own", dashboard.Handler(store, dashboard.Options{Prefix: "/own"}))
	mux.Handle("/a/b/", http.StripPrefix("/a/b", dashboard.Handler(store, dashboard.Options{})))
	for _, base := range []string{"/own/", "/a/b/"} {
		todo, seen := []string{base}, map[string]bool{}
		for len(todo) > 0 {
			target := todo[0]
			todo = todo[1:]
			if seen[target] || len(seen) > 60 {
				continue
			}
			seen[target] = true
			w := answer(t, mux, http.MethodGet, target)
			if w.Code != http.StatusOK {
				t.Errorf("%s: %d", target, w.Code)
			}
			if !strings.HasPrefix(w.Header().Get("Content-Type"), "text/html") {
				continue
			}
			for _, found := range regexp.MustCompile(`(?:href|src)="([^"]*)"`).FindAllStringSubmatch(w.Body.String(), -1) {
				link := strings.ReplaceAll(found[1], "&amp;", "&")
				if strings.HasPrefix(link, "data:") {
					continue
				}
				to, err := url.Parse(target)
				if err != nil {
					t.Fatal(err)
				}
				next, err := to.Parse(link)
				if err != nil || !strings.HasPrefix(next.Path, base) {
					t.Errorf("%s links to %s, outside of %s: %v", target, link, base, err)
					continue
				}
				todo = append(todo, next.RequestURI())
			}
		}
		if len(seen) < 8 {
			t.Errorf("under %s there are only %d pages", base, len(seen))
		}
	}
	if w := answer(t, mux, http.MethodGet, "/own"); w.Code != http.StatusMovedPermanently || w.Header().Get("Location") != "./own/" {
		t.Errorf("without the last slash: %d to %q", w.Code, w.Header().Get("Location"))
	}
}

// failing is a store that returns errors while fails is true.
type failing struct {
	*memstore.Store
	fails atomic.Bool
}

func (f *failing) View(ctx context.Context, app, since string) (lease.View, error) {
	if f.fails.Load() {
		return lease.View{}, errors.New("no answer from <db>")
	}
	return f.Store.View(ctx, app, since)
}

// bare is a store without the methods of lease.Admin, so it cannot list applications.
type bare struct{ lease.Store }

func TestItSaysPlainlyWhatItDoesNotKnow(t *testing.T) {
	t.Parallel()
	synctest.Test(t, itSaysPlainly)
}

func itSaysPlainly(t *testing.T) {
	store := &failing{Store: memstore.New()}
	fill(t, store, "billing", 1)
	shown(t, dashboard.Handler(bare{store}, dashboard.Options{}), "/", "cannot list its applications", `<form action="app">`)
	h := dashboard.Handler(store, dashboard.Options{})
	shown(t, h, "/app?app=billing", "<h1>billing</h1>")
	shown(t, h, "/", `class="state unknown"`)
	store.fails.Store(true)
	time.Sleep(10 * time.Second)
	since := "The store has not answered since 00:00:10 UTC:</b> no answer from &lt;db&gt;"
	unavailable(t, dashboard.Handler(store, dashboard.Options{}), "/app?app=billing", since)
	unavailable(t, dashboard.Handler(store, dashboard.Options{}), "/", since)
	// The last known data stays, with its time, and the banner does not change.
	for range 2 {
		unavailable(t, h, "/app?app=billing", since, "the state at 00:00:00 UTC", "Shards of orders over time", "As of 00:00:00 UTC")
		time.Sleep(time.Minute)
	}
	store.fails.Store(false)
	shown(t, h, "/app?app=billing", "<h1>billing</h1>")
}

// unavailable requests a page while the store does not answer.
func unavailable(t *testing.T, h http.Handler, target string, texts ...string) string {
	t.Helper()
	w := answer(t, h, http.MethodGet, target)
	body := w.Body.String()
	if w.Code != http.StatusServiceUnavailable || w.Header().Get("Weir-Page") != "down" {
		t.Errorf("%s: %d", target, w.Code)
	}
	for _, text := range texts {
		if !strings.Contains(body, text) {
			t.Errorf("%s does not say %q:\n%s", target, text, body)
		}
	}
	return body
}

// The script inserts parts of HTML into the page. These parts must be well-formed.
func TestPagesAreWellFormed(t *testing.T) {
	t.Parallel()
	store := memstore.New()
	fill(t, store, "billing", 3)
	h := dashboard.Handler(store, dashboard.Options{})
	for _, target := range []string{"/?part=1", "/app?app=billing&part=1", "/events?app=billing&kind=death&part=1", "/shard?app=billing&stream=orders&shard=shardId-000000000001&part=1"} {
		d := xml.NewDecoder(strings.NewReader("<x>" + shown(t, h, target) + "</x>"))
		d.Strict = true
		for {
			if _, err := d.Token(); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				t.Errorf("%s: %v", target, err)
				break
			}
		}
	}
}
