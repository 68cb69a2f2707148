package alerts_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/grafana/grafana-foundation-sdk/go/cog/plugins"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"

	"github.com/weir-go/weir/internal/proof/integration/servers"
	"github.com/weir-go/weir/kinesistest"
)

// onlyAfterAFailure lists the panels that have no data while everything is well.
var onlyAfterAFailure = []string{"weir-group: Alerts that fire", "weir-group: annotation", "weir-stream: annotation"}

// shown replaces the variables of Grafana.
var shown = strings.NewReplacer("$__rate_interval", "20s", "$__range", "2m", "$app", "billing", "$stream", "orders", "$shard", ".*")

func boards(t *testing.T) map[string][]byte {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("..", "..", "..", "..", "deploy", "grafana", "*.json"))
	if err != nil || len(files) != 2 {
		t.Fatalf("%v, %v", files, err)
	}
	all := map[string][]byte{}
	for _, file := range files {
		if all[filepath.Base(file)], err = os.ReadFile(file); err != nil {
			t.Fatal(err)
		}
	}
	return all
}

// classic is the schema that all versions of Grafana can import.
type classic = dashboard.Dashboard //nolint:staticcheck // the newer one needs Grafana 12

// An unknown field, or a field with the wrong type, is a mistake in the file.
func TestDashboardsKeepGrafanasSchema(t *testing.T) {
	plugins.RegisterDefaultPlugins()
	for file, text := range boards(t) {
		var d classic
		if mistakes := strictly(&d, text); mistakes != "" {
			t.Errorf("%s: %s", file, mistakes)
		}
		if err := d.Validate(); err != nil {
			t.Errorf("%s: %v", file, err)
		}
		if current := dashboard.NewDashboard().SchemaVersion; d.SchemaVersion != current {
			t.Errorf("%s is of schema %d, the current one is %d", file, d.SchemaVersion, current)
		}
		broken := strings.Replace(string(text), `"gridPos"`, `"gridpos"`, 1)
		if mistakes := strictly(new(classic), []byte(broken)); !strings.Contains(mistakes, "gridpos") {
			t.Errorf("%s: a misspelt field is not found: %s", file, mistakes)
		}
	}
}

// strictly decodes a dashboard and returns the mistakes, or "" if there are none. Without mistakes
// the decoder returns an empty list as a non-nil error, whose text is "".
func strictly(d *classic, text []byte) string {
	if err := d.UnmarshalJSONStrict(text); err != nil {
		return err.Error()
	}
	return ""
}

// question is one query of a dashboard.
type question struct {
	where   string // dashboard and panel
	expr    string
	labelOf string // for a variable, its label
}

var variableQuery = regexp.MustCompile(`^label_values\((.+), ([a-z]+)\)$`)

// questions returns all queries of the dashboards, after replacing variables.
func questions(t *testing.T) (all []question) {
	t.Helper()
	for file, text := range boards(t) {
		var d struct {
			UID        string
			Templating struct {
				List []struct{ Type, Name, Definition string }
			}
			Annotations struct{ List []struct{ Expr string } }
			Panels      []struct {
				Title   string
				Targets []struct{ Expr string }
			}
		}
		if err := json.Unmarshal(text, &d); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		add := func(where, expr, label string) {
			all = append(all, question{where: d.UID + ": " + where, expr: shown.Replace(expr), labelOf: label})
		}
		for _, v := range d.Templating.List {
			if v.Type == "datasource" {
				continue
			}
			m := variableQuery.FindStringSubmatch(v.Definition)
			if m == nil {
				t.Fatalf("%s: the variable %s asks %q", file, v.Name, v.Definition)
			}
			add("variable "+v.Name, m[1], m[2])
		}
		for _, a := range d.Annotations.List {
			add("annotation", a.Expr, "")
		}
		for _, p := range d.Panels {
			for _, q := range p.Targets {
				add(p.Title, q.Expr, "")
			}
		}
	}
	for _, q := range all {
		if strings.Contains(q.expr, "$") {
			t.Errorf("%s: %s has a variable that this test does not know", q.where, q.expr)
		}
	}
	return all
}

// answers reports whether Prometheus returns data for a query. NaN does not count as data.
func (w watcher) answers(ctx context.Context, q question) (bool, error) {
	path, values := "/api/v1/query", url.Values{"query": {q.expr}}
	if q.labelOf != "" {
		path, values = "/api/v1/label/"+q.labelOf+"/values", url.Values{"match[]": {q.expr}}
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, w.url+path+"?"+values.Encode(), nil)
	if err != nil {
		return false, err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return false, err
	}
	defer func() { _ = resp.Body.Close() }()
	var a struct {
		Error string
		Data  json.RawMessage
	}
	if err := json.NewDecoder(resp.Body).Decode(&a); err != nil {
		return false, err
	}
	if a.Error != "" {
		return false, errors.New(a.Error)
	}
	if q.labelOf != "" {
		var all []string
		err := json.Unmarshal(a.Data, &all)
		return len(all) > 0, err
	}
	var vector struct {
		Result []struct{ Value [2]any }
	}
	if err := json.Unmarshal(a.Data, &vector); err != nil {
		return false, err
	}
	return slices.ContainsFunc(vector.Result, func(r struct{ Value [2]any }) bool { return r.Value[1] != "NaN" }), nil
}

