package dashboard_test

import (
	"bytes"
	"context"
	"errors"
	"html"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weir-go/weir/dashboard"
	"github.com/weir-go/weir/internal/dump"
	"github.com/weir-go/weir/kinesistest"
	"github.com/weir-go/weir/lease"
	"github.com/weir-go/weir/shard"
	"github.com/weir-go/weir/store/memstore"
)

// desk is a page that allows changes. It keeps the log and the saved progress.
type desk struct {
	t        *testing.T
	h        http.Handler
	store    lease.Store
	log      *bytes.Buffer
	mu       sync.Mutex
	asked    []dashboard.Action // guarded by mu
	refuses  error
	saved    [][]byte
	unsaving error
}

func sit(t *testing.T, store lease.Store, o dashboard.Options) *desk {
	d := &desk{t: t, store: store, log: &bytes.Buffer{}}
	o.Authorize = func(_ *http.Request, a dashboard.Action) error {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.asked = append(d.asked, a)
		return d.refuses
	}
	o.User = func(r *http.Request) string { return r.Header.Get("X-User") }
	o.Logger = slog.New(slog.NewTextHandler(d.log, nil))
	o.SaveProgress = func(_ context.Context, _ string, progress []byte) (string, error) {
		d.saved = append(d.saved, progress)
		return "safe-place", d.unsaving
	}
	d.h = dashboard.Handler(store, o)
	return d
}

var (
	formsOf = regexp.MustCompile(`(?s)<form [^>]*action="write" method="post">(.*?)</form>`)
	inputOf = regexp.MustCompile(`<input type="hidden" name="([^"]*)" value="([^"]*)">`)
)

// forms returns the forms of a page with the values that a browser without scripts would send.
func (d *desk) forms(page string) (all []url.Values) {
	d.t.Helper()
	for _, f := range formsOf.FindAllStringSubmatch(shown(d.t, d.h, page), -1) {
		values := url.Values{}
		for _, in := range inputOf.FindAllStringSubmatch(f[1], -1) {
			values.Add(in[1], strings.ReplaceAll(html.UnescapeString(in[2]), "\n", "\r\n"))
		}
		all = append(all, values)
	}
	return all
}

// form returns the first form of a page that has the given action and field value.
func (d *desk) form(page, do, key, value string) url.Values {
	d.t.Helper()
	for _, f := range d.forms(page) {
		if f.Get("do") == do && f.Get(key) == value {
			return f
		}
	}
	d.t.Fatalf("%s has no form for %s of %s %q", page, do, key, value)
	return nil
}

// send posts a form like a browser. headers contains names and values in turn. An empty value
// removes the header.
func (d *desk) send(form url.Values, headers ...string) *httptest.ResponseRecorder {
	d.t.Helper()
	r := httptest.NewRequestWithContext(d.t.Context(), http.MethodPost, "/write", strings.NewReader(form.Encode()))
	r.Host = "localhost:4568"
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set("Sec-Fetch-Site", "same-origin")
	for i := 0; i+1 < len(headers); i += 2 {
		switch name, value := headers[i], headers[i+1]; {
		case name == "Host":
			r.Host = value
		case value == "":
			r.Header.Del(name)
		default:
			r.Header.Set(name, value)
		}
	}
	w := httptest.NewRecorder()
	d.h.ServeHTTP(w, r)
	return w
}

// sends posts a form and checks the answer.
func (d *desk) sends(form url.Values, status int, says string, headers ...string) {
	d.t.Helper()
	w := d.send(form, headers...)
	if body := html.UnescapeString(w.Body.String()); w.Code != status || !strings.Contains(body, says) {
		d.t.Errorf("%v: %d, want %d with %q:\n%s", form, w.Code, status, says, body)
	}
}

func (d *desk) view() lease.View {
	d.t.Helper()
	v, err := d.store.View(d.t.Context(), "billing", "")
	if err != nil {
		d.t.Fatal(err)
	}
	return v
}

func (d *desk) apply(actions ...lease.Action) {
	d.t.Helper()
	if did, err := d.store.Apply(d.t.Context(), "billing", actions); err != nil || slices.Contains(did, false) {
		d.t.Fatalf("%v, %v", did, err)
	}
}

func key(id string) lease.Key { return lease.Key{Stream: "orders", Shard: id} }

