package dead

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/weir-go/weir/cmd/weir/internal/cli"
	"github.com/weir-go/weir/cmd/weir/internal/explain"
	"github.com/weir-go/weir/cmd/weir/internal/figures"
	"github.com/weir-go/weir/deadletter"
	"github.com/weir-go/weir/internal/lettertext"
)

// errorGroup contains the dead letters of one application with the same reason and similar errors.
type errorGroup struct {
	app    string
	reason deadletter.Reason
	error  string // of the newest dead letter
	items  []*deadletter.Item
}

// groups returns dead letters by application, reason and error, the largest group first. The items
// of a group begin with the newest.
func groups(items []deadletter.Item) []errorGroup {
	type key struct{ app, reason, shape string }
	at := map[key]int{}
	var all []errorGroup
	for n := range items {
		i := &items[n]
		k := key{i.App, string(i.Reason), lettertext.Shape(i.Error)}
		if _, known := at[k]; !known {
			at[k] = len(all)
			all = append(all, errorGroup{app: i.App, reason: i.Reason})
		}
		g := &all[at[k]]
		g.items = append(g.items, i)
	}
	for n := range all {
		g := &all[n]
		slices.SortStableFunc(g.items, func(a, b *deadletter.Item) int { return b.GivenUp.Compare(a.GivenUp) })
		g.error = g.items[0].Error
	}
	slices.SortStableFunc(all, func(a, b errorGroup) int {
		return cmp.Or(cmp.Compare(len(b.items), len(a.items)), b.items[0].GivenUp.Compare(a.items[0].GivenUp))
	})
	return all
}

// shownEach is the number of dead letters of a group that are shown.
const shownEach = 3

// groupsText formats dead letters by error. It omits keys and payloads, because they may contain
// personal data. each is true if all dead letters of a group are shown.
func groupsText(items []deadletter.Item, each bool, now time.Time) string {
	if len(items) == 0 {
		return "No dead letters.\n"
	}
	var b bytes.Buffer
	all := groups(items)
	_ = cli.Textf(&b, "%s, %s.\n", cli.Count(len(items), "dead letter"), cli.Count(len(all), "error"))
	for _, g := range all {
		newest, oldest := ago(g.items[0], now), ago(g.items[len(g.items)-1], now)
		if oldest != newest {
			newest = oldest + " to " + newest
		}
		app := ""
		if g.app != "" {
			app = " in application " + g.app
		}
		_ = cli.Textf(&b, "\n%s%s, %s, %s ago:\n", cli.Count(len(g.items), "time"), app, string(g.reason), newest)
		for _, line := range cli.Lines(cmp.Or(cli.Visible(explain.OneLine(g.error)), "no error"), cli.HelpColumns-2) {
			b.WriteString("  " + line + "\n")
		}
		shown := g.items
		if !each {
			shown = shown[:min(len(shown), shownEach)]
		}
		for _, i := range shown {
			_ = cli.Textf(&b, "    %s  %s, %s, %s\n      %s\n", i.GivenUp.UTC().Format(time.RFC3339), string(i.State),
				cli.Count(i.Attempts, "attempt"), figures.Bytes(int64(len(i.Data))), i.ID)
		}
		if more := len(g.items) - len(shown); more > 0 {
			fmt.Fprintf(&b, "    and %s more: --each shows them\n", figures.Count(more))
		}
	}
	return b.String()
}

// ago returns how long ago a record was dead-lettered.
func ago(i *deadletter.Item, now time.Time) string {
	return figures.Duration(max(now.Sub(i.GivenUp), 0).Round(time.Second))
}

// lettersText formats dead letters as a table. The table omits keys and payloads, because they may
// contain personal data.
func lettersText(items []deadletter.Item) string {
	if len(items) == 0 {
		return "No dead letters.\n"
	}
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "DEAD-LETTERED\tAPP\tSTATE\tREASON\tATTEMPTS\tBYTES\tERROR\tID")
	for _, i := range items {
		_ = cli.Textf(w, "%s\t%s\t%s\t%s\t%d\t%d\t%s\t%s\n", i.GivenUp.UTC().Format(time.RFC3339), i.App, i.State, i.Reason, i.Attempts, len(i.Data), shortened(i.Error), i.ID)
	}
	_ = w.Flush() // cannot fail: it writes to memory
	return b.String()
}

// shortened cuts an error to a length that fits into a line.
func shortened(s string) string {
	if r := []rune(s); len(r) > 60 {
		return string(r[:59]) + "…"
	}
	return s
}
