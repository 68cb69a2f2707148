package page_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/weir-go/weir/dashboard"
	"github.com/weir-go/weir/deadletter"
	"github.com/weir-go/weir/internal/proof/integration/servers"
	"github.com/weir-go/weir/kinesistest"
	"github.com/weir-go/weir/lease"
	"github.com/weir-go/weir/store/memstore"
)

// fragile is a store that fails while down is set.
type fragile struct {
	*memstore.Store
	down atomic.Bool
}

func (f *fragile) View(ctx context.Context, app, session string) (lease.View, error) {
	if f.down.Load() {
		return lease.View{}, errors.New("dial tcp 10.0.0.7:6379: connect: connection refused")
	}
	return f.Store.View(ctx, app, session)
}

func (f *fragile) Apps(ctx context.Context) ([]string, error) {
	if f.down.Load() {
		return nil, errors.New("dial tcp 10.0.0.7:6379: connect: connection refused")
	}
	return f.Store.Apps(ctx)
}

// openFull opens a page with everything: an application with so many shards that they share a row,
// with next steps, dead letters of two errors, and permission to change it.
func openFull(t *testing.T) (*site, *fragile) {
	t.Helper()
	const shards = 40
	kinesis := kinesistest.NewServer(t)
	kinesis.CreateStream("orders", shards)
	store := &fragile{Store: memstore.New()}
	unread(t, store, shards)
	dead := deadletter.File(filepath.Join(t.TempDir(), "dead.ndjson"))
	var letters []deadletter.Letter
	for i := range 9 {
		why := []string{"no such currency: ZZZ", "insert into bills: deadlock detected"}[i/5]
		letters = append(letters, deadletter.Letter{
			Version: deadletter.Version, ID: fmt.Sprintf("orders/shardId-000000000001/495901%050d", i), Stream: "orders", Shard: "shardId-000000000001",
			SequenceNumber: fmt.Sprint(100 + i), Position: fmt.Sprint(100 + i), PartitionKey: "a", Data: []byte(`{"amount": 12, "currency": "ZZZ"}`), App: "billing",
			GivenUp: time.Now().Add(-time.Hour), Reason: deadletter.Attempts, Attempts: 3, Error: why,
		})
	}
	if err := dead.Put(t.Context(), letters); err != nil {
		t.Fatal(err)
	}
	return open(t, store, dashboard.Options{
		Kinesis: kinesis.Client(), Queues: someQueues{}, Letters: dead, LettersPlace: "file:dead.ndjson", ShowPayloads: true,
		Authorize:    func(*http.Request, dashboard.Action) error { return nil },
		SaveProgress: func(context.Context, string, []byte) (string, error) { return "the-safe", nil },
	}), store
}

// someQueues are queues with a long name, and with dead letters.
type someQueues struct{}

func (someQueues) Queues(context.Context) ([]dashboard.Queue, error) {
	now := time.Now()
	return []dashboard.Queue{
		{
			Name: "bills", ARN: "arn:aws:kinesis:eu-central-1:000000000000:queue/rqnxzsvxpynnywdqpdtebwripp", Stream: "orders", Status: "ACTIVE",
			Created: now, MaxReceiveCount: 6, Visibility: 30 * time.Second, Retention: 24 * time.Hour,
			Metrics: dashboard.QueueMetrics{At: now, Visible: 1_000_000, InFlight: 119_000, DeadLetters: 60, Over: time.Hour, Received: 20_000, Acknowledged: 9000, NewDeadLetters: 12},
		},
		{
			Name: strings.Repeat("long-name-", 12), ARN: "arn:aws:kinesis:eu-central-1:000000000000:queue/b", Stream: "orders", Status: "CREATING", Created: now,
			NoDeadLetters: true, Metrics: dashboard.QueueMetrics{Visible: -1, InFlight: -1, DeadLetters: -1, Over: time.Hour}, MetricsErr: "no permission for CloudWatch GetMetricData",
		},
	}, nil
}

func (someQueues) DeadLetters(_ context.Context, _ string, most int) (all []dashboard.QueueLetter, err error) {
	for i := range most {
		all = append(all, dashboard.QueueLetter{
			RecordID: fmt.Sprintf("3f1c9a40d2b84c55a0f6d1c2b3e4%04d", i), Arrived: time.Now(), FirstReceived: time.Now(), Receives: 7, Data: []byte(`{"amount": 12, "currency": "ZZZ"}`),
		})
	}
	return all, nil
}