func TestPauseAndResume(t *testing.T) {
	t.Parallel()
	store := memstore.New()
	fill(t, store, "billing", 2)
	d := sit(t, store, dashboard.Options{})
	shown(t, d.h, "/app?app=billing", `<a href="change?app=billing">`)
	shown(t, d.h, "/shard?app=billing&stream=orders&shard=shardId-000000000001", `<a href="change?app=billing&amp;shard=shardId-000000000001&amp;stream=orders">`)
	d.sends(d.form("/change?app=billing", "pause", "stream", "orders"), http.StatusOK, "Stream orders is paused", "X-User", "ann")
	if p := d.view().Paused; !slices.Equal(p, []string{"orders"}) {
		t.Errorf("paused is %q", p)
	}
	d.sends(d.form("/change?app=billing", "pause", "stream", ""), http.StatusOK, "The whole application is paused")
	d.apply(lease.Action{Kind: lease.Pause, Stream: "orders"})
	d.sends(d.form("/change?app=billing", "resume", "stream", ""), http.StatusOK, "no longer paused")
	if p := d.view().Paused; len(p) != 0 {
		t.Errorf("paused is %q", p)
	}
	if log := d.log.String(); !strings.Contains(log, `level=INFO msg="page: changed" action=pause app=billing stream=orders user=ann remote=192.0.2.1:1234 did="Stream orders is paused`) {
		t.Errorf("the log is %s", log)
	}
}

func TestDrainAndItsEnd(t *testing.T) {
	t.Parallel()
	store := memstore.New()
	fill(t, store, "billing", 2)
	d := sit(t, store, dashboard.Options{})
	form := d.form("/change?app=billing", "drain", "worker", "s1")
	d.sends(form, http.StatusOK, "No other worker takes leases")
	if !d.view().Workers[0].Drain {
		t.Error("it is not drained")
	}
	d.sends(form, http.StatusConflict, "worker-1 is being drained now")
	d.sends(d.form("/change?app=billing", "end-drain", "worker", "s1"), http.StatusOK, "takes leases again")
	if d.view().Workers[0].Drain {
		t.Error("it is still drained")
	}
	d.apply(lease.Action{Kind: lease.EndSession, Session: "s1", Heartbeats: d.view().Workers[0].Heartbeats})
	d.sends(form, http.StatusConflict, "has ended since")
}

func TestWhoMayNotChangesNothing(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		headers []string
		refuses error
		change  func(url.Values)
		status  int
		says    string
		asked   bool // Authorize was called
	}{
		"refused by the program":            {refuses: errors.New("not <you>"), status: http.StatusForbidden, says: "not <you>", asked: true},
		"from another site":                 {headers: []string{"Sec-Fetch-Site", "cross-site"}, status: http.StatusForbidden, says: "cross-origin"},
		"from a neighbour's site":           {headers: []string{"Sec-Fetch-Site", "same-site"}, status: http.StatusForbidden, says: "cross-origin"},
		"typed in":                          {headers: []string{"Sec-Fetch-Site", "none"}, status: http.StatusForbidden, says: "Neither Sec-Fetch-Site nor Origin proves"},
		"from another origin":               {headers: []string{"Sec-Fetch-Site", "", "Origin", "http://evil.example"}, status: http.StatusForbidden, says: "cross-origin"},
		"from an opaque origin":             {headers: []string{"Sec-Fetch-Site", "", "Origin", "null"}, status: http.StatusForbidden, says: "cross-origin"},
		"from nowhere":                      {headers: []string{"Sec-Fetch-Site", ""}, status: http.StatusForbidden, says: "Neither Sec-Fetch-Site nor Origin proves"},
		"under a name that it was not told": {headers: []string{"Host", "evil.example"}, status: http.StatusForbidden, says: "and not from \"evil.example\""},
		"without a Host":                    {headers: []string{"Host", ""}, status: http.StatusForbidden, says: "and not from"},
		"in another encoding":               {headers: []string{"Content-Type", "multipart/form-data; boundary=x"}, status: http.StatusBadRequest, says: "not the name of an application"},
		"of what there is not":              {change: func(f url.Values) { f.Set("do", "explode") }, status: http.StatusBadRequest, says: "There is no action"},
		"of no application":                 {change: func(f url.Values) { f.Set("app", "") }, status: http.StatusBadRequest, says: "not the name of an application"},
		"of another one":                    {change: func(f url.Values) { f.Set("app", "other") }, status: http.StatusNotFound, says: "no application with this name", asked: true},
		"of a stream without leases":        {change: func(f url.Values) { f.Set("stream", "others") }, status: http.StatusConflict, says: "no leases of a stream others", asked: true},
		"of what was not seen":              {change: func(f url.Values) { f.Del("seen"); f.Set("seen", "orders;") }, status: http.StatusConflict, says: "nothing is paused now", asked: true},
		"of a name that is too long":        {change: func(f url.Values) { f.Set("stream", strings.Repeat("x", 300)) }, status: http.StatusBadRequest, says: "which is too long"},
		"in a form that is too long":        {change: func(f url.Values) { f.Set("seen", strings.Repeat("x", 5<<20)) }, status: http.StatusBadRequest, says: "cannot be read"},
		"of a worker without a name":        {change: func(f url.Values) { f.Set("do", "drain") }, status: http.StatusBadRequest, says: "names no worker"},
	} {
		t.Run(name, func(t *testing.T) {
			store := memstore.New()
			fill(t, store, "billing", 1)
			d := sit(t, store, dashboard.Options{Hosts: []string{"tools.example"}})
			d.refuses = c.refuses
			form := d.form("/change?app=billing", "pause", "stream", "")
			if c.change != nil {
				c.change(form)
			}
			d.sends(form, c.status, c.says, c.headers...)
			if p := d.view().Paused; len(p) != 0 || (len(d.asked) > 0) != c.asked {
				t.Errorf("paused is %q, the program was asked %v", p, d.asked)
			}
			if strings.Contains(d.send(form, c.headers...).Body.String(), "<you>") {
				t.Error("an error is not escaped")
			}
			if !strings.Contains(d.log.String(), "level=WARN msg=\"page: a change was refused\"") {
				t.Errorf("the log is %s", d.log)
			}
		})
	}
}

