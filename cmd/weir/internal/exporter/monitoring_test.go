package exporter

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/promweir"
)

// The dashboards and alerts that weir ships use only metrics and labels that workers or the
// exporter have.
func TestDashboardsAndAlertsAskForWhatIsExported(t *testing.T) {
	t.Parallel()
	names, labels := exportedNames(t)
	// Prometheus adds these labels, also for alerts and histograms.
	labels = append(labels, "job", "instance", "le", "alertname", "alertstate", "severity")
	texts := map[string][]string{}
	rules, err := os.ReadFile(filepath.Join("..", "..", "..", "..", "deploy", "prometheus", "weir.rules.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	texts["weir.rules.yaml"] = []string{string(rules)}
	for _, b := range shippedDashboards(t) {
		for _, v := range b.Templating.List {
			texts[b.UID] = append(texts[b.UID], v.Definition)
		}
		for _, a := range b.Annotations.List {
			texts[b.UID] = append(texts[b.UID], a.Expr)
		}
		for _, p := range b.Panels {
			for _, q := range p.Targets {
				texts[b.UID] = append(texts[b.UID], q.Expr)
			}
		}
	}
	asked := 0
	name, series := regexp.MustCompile(`\bweir_[a-z_]+\b`), regexp.MustCompile(`_(bucket|sum|count)$`)
	label := regexp.MustCompile(`([a-z_]+)\s*=[~"]`)
	grouping := regexp.MustCompile(`\b(?:by|on|group_left)\s*\(([^)]*)\)`)
	for from, all := range texts {
		for _, text := range all {
			for _, n := range name.FindAllString(text, -1) {
				asked++
				if !slices.Contains(names, n) && !slices.Contains(names, series.ReplaceAllString(n, "")) {
					t.Errorf("%s asks for %s, which nothing exports", from, n)
				}
			}
			var used []string
			for _, m := range label.FindAllStringSubmatch(text, -1) {
				used = append(used, m[1])
			}
			for _, m := range grouping.FindAllStringSubmatch(text, -1) {
				used = append(used, strings.FieldsFunc(m[1], func(r rune) bool { return r == ',' || r == ' ' })...)
			}
			for _, l := range used {
				if !slices.Contains(labels, l) {
					t.Errorf("%s uses the label %s, which nothing has: %s", from, l, text)
				}
			}
		}
	}
	if asked < 100 {
		t.Errorf("only %d names are found", asked)
	}
}

// On the dashboards, panels do not overlap, and each panel has a description.
func TestDashboardsAreWhole(t *testing.T) {
	t.Parallel()
	uids := map[string]bool{}
	for _, b := range shippedDashboards(t) {
		if uids[b.UID] || b.UID == "" || b.Title == "" {
			t.Errorf("%q, %q: each has its own", b.UID, b.Title)
		}
		uids[b.UID] = true
		ids, taken := map[int]bool{}, map[[2]int]string{}
		for _, p := range b.Panels {
			if ids[p.ID] {
				t.Errorf("%s: two panels are number %d", b.UID, p.ID)
			}
			ids[p.ID] = true
			for x := p.GridPos.X; x < p.GridPos.X+p.GridPos.W; x++ {
				for y := p.GridPos.Y; y < p.GridPos.Y+p.GridPos.H; y++ {
					if other := taken[[2]int{x, y}]; other != "" || x >= 24 {
						t.Fatalf("%s: %q lies over %q or the edge", b.UID, p.Title, other)
					}
					taken[[2]int{x, y}] = p.Title
				}
			}
			if p.Type == "row" {
				continue
			}
			if p.Description == "" || len(p.Targets) == 0 {
				t.Errorf("%s: %q does not say what it shows, or shows nothing", b.UID, p.Title)
			}
			for _, q := range p.Targets {
				if q.Datasource.UID != "${datasource}" {
					t.Errorf("%s: %q asks data source %q, not the one that was chosen", b.UID, p.Title, q.Datasource.UID)
				}
			}
		}
	}
	if len(uids) != 2 {
		t.Errorf("found %v", uids)
	}
}

// shippedDashboard contains the parts of a dashboard that these tests check.
type shippedDashboard struct {
	UID, Title string
	Templating struct{ List []struct{ Definition string } }
	// Annotations contains the queries for alerts.
	Annotations struct{ List []struct{ Expr string } }
	Panels      []struct {
		ID                       int
		Type, Title, Description string
		GridPos                  struct{ X, Y, W, H int }
		Targets                  []struct {
			Expr       string
			Datasource struct{ UID string }
		}
	}
}

func shippedDashboards(t *testing.T) (all []shippedDashboard) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("..", "..", "..", "..", "deploy", "grafana", "*.json"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var d shippedDashboard
		if err := json.Unmarshal(text, &d); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		all = append(all, d)
	}
	return all
}

// exportedNames returns the metrics of workers and of the exporter, and their labels.
func exportedNames(t *testing.T) (names, labels []string) {
	t.Helper()
	described := make(chan *prometheus.Desc, 1000)
	promweir.New(&weir.Options{App: "a", Worker: "w"}, promweir.Config{ShardLabel: true, Version: "v"}).Describe(described)
	exported{}.Describe(described)
	close(described)
	parts := regexp.MustCompile(`fqName: "([a-z_]+)".*constLabels: \{(.*?)\}, variableLabels: \{(.*?)\}`)
	for d := range described {
		m := parts.FindStringSubmatch(d.String())
		if m == nil {
			t.Fatalf("%s is not understood", d)
		}
		names = append(names, m[1])
		for _, l := range strings.Split(m[2]+","+m[3], ",") {
			name, _, _ := strings.Cut(l, "=")
			labels = append(labels, name)
		}
	}
	return names, labels
}
