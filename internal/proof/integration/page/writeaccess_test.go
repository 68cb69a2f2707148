package page_test

import (
	"context"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/weir-go/weir/dashboard"
	"github.com/weir-go/weir/deadletter"
	"github.com/weir-go/weir/internal/proof/integration/servers"
	"github.com/weir-go/weir/kinesistest"
	"github.com/weir-go/weir/lease"
	"github.com/weir-go/weir/store/memstore"
)

func TestFormsHaveNoFaultOfAccessibility(t *testing.T) {
	script := servers.Axe(t)
	kinesis := kinesistest.NewServer(t)
	kinesis.CreateStream("orders", 2)
	store := memstore.New()
	unread(t, store, 2)
	if _, err := store.Heartbeat(t.Context(), "billing", lease.Report{
		// The worker sends no more heartbeats.
		Session: "s1", Name: "worker-1", First: true, Times: lease.Times{Heartbeat: time.Minute, Failover: time.Hour, Handoff: time.Hour},
	}); err != nil {
		t.Fatal(err)
	}
	letters := deadletter.File(filepath.Join(t.TempDir(), "dead.ndjson"))
	if err := letters.Put(t.Context(), []deadletter.Letter{{
		Version: deadletter.Version, ID: "orders/shardId-000000000000/1", Stream: "orders", Shard: "shardId-000000000000", SequenceNumber: "1", Position: "1",
		App: "billing", GivenUp: time.Now(), Reason: deadletter.Rejected, Attempts: 1, Error: strings.Repeat("no such currency ", 20),
		Data: []byte(`{"order": 471, "currency": "` + strings.Repeat("x", 200) + `"}`),
	}}); err != nil {
		t.Fatal(err)
	}
	s := open(t, store, dashboard.Options{
		Letters: letters, LettersPlace: "file:dead.ndjson", ShowPayloads: true, RetryLetter: func(context.Context, deadletter.Item) error { return nil },
		Kinesis: kinesis.Client(), Authorize: func(*http.Request, dashboard.Action) error { return nil },
		User:         func(*http.Request) string { return "ann" },
		SaveProgress: func(context.Context, string, []byte) (string, error) { return "the-safe", nil },
	})
	check := func(as string) {
		for _, l := range []look{{1200, "light"}, {1200, "dark"}, {390, "light"}, {390, "dark"}} {
			s.as(l)
			for _, of := range s.faults(script) {
				for _, n := range of.Nodes {
					t.Errorf("%s: %s (%s): %s\n%s\n%s", as, of.ID, of.Impact, of.Help, n.HTML, n.FailureSummary)
				}
			}
			if got := s.number(`document.documentElement.scrollWidth`); got > int(l.width) {
				t.Errorf("%s: the page is %d wide on a screen of %d", as, got, l.width)
			}
			s.picture(fmt.Sprintf("%s-%s-%d", as, l.colour, l.width))
		}
	}
	s.goTo(chromedp.Navigate(s.url + "change?app=billing"))
	check("change")
	s.goTo(chromedp.Navigate(s.url + "reset?app=billing&to=oldest"))
	check("reset")
	s.goTo(chromedp.Submit(`form[method="post"]`))
	s.says("Workers run: worker-1")
	check("refused")
	s.goTo(chromedp.Navigate(s.url + "change?app=billing"))
	s.press("Drain worker-1, session s1")
	check("done")
	s.goTo(chromedp.Navigate(s.url + "app?app=billing"))
	s.goTo(chromedp.Click(`a[href^="letters"]`))
	s.do(chromedp.Evaluate(`document.querySelectorAll("details").forEach((d) => { d.open = true; })`, nil))
	check("letters")
	s.goTo(chromedp.Submit(`form[method="post"]`))
	s.says("1 of 1 dead letter was handled again.")
}