func TestWhereAWriteMayComeFrom(t *testing.T) {
	t.Parallel()
	store := memstore.New()
	fill(t, store, "billing", 1)
	d := sit(t, store, dashboard.Options{Hosts: []string{"tools.example"}})
	for _, headers := range [][]string{
		{}, {"Host", "127.0.0.1:4568"}, {"Host", "tools.example"},
		// These are the headers over plain HTTP to another machine.
		{"Sec-Fetch-Site", "", "Origin", "http://localhost:4568"},
		{"Host", "tools.example:8080", "Sec-Fetch-Site", "", "Origin", "http://tools.example:8080"},
	} {
		do := "pause"
		if len(d.view().Paused) > 0 {
			do = "resume"
		}
		d.sends(d.form("/change?app=billing", do, "stream", ""), http.StatusOK, "Done", headers...)
	}
}

func TestWithoutAuthorizeNothingIsChanged(t *testing.T) {
	t.Parallel()
	store := memstore.New()
	fill(t, store, "billing", 1)
	form := sit(t, store, dashboard.Options{}).form("/change?app=billing", "pause", "stream", "")
	d := sit(t, store, dashboard.Options{})
	d.h = dashboard.Handler(store, dashboard.Options{Logger: slog.New(slog.NewTextHandler(d.log, nil))})
	d.sends(form, http.StatusForbidden, "This page is read-only")
	for _, page := range []string{"/change?app=billing", "/reset?app=billing&to=oldest"} {
		if w := answer(t, d.h, http.MethodGet, page); w.Code != http.StatusForbidden || !strings.Contains(w.Body.String(), "This page is read-only") {
			t.Errorf("%s: %d %s", page, w.Code, w.Body)
		}
	}
	if body := shown(t, d.h, "/app?app=billing"); strings.Contains(body, "change?") || len(d.view().Paused) > 0 {
		t.Errorf("paused is %q; the page is %s", d.view().Paused, body)
	}
	if w := answer(t, d.h, http.MethodGet, "/write?do=pause&app=billing"); w.Code != http.StatusSeeOther || w.Header().Get("Location") != "./" || len(d.view().Paused) > 0 {
		t.Errorf("GET: %d to %q; paused is %q", w.Code, w.Header().Get("Location"), d.view().Paused)
	}
}

