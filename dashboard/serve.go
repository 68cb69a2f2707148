package dashboard

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/weir-go/weir/internal/errtext"
	"github.com/weir-go/weir/internal/guard"
	"github.com/weir-go/weir/lease"
	"github.com/weir-go/weir/shard"
)

// Limits that keep the first view of a page small.
const (
	pageRows    = 60
	pageApps    = 100
	pageWorkers = 30
	appsPoll    = 5 * time.Second
	appPoll     = 2 * time.Second
	looksAtOnce = 8
)

func headOf(title, app string, poll time.Duration) pageHead {
	return pageHead{Title: title, App: app, AppLink: link("app", "app", app), Now: time.Now(), Poll: poll.Milliseconds()}
}

// age sets the time of the data, and adds a warning to the head of a page if the store or Kinesis
// does not answer.
func (h *pageHead) age(s sighting) {
	if !s.at.IsZero() {
		h.Now = s.at
	}
	clock := func(t time.Time) string { return t.UTC().Format("15:04:05") + " UTC" }
	switch {
	case s.err != nil:
		h.Down = storeDown(s.err, s.failed)
		if !s.at.IsZero() {
			h.Down.Still = "This page shows the state at " + clock(s.at) + ". " + h.Down.Still
		}
	case !s.blind.IsZero():
		h.Down = down{
			What: "Kinesis", Since: clock(s.blind), Why: errtext.Short(s.lagErr.Error()),
			Answers: errtext.Answered(s.lagErr.Error()),
			Still: "Owners, workers and checkpoints are current, because they come from the store. " +
				"Lags are not known.",
		}
	}
}

// status returns the HTTP status of a page with this read.
func (s sighting) status() int { return down{store: s.err != nil}.status() }

// status returns the HTTP status of a page. The status must show monitoring tools that the store
// does not answer.
func (d down) status() int {
	if d.store {
		return http.StatusServiceUnavailable
	}
	return http.StatusOK
}

// storeDown describes a store that does not answer.
func storeDown(err error, since time.Time) down {
	return down{
		What: "The store", Since: since.UTC().Format("15:04:05") + " UTC", Why: errtext.Short(err.Error()),
		Still: "The state of the applications is unknown now. Workers handle records for as long " +
			"as the store's last answer to them is valid. Then they wait, and continue when it answers. " +
			"No lease moves meanwhile, and nothing can be changed.",
		store: true,
	}
}

type appsPage struct {
	pageHead
	Apps       []application
	More       int
	CannotList string
	Queues     queueSection
}

func (h *handler) serveApps(w http.ResponseWriter, r *http.Request) {
	p := appsPage{pageHead: headOf("Applications", "", appsPoll)}
	w = h.sendShell(w, r, p.pageHead, h.appsAtHand())
	names, err := h.observer.list(r.Context())
	switch {
	case r.Context().Err() != nil:
		return
	case errors.Is(err, errCannotList):
		p.CannotList = "This store cannot list its applications. Open one by its name."
	case err != nil:
		p.Down = storeDown(err, h.observer.failedSince())
	}
	if p.Queues = h.queueRows(r.Context()); r.Context().Err() != nil {
		return
	}
	p.More = max(0, len(names)-pageApps)
	if p.Apps, err = h.lookAtAll(r.Context(), names[:len(names)-p.More]); err != nil {
		return
	}
	for i := range p.Apps {
		if seen := p.Apps[i].Seen; i == 0 && !seen.IsZero() || seen.After(p.Now) {
			p.Now = seen // the time of the newest data
		}
	}
	for i := range p.Apps { // the list of applications may be known from before
		if a := &p.Apps[i]; a.Trouble != nil && p.Down == (down{}) {
			p.Down = storeDown(a.Trouble, a.Failed)
		}
	}
	slices.SortStableFunc(p.Apps, func(a, b application) int {
		return cmp.Or(-boolCompare(a.Trouble != nil, b.Trouble != nil), cmp.Compare(b.State, a.State), cmp.Compare(b.Worst, a.Worst), cmp.Compare(a.Name, b.Name))
	})
	h.renderOnce(w, r, p.Down.status(), "apps", &kept{}, func() any { return p })
}

// appsAtHand reports whether the list of applications needs no slow reads.
func (h *handler) appsAtHand() bool {
	names, atHand := h.observer.listAtHand()
	return atHand && !slices.ContainsFunc(names[:min(len(names), pageApps)], func(name string) bool {
		return !h.observer.atHand(name, appsPoll)
	})
}

func boolCompare(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return 1
	}
	return -1
}

// lookAtAll reads the named applications. It returns an error only if ctx ends.
func (h *handler) lookAtAll(ctx context.Context, names []string) ([]application, error) {
	all := make([]application, len(names))
	errs := make([]error, len(names))
	var looks sync.WaitGroup
	turns := make(chan struct{}, looksAtOnce)
	for i, name := range names {
		turns <- struct{}{}
		looks.Go(func() {
			defer func() { <-turns }()
			var s sighting
			errs[i] = guard.Call(func() (err error) { s, err = h.observer.look(ctx, name, appsPoll); return err })
			if errs[i] == nil {
				all[i] = assess(name, s, time.Now())
			}
		})
	}
	looks.Wait()
	return all, cmp.Or(errs...)
}

