package page_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"github.com/weir-go/weir/dashboard"
	"github.com/weir-go/weir/internal/proof/integration/servers"
	"github.com/weir-go/weir/store/memstore"
)

func contains(text, part string) bool { return strings.Contains(text, part) }

// fault is a finding of axe.
type fault struct {
	ID, Impact, Help string
	Nodes            []struct{ HTML, FailureSummary string }
}

// faults runs axe on the page. The browser's protocol injects the script, so the content security
// policy of the page need not allow it.
func (s *site) faults(script string) (found []fault) {
	s.t.Helper()
	s.do(chromedp.Evaluate(script+"; true", nil), chromedp.Evaluate(
		`axe.run(document, {preload: false, resultTypes: ["violations"]}).then((r) => r.violations.map((v) =>
			({ID: v.id, Impact: v.impact, Help: v.help, Nodes: v.nodes.slice(0, 5).map((n) => ({HTML: n.html, FailureSummary: n.failureSummary}))})))`,
		&found, func(p *runtime.EvaluateParams) *runtime.EvaluateParams { return p.WithAwaitPromise(true) }))
	return found
}

// tooWide returns the parts of the page that reach beyond its right edge, and are not inside of a
// part that scrolls.
func (s *site) tooWide() (parts []string) {
	s.t.Helper()
	s.do(chromedp.Evaluate(`[...document.querySelectorAll("body *")].filter((e) => {
		for (let p = e.parentElement; p !== null; p = p.parentElement) {
			if (["auto", "scroll", "hidden"].includes(getComputedStyle(p).overflowX)) return false;
		}
		return e.getBoundingClientRect().right > document.documentElement.clientWidth;
	}).slice(0, 5).map((e) => e.outerHTML.slice(0, 200))`, &parts))
	return parts
}

func TestFaultsAreFound(t *testing.T) {
	script := servers.Axe(t)
	s := openPage(t, dashboard.Handler(memstore.New(), dashboard.Options{Prefix: prefix}))
	s.goTo(chromedp.Navigate(s.url))
	s.do(chromedp.Evaluate(`document.getElementById("view").innerHTML = '<img src="data:,"><p>text</p>'; document.querySelector("#view p").style.color = "#bbb"; true`, nil))
	var found []string
	for _, of := range s.faults(script) {
		found = append(found, of.ID)
	}
	for _, want := range []string{"image-alt", "page-has-heading-one", "color-contrast"} {
		if !slices.Contains(found, want) {
			t.Errorf("found %q, want %s among them", found, want)
		}
	}
}

func TestNoViewHasAFaultOfAccessibility(t *testing.T) {
	script := servers.Axe(t)
	f, _ := everyState(t)
	s := openPage(t, f)
	views := map[string]string{
		"applications": "", "unlisted": "?unlisted", "application": "app?app=billing", "shard": "shard?app=billing&shard=" + key(4).Shard + "&stream=orders",
		"by-lag": "app?app=billing&by=lag&span=1h", "events": "events?app=billing", "events-filtered": "events?app=billing&kind=death", "missing": "app?app=none", "change": "change?app=billing",
	}
	for name, view := range views {
		for _, l := range []look{{1200, "light"}, {1200, "dark"}, {390, "light"}, {390, "dark"}} {
			as := fmt.Sprintf("%s-%s-%d", name, l.colour, l.width)
			s.as(l)
			s.goTo(chromedp.Navigate(s.url + view))
			s.until(`document.readyState === "complete" && document.querySelector("h1") !== null`)
			for _, of := range s.faults(script) {
				for _, n := range of.Nodes {
					t.Errorf("%s: %s (%s): %s\n%s\n%s", as, of.ID, of.Impact, of.Help, n.HTML, n.FailureSummary)
				}
			}
			if got := s.number(`document.documentElement.scrollWidth`); got > int(l.width) {
				t.Errorf("%s: the page is %d wide; parts beyond its edge are %q", as, got, s.tooWide())
			}
			s.picture(as)
		}
	}
}
