package page_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync/atomic"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"

	"github.com/weir-go/weir/dashboard"
	"github.com/weir-go/weir/kinesistest"
	"github.com/weir-go/weir/lease"
	"github.com/weir-go/weir/shard"
	"github.com/weir-go/weir/store/memstore"
)

// unread creates an application whose leases have no owners.
func unread(t *testing.T, store lease.Store, shards int) {
	t.Helper()
	var actions []lease.Action
	for i := range shards {
		actions = append(actions, lease.Action{Kind: lease.Create, Lease: lease.Lease{
			Key: lease.Key{Stream: "orders", Shard: fmt.Sprintf("shardId-%012d", i)}, Epoch: 1, Position: shard.Latest, Range: shard.HashRange{End: shard.MaxHashKey},
		}})
	}
	if _, err := store.Apply(t.Context(), "billing", actions); err != nil {
		t.Fatal(err)
	}
}

func pausedIn(t *testing.T, store lease.Store) bool {
	t.Helper()
	v, err := store.View(t.Context(), "billing", "")
	if err != nil {
		t.Fatal(err)
	}
	return len(v.Paused) > 0
}

// press clicks the button with the given accessible name, and waits for the answer.
func (s *site) press(label string) {
	s.t.Helper()
	s.do(chromedp.Evaluate(`document.querySelectorAll("details").forEach((d) => { d.open = true; })`, nil))
	s.goTo(chromedp.Click(fmt.Sprintf(`button[aria-label=%q]`, label), chromedp.ByQuery))
}

// says waits for a text on the page.
func (s *site) says(text string) {
	s.t.Helper()
	s.until(fmt.Sprintf(`document.body.innerText.includes(%q)`, text))
}

// fits stores a wide and a narrow picture of a page. It checks that everything fits a narrow
// screen.
func (s *site) fits(name string) {
	s.t.Helper()
	s.picture(name)
	s.do(emulation.SetDeviceMetricsOverride(400, 900, 1, false))
	if got := s.number(`document.documentElement.scrollWidth`); got > 400 {
		s.t.Errorf("the page is %d wide on a screen of 400", got)
	}
	s.picture(name + "-narrow")
	s.do(emulation.SetDeviceMetricsOverride(1200, 900, 1, false))
}

func TestAWriteIsRefusedAndAWriteIsDone(t *testing.T) {
	kinesis := kinesistest.NewServer(t)
	kinesis.CreateStream("orders", 2)
	store := memstore.New()
	unread(t, store, 2)
	var lets atomic.Bool
	var saved atomic.Int32
	s := open(t, store, dashboard.Options{
		Kinesis: kinesis.Client(),
		Authorize: func(*http.Request, dashboard.Action) error {
			if !lets.Load() {
				return errors.New("only <who> is on call")
			}
			return nil
		},
		SaveProgress: func(context.Context, string, []byte) (string, error) {
			saved.Add(1)
			return "the-safe", nil
		},
	})
	s.goTo(chromedp.Navigate(s.url + "app?app=billing"))
	s.goTo(chromedp.Click(`a[href="change?app=billing"]`))
	s.fits("change")
	s.press("Pause now: The whole application")
	s.says("only <who> is on call")
	if pausedIn(t, store) {
		t.Error("it is paused all the same")
	}
	s.picture("refused")

	lets.Store(true)
	s.goTo(chromedp.Click(`a[href="change?app=billing"]`))
	s.press("Pause now: The whole application")
	s.says("The whole application is paused.")
	if !pausedIn(t, store) {
		t.Error("it is not paused")
	}
	s.picture("paused")

	// Do the same without scripts, with a form that is older than a change by another user.
	s.do(emulation.SetScriptExecutionDisabled(true))
	s.goTo(chromedp.Click(`a[href="change?app=billing"]`))
	if _, err := store.Apply(t.Context(), "billing", []lease.Action{{Kind: lease.Pause, On: false}}); err != nil {
		t.Fatal(err)
	}
	s.press("Resume: The whole application")
	s.do(chromedp.WaitVisible(`p[role="alert"]`))
	s.says("This has changed since it was shown: nothing is paused now.")

	// For checkpoints, the preview comes first.
	s.goTo(chromedp.Click(`a[href="change?app=billing"]`))
	s.do(chromedp.SendKeys(`input[name="to"]`, "oldest"))
	s.goTo(chromedp.Submit(`input[name="to"]`))
	s.says("2 checkpoints would move to oldest")
	s.fits("reset")
	if saved.Load() != 0 {
		t.Error("looking saves progress")
	}
	s.goTo(chromedp.Click(`form[method="post"] button`))
	s.says("2 of 2 checkpoints moved to oldest.")
	s.says("the-safe")
	s.picture("moved")
	v, err := store.View(t.Context(), "billing", "")
	if err != nil || v.Leases[0].Position != shard.Oldest || saved.Load() != 1 {
		t.Errorf("%+v, %v, saved %d", v.Leases, err, saved.Load())
	}
}