type appPage struct {
	pageHead
	Change      string // a link
	Letters     string
	It          application
	NoLags      string
	Streams     []choice
	Stream      string
	Spans       []choice
	Metrics     []choice
	Picture     *drawing
	Missing     string
	Count       string
	Pages       []choice
	PastMissing string
	Pick        rowPick
	View        view
	AllRows     string // a link to the table without folded rows, "" if it is shown
	Rows        []shardRow
	Most        string // what the column of additional data shows, or ""
	Keys, All   string // the range of hash keys that is shown, and a link to all keys; both are "" if all keys are shown
	Workers     []workerRow
	MoreWorkers int
	Died        []death
	MoreDied    int
	EventsLink  string
	Lately      []eventRow
}

type workerRow struct {
	workerInfo
	Every       time.Duration
	OwnTroubles []lease.Trouble
}

func (h *handler) serveApp(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	app := q.Get("app")
	s, w, ok := h.find(w, r, headOf(app, app, appPoll))
	if !ok {
		return
	}
	keys := everything
	if text := q.Get("keys"); text != "" {
		start, end, _ := strings.Cut(text, "-")
		var err error
		if keys, err = shard.ParseHashRange(start, end); err != nil {
			h.missing(w, r, "These are not hash keys: "+err.Error())
			return
		}
	}
	h.renderOnce(w, r, s.status(), "app", s.views, func() any { return h.appPage(q, app, keys, s) })
}

// appPage returns the data of the page of an application.
func (h *handler) appPage(q url.Values, app string, keys shard.HashRange, s sighting) appPage {
	p := appPage{pageHead: headOf(app, app, appPoll)}
	p.age(s)
	p.It = assess(app, s, p.Now)
	p.Change, p.Letters = h.changeLink(app, lease.Key{}), h.lettersLink(app, lease.Key{})
	if h.opts.Lags == nil {
		p.NoLags = "Without access to Kinesis the page does not know whether records wait. It shows the owner of each shard and the age of each checkpoint."
	}
	p.Stream = q.Get("stream")
	if !slices.Contains(p.It.Streams, p.Stream) && len(p.It.Streams) > 0 {
		p.Stream = p.It.Shards[0].Stream // the stream of the worst shard
	}
	v := view{app: app, stream: p.Stream, span: q.Get("span"), by: q.Get("by"), keys: everything}
	for _, name := range p.It.Streams[:min(len(p.It.Streams), 50)] {
		other := v
		other.stream = name
		p.Streams = append(p.Streams, choice{name, other.link(), name == p.Stream})
	}
	if keys != everything {
		p.All = v.link()
		v.keys, p.Keys = keys, keys.String()
	}
	shards := make([]shardInfo, 0, len(p.It.Shards))
	for _, of := range p.It.Shards {
		if of.Stream == p.Stream {
			shards = append(shards, of)
		}
	}
	shards = v.within(shards)
	p.draw(v, shards, s)
	p.list(v, shards, pickOf(q), s.past)
	p.showPast(v, shards, s.past)
	for _, of := range p.It.Workers {
		row := workerRow{workerInfo: of, Every: of.Times.Or(lease.DefaultTimes).Heartbeat}
		for _, t := range of.Troubles {
			if t.Key == (lease.Key{}) && s.group.Lives(of.Session) {
				row.OwnTroubles = append(row.OwnTroubles, t)
			}
		}
		p.Workers = append(p.Workers, row)
	}
	p.Tabs, p.Died = h.tabs(app, s, "Shards"), s.died()
	p.MoreDied = max(0, len(p.Died)-pageWorkers)
	p.Died = p.Died[:len(p.Died)-p.MoreDied]
	p.EventsLink, p.Lately = link("events", "app", app), lately(app, s.told, p.Now)
	p.MoreWorkers = max(0, len(p.Workers)-pageWorkers)
	p.Workers = p.Workers[:len(p.Workers)-p.MoreWorkers]
	return p
}

// find reads the application of a page. It returns the writer for the answer, because the shell of
// the page may be sent already. If the application does not exist, find sends the answer itself and
// returns false.
func (h *handler) find(w http.ResponseWriter, r *http.Request, head pageHead) (sighting, http.ResponseWriter, bool) {
	app := head.App
	if err := lease.CheckApp(app); err != nil {
		h.missing(w, r, "This is not the name of an application: "+err.Error())
		return sighting{}, w, false
	}
	w = h.sendShell(w, r, head, h.observer.atHand(app, time.Second))
	s, err := h.observer.look(r.Context(), app, time.Second)
	if err != nil {
		return s, w, false // the client has disconnected
	}
	if s.err == nil && len(s.view.Leases)+len(s.view.Workers)+len(s.view.Paused) == 0 {
		h.missing(w, r, "The store has no application with this name.")
		return s, w, false
	}
	return s, w, true
}

type missingPage struct {
	pageHead
	Text string
}

