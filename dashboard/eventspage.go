package dashboard

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/weir-go/weir/health"
	"github.com/weir-go/weir/lease"
)

const (
	pageEvents   = 100
	latelyEvents = 3
	shardsNamed  = 6 // maximum number of shards named per event
)

type eventsPage struct {
	pageHead
	Since    time.Time
	History  time.Time // since when the history has events; zero if it has none
	Dropped  bool
	Kinds    []option
	Workers  []option
	Streams  []option // empty if there is only one stream
	Wanted   string   // the selected shard
	Filtered bool
	AllLink  string
	Count    string
	Pages    []choice
	Rows     []eventRow
}

type option struct {
	Value, Name string
	Now         bool
}

type eventRow struct {
	At             time.Time
	Minute         bool   // At is accurate to the minute
	Between, Since string // times; "" if unknown
	When           string // the time in the line of the newest events
	Kind, KindLink string
	Over           bool
	Text, Summary  string
	Shards         []choice
	More           int
	Workers        []choice
}

// eventFilter selects events. An empty field matches all events.
type eventFilter struct{ kind, stream, shard, worker string }

func (f eventFilter) wants(e event) bool {
	ofShard := func(k lease.Key) bool {
		return (f.stream == "" || k.Stream == f.stream) && (f.shard == "" || k.Shard == f.shard || shortID(k.Shard) == f.shard)
	}
	return (f.kind == "" || e.kind.Label() == f.kind) && (f.worker == "" || slices.Contains(e.workers, f.worker)) &&
		(f.stream == "" && f.shard == "" || slices.ContainsFunc(e.shards, ofShard))
}

func (f eventFilter) link(app string, page int) string {
	n := ""
	if page > 1 {
		n = strconv.Itoa(page)
	}
	return link("events", "app", app, "kind", f.kind, "stream", f.stream, "shard", f.shard, "worker", f.worker, "page", n)
}

func (h *handler) serveEvents(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	app := q.Get("app")
	s, w, ok := h.find(w, r, headOf("Events of "+app, app, appPoll))
	if !ok {
		return
	}
	if kind := q.Get("kind"); kind != "" && !slices.ContainsFunc(eventKinds[:], func(k eventWords) bool { return k.label == kind }) {
		h.missing(w, r, "There is no such kind of event.")
		return
	}
	f := eventFilter{q.Get("kind"), q.Get("stream"), q.Get("shard"), q.Get("worker")}
	p := eventsPage{pageHead: headOf("Events of "+app, app, appPoll), Since: s.told.since, History: s.told.history, Dropped: s.told.dropped, Wanted: f.shard, Filtered: f != eventFilter{}}
	p.age(s)
	p.Tabs = h.tabs(app, s, "Events")
	p.AllLink = eventFilter{}.link(app, 1)
	p.offer(f, s)
	var rows []eventRow
	for _, e := range s.told.events {
		if f.wants(e) {
			rows = append(rows, rowOf(app, f, e))
		}
	}
	page, last := pageOf(q.Get("page"), len(rows), pageEvents)
	p.Count = fmt.Sprintf("%d %s, the newest first", len(rows), plural(len(rows), "event", "events"))
	if last > 1 {
		p.Count += fmt.Sprintf("; page %d of %d", page, last)
	}
	if page > 1 {
		p.Pages = append(p.Pages, choice{"newer", f.link(app, page-1), false})
	}
	if page < last {
		p.Pages = append(p.Pages, choice{"older", f.link(app, page+1), false})
	}
	p.Rows = rows[(page-1)*pageEvents : min(page*pageEvents, len(rows))]
	h.renderOnce(w, r, s.status(), "events", s.views, func() any { return p })
}