const opened = `document.querySelectorAll("details").forEach((d) => { d.open = true; }); true`

func TestNoWorkingViewHasAFaultOfAccessibility(t *testing.T) {
	script := servers.Axe(t)
	for _, l := range []look{{1280, "light"}, {1280, "dark"}, {390, "light"}, {390, "dark"}} {
		t.Run(fmt.Sprintf("%s-%d", l.colour, l.width), func(t *testing.T) {
			s, store := openFull(t)
			s.as(l)
			for _, view := range []struct{ name, path, says, script string }{
				{"list", "", "Applications", ""},
				{"folded", "app?app=billing", "Next steps:", ""},
				{"unfolded", "app?app=billing&rows=all", "Brings", ""},
				{"found", "app?app=billing&find=shard+1", "Show all shards", ""},
				{"letters", "letters?app=billing", "grouped by error", ""},
				{"letters-open", "letters?app=billing", "grouped by error", opened},
				{"queue", "queue?queue=bills", "Look at the dead letters", ""},
				{"queue-dead", "queue?queue=bills&dead=1", "there are more", opened},
				{"queue-new", "queue?queue=" + strings.Repeat("long-name-", 12), "CREATING", ""},
				{"events", "events?app=billing", "Events of billing", ""},
				{"change", "change?app=billing", "Pause …", ""},
				{"pause", "change?app=billing", "Pause …", opened},
				{"reset", "reset?app=billing&to=oldest", "would move to oldest", ""},
				{"down-list", "", "has not answered since", "down"},
				{"down-app", "app?app=billing", "has not answered since", "down"},
			} {
				if view.script == "down" {
					store.down.Store(true)
				}
				s.goTo(chromedp.Navigate(s.url + view.path))
				s.until(fmt.Sprintf(`document.readyState === "complete" && document.body.textContent.includes(%q)`, view.says))
				if view.script == opened {
					s.do(chromedp.Evaluate(opened, nil))
				}
				s.accessible(script, view.name, l)
			}
		})
	}
}

// accessible checks a view with axe, and that it is no wider than the screen.
func (s *site) accessible(script, name string, l look) {
	s.t.Helper()
	for _, of := range s.faults(script) {
		for _, n := range of.Nodes {
			s.t.Errorf("%s: %s (%s): %s\n%s\n%s", name, of.ID, of.Impact, of.Help, n.HTML, n.FailureSummary)
		}
	}
	if got := s.number(`document.documentElement.scrollWidth`); got > int(l.width) {
		s.t.Errorf("%s: the page is %d wide", name, got)
	}
	s.picture(name)
}

// control describes the element that has the focus, or "" if none has it. It ends with "unseen" if
// nothing shows the focus.
const control = `(() => {
	const e = document.activeElement;
	if (!e || e === document.body) return "";
	const c = getComputedStyle(e), r = e.querySelector("rect"), box = e.getBoundingClientRect();
	const shown = c.outlineStyle !== "none" && parseFloat(c.outlineWidth) >= 2 || r && parseFloat(getComputedStyle(r).strokeWidth) >= 3;
	const inView = box.bottom > 0 && box.top < innerHeight && box.right > 0 && box.left < innerWidth;
	return e.tagName.toLowerCase() + " " + (e.getAttribute("aria-label") || e.textContent.trim() || e.name).slice(0, 40) + (shown && inView ? "" : " unseen");
})()`

// controls returns what the tab key reaches, from the top of the page to its end.
func (s *site) controls() (all []string) {
	s.t.Helper()
	for range 200 {
		var is string
		s.do(chromedp.KeyEvent(kb.Tab), chromedp.Evaluate(control, &is))
		if is == "" {
			return all
		}
		if strings.HasSuffix(is, "unseen") { // the page may be replacing its content
			s.do(chromedp.Sleep(200*time.Millisecond), chromedp.Evaluate(control, &is))
		}
		if strings.HasSuffix(is, "unseen") {
			s.t.Errorf("the focus cannot be seen on %q", is)
		}
		all = append(all, is)
	}
	s.t.Error("the tab key does not reach the end of the page")
	return all
}

