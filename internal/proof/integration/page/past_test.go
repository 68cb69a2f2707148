package page_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/dashboard"
	"github.com/weir-go/weir/internal/proof/integration/servers"
	"github.com/weir-go/weir/kinesistest"
	"github.com/weir-go/weir/shard"
	"github.com/weir-go/weir/store/memstore"
)

// TestWhatAGroupDidBeforeThePageWasStartedIsShown runs a group of two workers, one of which joins
// and leaves. It stops all workers, and only then opens the page.
func TestWhatAGroupDidBeforeThePageWasStartedIsShown(t *testing.T) {
	srv := kinesistest.NewServer(t, kinesistest.Config{})
	srv.CreateStream("orders", 2)
	store := memstore.New()
	works := map[string]chan struct{}{"one": make(chan struct{}, 100), "two": make(chan struct{}, 100)}
	start := func(name string) (stop func()) {
		consumer, err := weir.New(srv.Client(), store, weir.Options{App: "billing", Streams: []string{"orders"}, Worker: name, Start: shard.Oldest, Timing: weir.Timing{HeartbeatInterval: 200 * time.Millisecond}})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() {
			ended <- consumer.Run(ctx, weir.HandlerFunc(func(ctx context.Context, _ *weir.Batch) error {
				works[name] <- struct{}{}
				select { // slow enough to be running at every check
				case <-time.After(3 * time.Second):
				case <-ctx.Done():
				}
				return nil
			}))
		}()
		return func() {
			cancel()
			if err := <-ended; err != nil {
				t.Error(err)
			}
		}
	}
	put := func() {
		for i := range 20 {
			srv.Put("orders", fmt.Sprint(i), []byte("x"))
		}
	}
	put()
	held := func(n int) {
		t.Helper()
		for began := time.Now(); ; time.Sleep(50 * time.Millisecond) {
			v, err := store.View(t.Context(), "billing", "")
			if err != nil || time.Since(began) > 20*time.Second {
				t.Fatalf("%d leases were to be held, %v", n, err)
			}
			owners, all := map[string]bool{}, 0
			for _, l := range v.Leases {
				if l.Owner != "" {
					owners[l.Owner] = true
					all++
				}
			}
			if len(owners) == n && all == 2 {
				return
			}
		}
	}
	stopOne := start("one")
	held(1)
	stopTwo := start("two")
	held(2)
	put()
	<-works["two"]
	time.Sleep(500 * time.Millisecond) // two of its heartbeats
	stopTwo()
	held(1)
	stopOne()
	chunks, err := store.History(t.Context(), "billing", 0)
	if err != nil || len(chunks) < 2 {
		t.Fatalf("%d chunks of history, %v", len(chunks), err)
	}

	s := open(t, store, dashboard.Options{Kinesis: srv.Client()})
	s.do(chromedp.Navigate(s.url + "app?app=billing&stream=orders&span=5m&by=handler"))
	s.until(`document.querySelectorAll("path.handed").length === 1 && document.querySelectorAll("svg.shards path.l0, svg.shards path.l1, svg.shards path.l2, svg.shards path.l3, svg.shards path.l4, svg.shards path.l5").length > 0`)
	s.until(`[...document.querySelectorAll("p.legend")].some(p => p.innerText.includes("hand-over"))`)
	s.picture("past-of-a-group")
	s.goTo(chromedp.Click(`nav[aria-label="What the colours say"] a:nth-of-type(3)`))
	s.until(`location.search.includes("by=bytes") && document.querySelector('nav[aria-label="What the colours say"] [aria-current]').innerText === "bytes"`)
	s.goTo(chromedp.Click(`nav[aria-label="What the colours say"] a:nth-of-type(5)`))
	s.until(`location.search.includes("by=throttles") && document.querySelector('nav[aria-label="What the colours say"] [aria-current]').innerText === "throttles"`)
	s.clean()
}

// TestThePastOfAThousandShardsIsSeen checks the picture of many shards, a few of which are
// exceptional.
func TestThePastOfAThousandShardsIsSeen(t *testing.T) {
	store := memstore.New()
	past(t, store, 1000)
	s := open(t, store, dashboard.Options{})
	for _, by := range []string{"throttles", "lag"} {
		s.do(chromedp.Navigate(s.url + "app?app=big&span=6h&by=" + by))
		s.until(`document.querySelectorAll(".shards a").length > 0`)
		for _, of := range s.faults(servers.Axe(t)) {
			t.Errorf("by %s: %+v", by, of)
		}
		s.picture("past-by-" + by)
	}
	s.do(chromedp.Navigate(s.url))
	s.until(`document.querySelectorAll("table").length > 0`)
	for _, of := range s.faults(servers.Axe(t)) {
		t.Errorf("%+v", of)
	}
	s.do(chromedp.Navigate(s.url + "app?app=big&span=6h&by=lag"))
	s.until(`document.querySelectorAll('svg.shards path[class^="l"]').length > 2`)
	if n := s.number(`document.querySelectorAll("*").length`); n > 3000 {
		t.Errorf("the page has %d elements", n)
	}
	if n := s.number(`performance.getEntriesByType("navigation")[0].encodedBodySize`); n > 200_000 || n == 0 {
		t.Errorf("the page has %d bytes, compressed", n)
	}
	s.picture("past-of-1000-shards")
	s.do(chromedp.Navigate(s.url))
	s.until(`document.querySelectorAll("svg.lately path").length === 1 && document.body.innerText.includes("rising")`)
	s.picture("trend-of-the-lag")
	s.clean()
}