// offer fills in the choices of the filters. They include the values that are currently selected.
func (p *eventsPage) offer(f eventFilter, s sighting) {
	for _, k := range eventKinds {
		p.Kinds = append(p.Kinds, option{k.label, k.words, k.label == f.kind})
	}
	names := []string{}
	for _, e := range s.told.events {
		names = append(names, e.workers...)
	}
	p.Workers = options(names, f.worker)
	if streams := streamsOf(s.view.Leases); len(streams) > 1 || f.stream != "" {
		p.Streams = options(streams, f.stream)
	}
}

const mostOptions = 100

func options(names []string, wanted string) (all []option) {
	slices.Sort(names)
	names = slices.Compact(names)
	names = names[:min(len(names), mostOptions)]
	if wanted != "" && !slices.Contains(names, wanted) {
		names = append(names, wanted)
	}
	for _, n := range names {
		all = append(all, option{n, n, n == wanted})
	}
	return all
}

// pageOf returns the number of the page to show for n items, and the number of the last page. If
// the wanted number is invalid, the page is the first.
func pageOf(wanted string, n, size int) (page, last int) {
	last = max(1, (n+size-1)/size)
	page, err := strconv.Atoi(wanted)
	if err != nil || page < 1 || page > last {
		page = 1
	}
	return page, last
}

func rowOf(app string, f eventFilter, e event) eventRow {
	row := eventRow{At: e.at, Minute: e.past, Kind: e.kind.String(), Over: e.over, Text: e.text}
	if e.at.Sub(e.after) > gapTold && !e.past {
		row.Between = e.after.UTC().Format("15:04:05")
		if e.at.Sub(e.after) > 20*time.Hour {
			row.Between = e.after.UTC().Format("2006-01-02 15:04:05")
		}
	}
	if !e.since.IsZero() && e.at.Sub(e.since) >= time.Second {
		row.Since = e.since.UTC().Format("15:04:05")
		if e.at.Sub(e.since) > 20*time.Hour {
			row.Since = e.since.UTC().Format("2006-01-02 15:04:05")
		}
	}
	row.KindLink = eventFilter{e.kind.Label(), f.stream, f.shard, f.worker}.link(app, 1)
	for _, k := range e.shards[:min(len(e.shards), shardsNamed)] {
		row.Shards = append(row.Shards, choice{Name: shortID(k.Shard), Link: link("shard", "app", app, "stream", k.Stream, "shard", k.Shard)})
	}
	row.More = len(e.shards) - len(row.Shards)
	for _, w := range e.workers {
		row.Workers = append(row.Workers, choice{Name: w, Link: eventFilter{f.kind, f.stream, f.shard, w}.link(app, 1)})
	}
	row.Summary = clean(e.text)
	switch n := len(e.shards); {
	case e.named:
	case n == 1:
		row.Summary = "shard " + clean(shortID(e.shards[0].Shard)) + ": " + row.Summary
	case n > 1:
		row.Summary = fmt.Sprintf("%d shards: %s", n, row.Summary)
	}
	return row
}

// when formats a time, with its date unless it is less than 20 hours ago.
func when(t, now time.Time) string {
	if now.Sub(t) > 20*time.Hour {
		return t.UTC().Format("2006-01-02 15:04:05") + " UTC"
	}
	return t.UTC().Format("15:04:05") + " UTC"
}

// lately returns the newest events of the log.
func lately(app string, l eventLog, now time.Time) (rows []eventRow) {
	for _, e := range l.events[:min(len(l.events), latelyEvents)] {
		row := rowOf(app, eventFilter{}, e)
		// The page shows the present errors elsewhere.
		row.Summary, _, _ = strings.Cut(row.Summary, lastError)
		// The time of the other states is when their lag began, and not when the state did.
		row.When = "at " + when(e.at, now)
		for _, state := range []health.State{health.Stalled, health.Unread, health.Idle} {
			if strings.HasPrefix(e.text, state.String()) && !e.since.IsZero() {
				row.When = "since " + when(e.since, now)
			}
		}
		rows = append(rows, row)
	}
	return rows
}