func (h *handler) missing(w http.ResponseWriter, r *http.Request, text string) {
	h.render(w, r, http.StatusNotFound, "missing", missingPage{headOf("Nothing to show", "", appsPoll), text})
}

// spans contains the time ranges that a picture can have.
var spans = []struct {
	name string
	of   time.Duration
}{
	{"1m", time.Minute}, {"5m", 5 * time.Minute}, {"15m", 15 * time.Minute}, {"1h", time.Hour}, {"6h", 6 * time.Hour},
	{"24h", 24 * time.Hour}, {"2d", 48 * time.Hour}, {"7d", 7 * 24 * time.Hour},
}

// spanFor returns the shortest time range that shows the last change of the shards and the lag of
// the worst shard.
func spanFor(shards []shardInfo, now time.Time) time.Duration {
	needs := time.Duration(0)
	changed := time.Time{}
	for _, of := range shards {
		for _, t := range []time.Time{of.Opened, of.Closed} {
			if t.After(changed) {
				changed = t
			}
		}
		if of.LagKnown {
			needs = max(needs, of.Lag+of.Lag/4)
		}
	}
	if !changed.IsZero() {
		needs = max(needs, now.Sub(changed)*3/2)
	}
	for _, s := range spans {
		if s.of >= needs {
			return s.of
		}
	}
	return spans[len(spans)-1].of
}

func (p *appPage) draw(v view, shards []shardInfo, s sighting) {
	span := spanFor(shards, p.Now)
	with := func(name string) string {
		other := v
		other.span = name
		return other.link()
	}
	p.Spans = append(p.Spans, choice{"as fits", with(""), true})
	for _, c := range spans {
		if c.name == v.span {
			span, p.Spans[0].Now = c.of, false
		}
		p.Spans = append(p.Spans, choice{c.name, with(c.name), c.name == v.span})
	}
	by := v
	by.by = ""
	p.Metrics = append(p.Metrics, choice{"state", by.link(), metricOf(v.by) == nil})
	for _, m := range metrics {
		if m.reported != nil && len(s.past.shards) == 0 {
			continue
		}
		by.by = m.label
		p.Metrics = append(p.Metrics, choice{m.words, by.link(), m.label == v.by})
	}
	// A picture moves in steps of a thousandth of its width. Between two steps it does not change,
	// so the answer to a browser that has it is 304.
	to := p.Now.Truncate(span / 1000)
	p.Picture = drawShards(v, shards, to.Add(-span), to, s.streams[p.Stream].retention)
	unplaced, unranged := 0, 0
	for _, of := range shards {
		switch {
		case of.Unplaced:
			unplaced++
		case of.Range.End.Compare(of.Range.Start) <= 0:
			unranged++
		}
	}
	if unplaced > 0 {
		p.Missing = fmt.Sprintf("%d finished %s not drawn, because the time when %s closed is unknown. ", unplaced, plural(unplaced, "shard is", "shards are"), plural(unplaced, "it was", "they were"))
	}
	if unranged > 0 {
		p.Missing += fmt.Sprintf("%d %s not drawn, because the hash keys are unknown.", unranged, plural(unranged, "shard is", "shards are"))
	}
}

type shardPage struct {
	pageHead
	Of      shardInfo
	Change  string // a link
	Letters string
	Past    shardPast
	Lineage []relative
	// Troubles contains the problems of the lease, including those that its worker reported.
	Troubles []lease.Trouble
	Deaths   string

	EventsLink string
}

type relative struct{ How, Name, Link string }

func (h *handler) serveShard(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	app, key := q.Get("app"), lease.Key{Stream: q.Get("stream"), Shard: q.Get("shard")}
	head := headOf("Shard "+shortID(key.Shard), app, appPoll)
	s, w, ok := h.find(w, r, head)
	if !ok {
		return
	}
	head.age(s)
	it := assess(app, s, head.Now)
	at := slices.IndexFunc(it.Shards, func(of shardInfo) bool { return of.Key == key })
	if at < 0 {
		h.missing(w, r, "The application has no lease for this shard. It may have left the stream.")
		return
	}
	p := shardPage{pageHead: head, Of: it.Shards[at], Troubles: it.Shards[at].Troubles}
	p.Past = s.past.shardPast(key)
	p.Shard = shortID(key.Shard)
	p.Change, p.Letters = h.changeLink(app, key), h.lettersLink(app, key)
	p.AppLink = link("app", "app", app, "stream", key.Stream)
	p.EventsLink = link("events", "app", app, "stream", key.Stream, "shard", shortID(key.Shard))
	related := func(how string, ids []string) {
		for _, id := range ids {
			p.Lineage = append(p.Lineage, relative{how, shortID(id), link("shard", "app", app, "stream", key.Stream, "shard", id)})
		}
	}
	related(p.Of.came(), p.Of.Parents)
	related(p.Of.became(), p.Of.Children)
	if d := p.Of.DeathsHere(); d.Count > 0 {
		p.Deaths = fmt.Sprintf("%d workers died at its checkpoint, one after the other", d.Count)
	}
	h.renderOnce(w, r, s.status(), "shard", s.views, func() any { return p })
}