// rewind returns a page for an application whose worker has ended. The worker held two shards. The
// stream has a third shard, which has no lease.
func rewind(t *testing.T, o dashboard.Options) (*desk, *kinesistest.Server) {
	t.Helper()
	server := kinesistest.NewServer(t)
	server.CreateStream("orders", 3)
	store := memstore.New()
	fill(t, store, "billing", 2)
	o.Kinesis = server.Client()
	d := sit(t, store, o)
	d.apply(lease.Action{Kind: lease.EndSession, Session: "s1", Heartbeats: d.view().Workers[0].Heartbeats})
	return d, server
}

func TestResetShowsSavesAndMoves(t *testing.T) {
	t.Parallel()
	d, _ := rewind(t, dashboard.Options{})
	body := shown(t, d.h, "/reset?app=billing&to=latest", "3 checkpoints would move to latest", "no lease", "now, by the service&#39;s clock")
	if len(d.asked) > 0 || d.view().Leases[0].Position != shard.Oldest {
		t.Errorf("looking changes something: %v, %s", d.view().Leases, body)
	}
	form := d.form("/reset?app=billing&to=latest", "reset", "app", "billing")
	d.sends(form, http.StatusOK, "3 of 3 checkpoints moved to latest.")
	v := d.view()
	for _, l := range v.Leases {
		if l.Position.Kind() != shard.Time || l.Owner != "" {
			t.Errorf("%+v", l)
		}
	}
	if len(v.Leases) != 3 || len(d.saved) != 1 {
		t.Fatalf("%d leases, %d saved", len(v.Leases), len(d.saved))
	}
	f, err := dump.Read(bytes.NewReader(d.saved[0]))
	if err != nil || f.App != "billing" || len(f.Leases) != 2 || f.Leases[0].Position != shard.Oldest {
		t.Errorf("what was saved is %v, %v", f, err)
	}
	if log := d.log.String(); !strings.Contains(log, `msg="page: checkpoints begin to move" action=reset app=billing to=latest user="" remote=192.0.2.1:1234 saved=safe-place`) || !strings.Contains(log, `msg="page: changed" action=reset app=billing to=latest`) {
		t.Errorf("the log is %s", log)
	}
	// The same form is refused when it is sent again, because the reset changed the epochs.
	d.sends(form, http.StatusConflict, "Shard 0 of orders was shown at epoch 2 and is at epoch 3 now, without an owner.")
	if len(d.saved) != 1 {
		t.Error("a refused reset saves progress")
	}
	// Reset one shard to an hour ago. The preview fixes the time.
	form = d.form("/reset?app=billing&to=1h&stream=orders&shard=shardId-000000000001", "reset", "shard", "shardId-000000000001")
	d.sends(form, http.StatusOK, "1 of 1 checkpoint moved to 1h.")
	d.sends(d.form("/reset?app=billing&to=oldest", "reset", "to", "oldest"), http.StatusOK, "3 of 3 checkpoints moved to oldest.")
	shown(t, d.h, "/reset?app=billing&to=oldest", "nothing would move")
}

