package page_test

import (
	"context"
	"fmt"
	"log/slog"
	"math/big"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"

	"github.com/weir-go/weir/dashboard"
	"github.com/weir-go/weir/lease"
	"github.com/weir-go/weir/shard"
)

func decimal(hex string) string {
	n, ok := new(big.Int).SetString(hex, 16)
	if !ok {
		return ""
	}
	return n.String()
}

// state describes how the page should show a shard.
type state struct {
	app   string
	shard int
	class string // class of its rectangle and its row
	says  []string
}

// bare is a store that cannot list its applications.
type bare struct{ lease.Store }

// everyState returns an application that has a shard in each state.
func everyState(t *testing.T) (f film, want []state) {
	synctest.Test(t, func(t *testing.T) { f, want = filmed(t) })
	return f, want
}

func filmed(t *testing.T) (film, []state) {
	s := newStage(t)
	page := dashboard.Handler(s.store, dashboard.Options{Prefix: prefix, Kinesis: s, Lags: s.askLags, Logger: slog.New(slog.DiscardHandler),
		Authorize:    func(*http.Request, dashboard.Action) error { return nil },
		SaveProgress: func(context.Context, string, []byte) (string, error) { return "the-safe", nil },
	})
	lag := func(id int, of func(age time.Duration) time.Duration) {
		s.lags[key(id)] = func(age time.Duration) dashboard.Lag { return dashboard.Lag{Behind: of(age)} }
	}
	none := func(time.Duration) time.Duration { return 0 }
	hour := func(time.Duration) time.Duration { return time.Hour }

	// In the application billing, workers a and b are alive, and c is silent.
	s.worker("billing", lease.Report{Session: "sa", Name: "worker-a", Times: lease.DefaultTimes, Troubles: []lease.Trouble{
		{Key: key(4), State: "waiting to handle again", For: 8 * time.Minute, Why: "insert into bills: no such table", Failing: lease.Failing{Attempts: 12, KeyHash: "0badcafe", Records: 1}},
		{Key: key(9), State: lease.OnPurpose, For: 20 * time.Minute, Why: "by an open window"},
		{Key: key(0), State: lease.GaveUp, For: time.Minute, Why: "no such customer", Failing: lease.Failing{GivenUp: 3}},
	}})
	s.worker("billing", lease.Report{Session: "sb", Name: "worker-b", Times: lease.DefaultTimes})
	s.worker("billing", lease.Report{Session: "sc", Name: "worker-c", Times: lease.DefaultTimes})
	want := []state{
		{"billing", 0, "ok", []string{"up to date", "worker-a"}},
		{"billing", 1, "catching_up", []string{"min behind, its lag fell by"}},
		{"billing", 2, "falling_behind", []string{"its lag grew by"}},
		{"billing", 3, "behind", []string{"watched too briefly"}},
		{"billing", 4, "stalled", []string{"1 h 0 min behind, waiting to handle again since ", "last error: insert into bills: no such table"}},
		{"billing", 5, "unread", []string{"its worker sends no heartbeats", "worker-c"}},
		{"billing", 6, "going_back", []string{"it was reset to an earlier position"}},
		{"billing", 7, "retention_near", []string{"records expire in 3 h"}},
		{"billing", 8, "retention_near", []string{"records expired before they were handled"}},
		{"billing", 9, "ok", []string{"its checkpoint is held by an open window", "20 min"}},
		{"billing", 10, "unknown", []string{"its lag is unknown"}},
		{"billing", 11, "idle", []string{"waits for its parents"}},
		{"billing", 12, "unread", []string{"not assigned yet"}},
		{"billing", 16, "finished", []string{"read to its end"}},
		{"full", 1, "unread", []string{"no worker has room"}},
		{"paused", 0, "idle", []string{"paused"}},
		{"dead", 0, "unread", []string{"no worker lives"}},
	}
	for id := range 11 {
		session := "sa"
		if id%2 == 1 && id != 9 {
			session = "sb"
		}
		switch id {
		case 3: // joins late
			continue
		case 5:
			session = "sc"
		}
		s.lease("billing", id, session, s.position(-time.Hour))
		lag(id, hour)
	}
	s.lease("billing", 11, "", shard.Oldest, 4)
	s.lease("billing", 12, "", shard.Oldest)
	s.lease("billing", 16, "", shard.End)
	lag(0, none)
	lag(1, func(age time.Duration) time.Duration { return time.Hour - 4*age })
	lag(2, func(age time.Duration) time.Duration { return 5*time.Minute + age/2 })
	lag(3, func(time.Duration) time.Duration { return 2 * time.Minute })
	lag(7, func(time.Duration) time.Duration { return 21 * time.Hour })
	s.lags[key(8)] = func(time.Duration) dashboard.Lag { return dashboard.Lag{Behind: 23 * time.Hour, Expired: true} }
	lag(9, func(time.Duration) time.Duration { return 20 * time.Minute })
	delete(s.lags, key(10))

	s.worker("full", lease.Report{Session: "sf", Name: "worker-f", MaxLeases: 1, Times: lease.DefaultTimes})
	s.lease("full", 0, "sf", s.position(0))
	s.lease("full", 1, "", s.position(0))
	s.lease("paused", 0, "", s.position(0))
	s.apply("paused", lease.Action{Kind: lease.Pause, On: true})
	s.lease("dead", 0, "", s.position(0))

	move := func(age time.Duration) {
		for id, session := range map[int]string{1: "sa", 2: "sa", 6: "sa"} {
			if id%2 == 1 {
				session = "sb"
			}
			s.advance("billing", id, session, 2, s.position(-time.Hour+age))
		}
		if age >= 3*time.Minute {
			s.advance("billing", 3, "sb", 2, s.position(age))
		}
	}
	looked := []string{"app?app=billing"}
	s.pass(3*time.Minute, page, move, looked...)
	delete(s.beats, "billing sc")
	s.apply("billing", lease.Action{Kind: lease.Move, Key: key(6), Epoch: 2, Position: s.position(-2 * time.Hour)})
	s.apply("billing", lease.Action{Kind: lease.Assign, Key: key(6), Epoch: 3, Session: "sa"})
	s.pass(time.Minute, page, move, looked...)
	s.lease("billing", 3, "sb", s.position(0))
	s.pass(90*time.Second, page, move, looked...)

	f := film{}
	views := []string{"", "app?app=billing", "app?app=billing&span=1h", "app?app=billing&by=lag&span=1h", "app?app=billing&by=bytes&span=1h", "app?app=full", "app?app=paused", "app?app=dead", "events?app=billing", "events?app=billing&kind=death", "app?app=none", "change?app=billing"}
	for id := range 17 {
		if id < 13 || id == 16 {
			views = append(views, fmt.Sprintf("shard?app=billing&shard=%s&stream=orders", key(id).Shard))
		}
	}
	f.take(t, page, views...)
	unlisted := film{} // the same with a store that cannot list applications
	unlisted.take(t, dashboard.Handler(bare{s.store}, dashboard.Options{Prefix: prefix}), "")
	f[prefix+"/?unlisted"], f[prefix+"/?unlisted=&part=1"] = unlisted[prefix+"/"], unlisted[prefix+"/?part=1"]
	return f, want
}