// untilAnswered waits until each query has returned data once.
func (w watcher) untilAnswered(within time.Duration, all []question) {
	w.t.Helper()
	began := time.Now()
	ctx, cancel := context.WithTimeout(w.t.Context(), within)
	defer cancel()
	every := time.NewTicker(time.Second)
	defer every.Stop()
	open := map[question]bool{}
	for _, q := range all {
		open[q] = true
	}
	for {
		for q := range open {
			some, err := w.answers(ctx, q)
			if err != nil && ctx.Err() == nil {
				w.t.Fatalf("%s: %s: %v", q.where, q.expr, err)
			}
			if some {
				delete(open, q)
			}
		}
		if len(open) == 0 {
			w.t.Logf("%d queries returned data after %s", len(all), time.Since(began).Round(time.Second))
			return
		}
		select {
		case <-every.C:
		case <-ctx.Done():
			for _, q := range slices.SortedFunc(maps.Keys(open), func(a, b question) int { return strings.Compare(a.where, b.where) }) {
				w.t.Errorf("%s has no data within %s: %s", q.where, within, q.expr)
			}
			return
		}
	}
}

// All queries of the dashboards return data while a group of workers and an exporter run, some of
// them only after a failure.
func TestEachQueryOfTheDashboardsReturnsData(t *testing.T) {
	t.Parallel()
	all := questions(t)
	well := slices.DeleteFunc(slices.Clone(all), func(q question) bool { return slices.Contains(onlyAfterAFailure, q.where) })
	failing := slices.DeleteFunc(slices.Clone(all), func(q question) bool { return !slices.Contains(onlyAfterAFailure, q.where) })
	if len(failing) != len(onlyAfterAFailure) {
		t.Fatalf("of %v there are %v", onlyAfterAFailure, failing)
	}
	ports := []int{freePort(t), freePort(t), freePort(t)}
	prometheus := scraping(t, ports...)
	alerts := watcher{t, prometheus.URL}
	kinesis := kinesistest.NewServer(t)
	kinesis.CreateStream("orders", 4)
	store := servers.Redis(t)
	dir := t.TempDir()
	fails := filepath.Join(dir, "fails")
	place := "redis://127.0.0.1:" + store.Port() + "/0"
	w := &workers{t: t, program: built(t), running: map[int]*exec.Cmd{}, args: []string{
		"consume", "--endpoint", kinesis.URL(), "--stream", "orders", "--app", "billing", "--store", place, "--create-store",
		"--max-attempts", "2", "--dead", "file:" + filepath.Join(dir, "dead.ndjson"), "--outage-grace", "1s", "--retry-max", "1s",
		"--exec", fmt.Sprintf("cat >/dev/null; test ! -e %s", fails),
	}}
	t.Cleanup(w.killAll)
	w.start(ports[0])
	w.start(ports[1])
	w.run(ports[2], "exporter", "--endpoint", kinesis.URL(), "--store", place, "--app", "billing", "--every", "1s", "--read-share", "1", "--addr", strconv.Itoa(ports[2]))
	ctx, stop := context.WithCancel(t.Context())
	putting := make(chan struct{})
	go func() { // ends with the test
		defer close(putting)
		every := time.NewTicker(100 * time.Millisecond)
		defer every.Stop()
		for i := 0; ; i++ {
			kinesis.Put("orders", strconv.Itoa(i), []byte("x"))
			select {
			case <-every.C:
			case <-ctx.Done():
				return
			}
		}
	}()
	t.Cleanup(func() { stop(); <-putting })
	alerts.untilAnswered(2*time.Minute, well)
	for _, q := range failing {
		if some, err := alerts.answers(t.Context(), q); some || err != nil {
			t.Errorf("%s has data before anything failed: %v", q.where, err)
		}
	}
	if err := os.WriteFile(fails, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	alerts.untilAnswered(time.Minute, failing)
}

// If a worker and the exporter report different states of a shard, the dashboard shows the worse
// state.
func TestTheWorstStateOfAShardIsShown(t *testing.T) {
	t.Parallel()
	all := questions(t)
	at := slices.IndexFunc(all, func(q question) bool { return q.where == "weir-stream: State of each shard" })
	if at < 0 {
		t.Fatal("the panel is gone")
	}
	var text strings.Builder
	text.WriteString("tests:\n  - interval: 1m\n    input_series:\n")
	for i, states := range []string{"ok stalled", "falling_behind ok", "unknown", "behind", "retention_near falling_behind", "unread", "idle"} {
		for by, state := range strings.Fields(states) {
			fmt.Fprintf(&text, "      - {series: 'weir_shard_state{app=\"billing\",stream=\"orders\",shard=\"%d\",state=%q,instance=\"%d\"}', values: \"1\"}\n", i, state, by)
		}
	}
	fmt.Fprintf(&text, "    promql_expr_test:\n      - expr: '%s'\n        eval_time: 0m\n        exp_samples:\n", all[at].expr)
	for i, level := range []int{3, 2, 1, 0, 3, 3, 0} {
		fmt.Fprintf(&text, "          - {labels: '{app=\"billing\",shard=\"%d\"}', value: %d}\n", i, level)
	}
	file := filepath.Join(t.TempDir(), "state.test.yaml")
	if err := os.WriteFile(file, []byte(text.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := servers.Promtool(t, "test", "rules", file).CombinedOutput(); err != nil {
		t.Errorf("promtool: %v\n%s", err, out)
	}
}