func TestResetIsRefused(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(*desk, *kinesistest.Server, url.Values)
		status int
		says   string
	}{
		"a lease changed hands": {func(d *desk, _ *kinesistest.Server, _ url.Values) {
			d.apply(lease.Action{Kind: lease.Assign, Key: key("shardId-000000000000"), Epoch: 2, Session: "s2"})
		}, http.StatusConflict, "Shard 0 of orders was shown at epoch 2 and is at epoch 3 now, owned by session s2."},
		"a shard was split": {func(_ *desk, server *kinesistest.Server, _ url.Values) {
			server.Split("orders", "shardId-000000000001")
		}, http.StatusConflict, "Shard 3 of orders would also be moved, and was not shown."},
		"a lease was made": {func(d *desk, _ *kinesistest.Server, _ url.Values) {
			d.apply(lease.Action{Kind: lease.Create, Lease: lease.Lease{Key: key("shardId-000000000002"), Epoch: 1, Position: shard.Oldest}})
		}, http.StatusConflict, "Shard 2 of orders was shown at epoch 0 and is at epoch 1 now"},
		"a worker started": {func(d *desk, _ *kinesistest.Server, _ url.Values) {
			if _, err := d.store.Heartbeat(d.t.Context(), "billing", lease.Report{Session: "s2", Name: "worker-2", First: true}); err != nil {
				d.t.Fatal(err)
			}
		}, http.StatusConflict, "Workers run: worker-2"},
		"another place": {func(_ *desk, _ *kinesistest.Server, f url.Values) { f.Set("to", "latest") }, http.StatusConflict, "would be moved to 20"},
		"another shard": {func(_ *desk, _ *kinesistest.Server, f url.Values) {
			f.Set("shard", "shardId-000000000000")
			f.Set("stream", "orders")
		}, http.StatusConflict, "would no longer be moved"},
		"nothing was shown":            {func(_ *desk, _ *kinesistest.Server, f url.Values) { f.Del("seen") }, http.StatusConflict, "was not shown"},
		"what was shown is no list":    {func(_ *desk, _ *kinesistest.Server, f url.Values) { f.Set("seen", "x") }, http.StatusBadRequest, "is not a lease with its epoch"},
		"it was shown long ago":        {func(_ *desk, _ *kinesistest.Server, f url.Values) { f.Set("clock", "1700000000000") }, http.StatusConflict, "look at it again"},
		"it will be shown":             {func(_ *desk, _ *kinesistest.Server, f url.Values) { f.Set("clock", "4700000000000") }, http.StatusConflict, "look at it again"},
		"when it was shown is no time": {func(_ *desk, _ *kinesistest.Server, f url.Values) { f.Set("clock", "-1") }, http.StatusBadRequest, "does not say when"},
		"it cannot be saved":           {func(d *desk, _ *kinesistest.Server, _ url.Values) { d.unsaving = errors.New("disk <full>") }, http.StatusInternalServerError, "could not be saved: disk <full>"},
		"a sequence number":            {func(_ *desk, _ *kinesistest.Server, f url.Values) { f.Set("to", "4959") }, http.StatusBadRequest, "weir group reset"},
		"no place":                     {func(_ *desk, _ *kinesistest.Server, f url.Values) { f.Set("to", "soon") }, http.StatusBadRequest, "is not a valid start"},
		"the future":                   {func(_ *desk, _ *kinesistest.Server, f url.Values) { f.Set("to", "2200-01-01T00:00:00Z") }, http.StatusConflict, "is in the future"},
		"a stream of others":           {func(_ *desk, _ *kinesistest.Server, f url.Values) { f.Set("stream", "others") }, http.StatusNotFound, "no leases of a stream others"},
		"a shard of no stream":         {func(_ *desk, _ *kinesistest.Server, f url.Values) { f.Set("shard", "shardId-000000000000") }, http.StatusBadRequest, "choose the stream"},
		"a shard that is not there":    {func(_ *desk, _ *kinesistest.Server, f url.Values) { f.Set("shard", "x"); f.Set("stream", "orders") }, http.StatusConflict, "has no shard x"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d, server := rewind(t, dashboard.Options{})
			form := d.form("/reset?app=billing&to=1h", "reset", "app", "billing")
			c.change(d, server, form)
			before := d.view()
			d.sends(form, c.status, c.says)
			after := d.view()
			for i, l := range before.Leases {
				if after.Leases[i].Position != l.Position || after.Leases[i].Epoch != l.Epoch {
					t.Errorf("%+v became %+v", l, after.Leases[i])
				}
			}
			if len(after.Leases) != len(before.Leases) {
				t.Errorf("%d leases became %d", len(before.Leases), len(after.Leases))
			}
		})
	}
}

// Running workers lose their leases only if the form confirms it.
func TestResetAndWorkersThatRun(t *testing.T) {
	t.Parallel()
	server := kinesistest.NewServer(t)
	server.CreateStream("orders", 1)
	store := memstore.New()
	fill(t, store, "billing", 1)
	d := sit(t, store, dashboard.Options{Kinesis: server.Client()})
	shown(t, d.h, "/reset?app=billing&to=1h", "Workers run: worker-1 (whether it runs is not known yet)", `name="running"`)
	form := d.form("/reset?app=billing&to=1h", "reset", "app", "billing")
	d.sends(form, http.StatusConflict, "Workers run: worker-1")
	form.Set("running", "1")
	d.sends(form, http.StatusOK, "1 of 1 checkpoint moved")
	if l := d.view().Leases[0]; l.Owner != "" || l.Revoked != "s1" {
		t.Errorf("%+v", l)
	}
}