// Each state of a shard is shown in words and in the picture.
func TestEachStateOfAShardIsShown(t *testing.T) {
	f, want := everyState(t)
	s := openPage(t, f)
	app := ""
	for _, w := range want {
		if w.app != app {
			app = w.app
			view := "app?app=" + app
			if app == "billing" {
				view += "&span=1h"
			}
			s.goTo(chromedp.Navigate(s.url + view))
			s.until(`document.querySelectorAll(".shards a").length > 0`)
			s.picture("states-" + app)
		}
		var row, class, drawn string
		link := fmt.Sprintf(`a[href="shard?app=%s&shard=%s&stream=orders"]`, app, key(w.shard).Shard)
		s.do(chromedp.Evaluate(fmt.Sprintf(`document.querySelector('tbody %s').closest("tr").innerText.replace(/\s+/g, " ")`, link), &row),
			chromedp.Evaluate(fmt.Sprintf(`document.querySelector('tbody %s').closest("tr").querySelector(".state").className`, link), &class),
			chromedp.Evaluate(fmt.Sprintf(`(document.querySelector('.shards %s rect') || {className: {baseVal: "none"}}).className.baseVal`, link), &drawn))
		if class != "state "+w.class || drawn != w.class && w.class != "finished" {
			t.Errorf("shard %d of %s is %q in the table and %q in the picture, want %q: %s", w.shard, app, class, drawn, w.class, row)
		}
		for _, text := range w.says {
			if !contains(row, text) {
				t.Errorf("of shard %d of %s the page does not say %q: %s", w.shard, app, text, row)
			}
		}
	}
	for by, want := range map[string]string{"lag": "l0,l3,l2,l2,l4,l4,l4,l5,l5,l3,unknown,unknown,unknown", "bytes": "unknown,l0,l1,l1,unknown,unknown,l3,unknown,unknown,unknown,unknown,unknown,unknown"} {
		s.goTo(chromedp.Navigate(s.url + "app?app=billing&by=" + by + "&span=1h"))
		s.until(`document.querySelector('nav a[aria-current][href*="by=` + by + `"]') !== null && document.querySelectorAll(".swatch").length === 7`)
		var drawn string
		s.do(chromedp.Evaluate(`[...document.querySelectorAll(".shards a rect")].filter((r) => r.getAttribute("class") !== "finished").map((r) => r.getAttribute("class")).join()`, &drawn))
		if drawn != want {
			t.Errorf("by %s the shards are %s, want %s", by, drawn, want)
		}
		s.picture("by-" + by)
	}
	s.clean()
}

// look is a screen width with a colour scheme.
type look struct {
	width  int64
	colour string
}

func (s *site) as(l look) {
	s.t.Helper()
	s.do(emulation.SetDeviceMetricsOverride(l.width, 900, 1, false),
		emulation.SetEmulatedMedia().WithFeatures([]*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: l.colour}}))
}