func TestTheKeyboardReachesEachControl(t *testing.T) {
	s, _ := openFull(t)
	for _, c := range []struct {
		view string
		want []string
	}{
		{"", []string{"a billing", "a bills"}},
		{"queue?queue=bills", []string{"a All applications", "a Look at the dead letters"}},
		{"app?app=billing", []string{"a All applications", "a Workers 0", "a Events 0", "a Dead letters", "a Change this application", "a 15m", "a lag", "input find", "button Find", "a A row for each shard", "a 40 shards"}},
		{"app?app=billing&rows=all", []string{"input find", "a 0", "a 39"}},
		{"app?app=billing&find=shardId", []string{"a Show all shards", "a 1"}},
		{"letters?app=billing", []string{"input stream", "input error", "button Show these", "summary Show the 5 records", "summary Show the 4 records"}},
		{"events?app=billing", []string{"select kind", "input shard", "button Show"}},
		{"change?app=billing", []string{"summary Pause …", "select stream", "input to", "button Show the plan"}},
		{"reset?app=billing&to=oldest", []string{"button Move 40 checkpoints", "a Back, without a change"}},
	} {
		s.goTo(chromedp.Navigate(s.url + c.view))
		s.until(`document.readyState === "complete" && document.querySelector("h1") !== null && document.querySelector(".loading:only-child") === null`)
		got := s.controls()
		for _, want := range c.want {
			if !slices.ContainsFunc(got, func(is string) bool {
				return strings.HasPrefix(is, want) || strings.HasPrefix(is, "select") && strings.HasPrefix(want, "select")
			}) {
				t.Errorf("%s: the tab key does not reach %q, only %q", c.view, want, got)
			}
		}
	}
	// The focus stays on a button while the page updates itself.
	s.goTo(chromedp.Navigate(s.url + "app?app=billing"))
	s.until(`document.querySelector("form.filter button") !== null && document.getElementById("live").textContent === "Live"`)
	s.do(chromedp.Evaluate(`window.first = document.querySelector("h1"); document.querySelector("form.filter button").focus(); true`, nil))
	s.until(`document.querySelector("h1") !== window.first && document.activeElement.tagName === "BUTTON"`)

	// The enter key opens the row of many shards, and runs the search.
	s.do(chromedp.Focus(`a[href*="only="]`))
	s.goTo(chromedp.KeyEvent(kb.Enter))
	s.says("Show all shards")
	s.do(chromedp.Focus(`input[name="find"]`), chromedp.KeyEvent("000000000007"))
	s.goTo(chromedp.KeyEvent(kb.Enter))
	s.says("1 of 40 shards")
}

func TestEachViewWorksWithoutScripts(t *testing.T) {
	s, _ := openFull(t)
	s.do(emulation.SetScriptExecutionDisabled(true))
	s.goTo(chromedp.Navigate(s.url))
	// A page that loads itself again would take the focus and the text of a field from the user.
	s.do(chromedp.WaitNotPresent(`meta[http-equiv="refresh"]`))
	s.goTo(chromedp.Click(`a[href="queue?queue=bills"]`))
	s.says("119,000 of 120,000 at most")
	s.goTo(chromedp.Click(`a[href*="dead=1"]`))
	s.says("dead letters; there are more")
	s.goTo(chromedp.Navigate(s.url))
	s.goTo(chromedp.Click(`a[href="app?app=billing"]`))
	s.says("Next steps:")
	s.goTo(chromedp.Click(`noscript a`))
	s.says("Next steps:")
	s.goTo(chromedp.Click(`.tabs a[href^="letters"]`))
	s.says("grouped by error")
	s.do(chromedp.Click(`details > summary`))
	s.says("ID of the dead letter")
	s.goTo(chromedp.Click(`.tabs a[href^="events"]`))
	s.says("Events of billing")
	s.goTo(chromedp.Click(`.tabs a[href="app?app=billing"]`))
	s.goTo(chromedp.Click(`a[href*="only="]`))
	s.says("40 shards, the worst first")
	s.do(chromedp.SendKeys(`input[name="find"]`, "000000000007"))
	s.goTo(chromedp.Submit(`input[name="find"]`))
	s.says("1 of 40 shards")
	s.picture("found")
	s.goTo(chromedp.Click(`a[href="change?app=billing"]`))
	s.do(chromedp.Click(`details > summary`))
	s.says("Workers stop reading 40 shards")
	s.goTo(chromedp.Click(`button[aria-label="Pause now: The whole application"]`))
	s.says("The whole application is paused.")
	s.goTo(chromedp.Click(`a[href="change?app=billing"]`))
	s.do(chromedp.SendKeys(`input[name="to"]`, "oldest"))
	s.goTo(chromedp.Submit(`input[name="to"]`))
	s.says("40 checkpoints would move to oldest")
}