func TestResetNeedsKinesisAndAPlaceForProgress(t *testing.T) {
	t.Parallel()
	store := memstore.New()
	fill(t, store, "billing", 1)
	d := sit(t, store, dashboard.Options{})
	shown(t, d.h, "/change?app=billing", "Without access to Kinesis checkpoints cannot be moved here")
	if w := answer(t, d.h, http.MethodGet, "/reset?app=billing&to=oldest"); w.Code != http.StatusConflict {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	h := dashboard.Handler(store, dashboard.Options{Kinesis: kinesistest.NewServer(t).Client(), Authorize: func(*http.Request, dashboard.Action) error { return nil }})
	shown(t, h, "/change?app=billing", "has no place to save the previous progress")
}

// halting is a store that fails in the middle of a reset. The answer must state which changes were
// made before the failure.
type halting struct {
	*memstore.Store
	left int
}

func (h *halting) Apply(ctx context.Context, app string, actions []lease.Action) ([]bool, error) {
	if h.left--; h.left < 0 {
		return nil, errors.New("no <answer>")
	}
	return h.Store.Apply(ctx, app, actions)
}

func TestAStoreThatFailsIsTold(t *testing.T) {
	t.Parallel()
	server := kinesistest.NewServer(t)
	server.CreateStream("orders", 60)
	store := &halting{memstore.New(), 1000}
	fill(t, store, "billing", 60)
	d := sit(t, store, dashboard.Options{Kinesis: server.Client()})
	d.apply(lease.Action{Kind: lease.EndSession, Session: "s1", Heartbeats: d.view().Workers[0].Heartbeats})
	form := d.form("/reset?app=billing&to=1h", "reset", "app", "billing")
	pause := d.form("/change?app=billing", "pause", "stream", "")
	store.left = 1
	d.sends(form, http.StatusConflict, "50 of 60 checkpoints moved to 1h. Then: no <answer>.")
	d.sends(pause, http.StatusBadGateway, "It is not known whether this was done")
	if log := d.log.String(); !strings.Contains(log, "made in part") || !strings.Contains(log, "a change failed") {
		t.Errorf("the log is %s", log)
	}
}

// Silence depends on time, so these tests use virtual time.
func TestSilentWorkersDoNotRun(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := memstore.New()
		fill(t, store, "billing", 1)
		server := kinesistest.NewServer(t, kinesistest.Config{InMemory: true})
		server.CreateStream("orders", 1)
		d := sit(t, store, dashboard.Options{Kinesis: server.Client()})
		shown(t, d.h, "/app?app=billing")
		time.Sleep(time.Minute)
		if body := shown(t, d.h, "/reset?app=billing&to=oldest"); strings.Contains(body, "Workers run") {
			t.Error("a worker that was silent for a minute counts as running")
		}
	})
}

func TestALongNameOfAUserIsCutAndCleaned(t *testing.T) {
	t.Parallel()
	store := memstore.New()
	fill(t, store, "billing", 1)
	d := sit(t, store, dashboard.Options{})
	d.sends(d.form("/change?app=billing", "pause", "stream", ""), http.StatusOK, "", "X-User", "\x1b[31m\u202e"+strings.Repeat("u", 500))
	if log := d.log.String(); strings.Contains(log, strings.Repeat("u", 128)) || !strings.Contains(log, "user=\"\ufffd[31m\ufffduuu") {
		t.Errorf("the log is %s", log)
	}
}

func TestAFormThatWouldBeTooLongIsNotShown(t *testing.T) {
	t.Parallel()
	server := kinesistest.NewServer(t, kinesistest.Config{ShardLimit: 30_000})
	stream := strings.Repeat("s", 128)
	server.CreateStream(stream, 25_000)
	store := memstore.New()
	d := sit(t, store, dashboard.Options{Kinesis: server.Client()})
	d.apply(lease.Action{Kind: lease.Create, Lease: lease.Lease{Key: lease.Key{Stream: stream, Shard: "shardId-000000000000"}, Epoch: 1, Position: shard.Oldest}})
	w := answer(t, d.h, http.MethodGet, "/reset?app=billing&to=1h")
	if w.Code != http.StatusConflict || !strings.Contains(w.Body.String(), "25000 leases would move, which is more than a form can carry") {
		t.Errorf("%d, %d bytes", w.Code, w.Body.Len())
	}
}
