package situations_test

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weir-go/weir/health"
	"github.com/weir-go/weir/internal/proof/integration/servers"
)

// situation is a row of the table of situations: how it is created, and what all tools must say.
type situation struct {
	app  string // the name of the application and of its stream
	name string // for people
	made string // how the test creates it, for people

	shards int
	// own gives the situation a store and tools of its own, because its fault affects the tools.
	// server makes the store a Redis server. Otherwise it is a SQLite file.
	own, server bool
	create      func(s *scene)

	state health.State
	cause health.Cause
	// steps are the beginnings of the next steps, with N in place of numbers. shown is the first
	// step on the page about situations, if it differs.
	steps []string
	shown string
	// from and to are the time between the fault and the beginning of the state. With timeless, the
	// state has no beginning.
	from, to time.Duration
	timeless bool
	untold   bool // sentences leave out since when
	livez    bool // the living workers see the same verdict
	unlooked bool // group describe and doctor cannot look, and say so in words that match refused
	// refused matches the errors of the commands of the next steps, if they cannot look.
	refused string
	alerts  []string
	// logs are patterns of lines of the workers' logs, metrics of the lines of their metrics and
	// those of the exporter, and pages of the page.
	logs, metrics, pages []string
}

const (
	// settled is the time within which all tools must make the expected statements.
	settled = 6 * time.Minute
	// exact is the maximum error of a time that counts as exact.
	exact = 5 * time.Second
	// sample is the maximum error of other times: workers report once a minute.
	sample = time.Minute
)

// TestSituations creates all situations at the same time, and checks each.
func TestSituations(t *testing.T) {
	if !*full {
		t.Skip("it takes some minutes: run make situations")
	}
	w := newWorld(t)
	b := newBrowser(t)
	all := situations()
	var shared []string
	for i := range all {
		if !all[i].own {
			shared = append(shared, all[i].app)
		}
	}
	common := newStage(t, w, "sqlite:"+filepath.Join(t.TempDir(), "weir.db"), shared...)
	t.Run("situation", func(t *testing.T) {
		for i := range all {
			of := &all[i]
			t.Run(of.app, func(t *testing.T) {
				t.Parallel()
				of.check(t, w, common, b)
			})
		}
	})
	checkPage(t, all)
}

// check creates the situation, and compares all statements about it with the table.
func (of *situation) check(t *testing.T, w *world, common *stage, b *browser) {
	s := &scene{stage: common, t: t, app: of.app, shards: of.shards, calls: newProxy(t, w.kinesis), dead: "file:" + filepath.Join(t.TempDir(), "dead.ndjson")}
	t.Cleanup(s.putting.Wait)
	var server *servers.Database
	if of.server {
		server = servers.Redis(t)
	}
	if of.own {
		store := "sqlite:" + filepath.Join(t.TempDir(), "weir.db")
		if server != nil {
			store = "redis://127.0.0.1:" + server.Port() + "/0"
		}
		s.stage = newStage(t, w, store, of.app)
	}
	s.server = server
	s.stream(s.app, s.shards)
	s.watch()
	of.create(s)
	began, before := time.Now(), ""
	until(t, settled, "the tools say what they must", func() string {
		v, err := s.exported()
		if err != nil {
			return err.Error()
		}
		missing := ""
		if v.State != of.state || v.Cause != of.cause {
			missing = fmt.Sprintf("the exporter says %q, cause %q: %s", v.Sentence, v.Cause, v.Evidence)
			s.wait(2 * time.Second)
		} else if all := of.differences(s); len(all) > 0 {
			missing = "\n" + strings.Join(all, "\n")
		}
		if text := digits.ReplaceAllString(missing, "N"); text != before {
			t.Logf("after %s: %s", time.Since(began).Round(time.Second), missing)
			before = text
		}
		return missing
	})
	t.Logf("all agree %s after the situation was created", time.Since(began).Round(time.Second))
	b.picture(t, s.page+"/app?app="+s.app, of.app)
	of.checkSteps(s)
}

// differences compares what the tools say with the table.
func (of *situation) differences(s *scene) (all []string) {
	differs := func(format string, args ...any) { all = append(all, fmt.Sprintf(format, args...)) }
	tools, problems := s.tools(of)
	all = append(all, problems...)
	for _, tool := range slices.Sorted(maps.Keys(tools)) {
		if why := of.differs(s, tools[tool], strings.HasPrefix(tool, "/livez")); why != "" {
			differs("%s: %s: %s", tool, why, tools[tool])
		}
	}
	var steps []string
	for _, tool := range slices.Sorted(maps.Keys(tools)) {
		switch got := tools[tool]; {
		case got.cause == notSaid || strings.HasPrefix(tool, "/livez"):
		case steps == nil:
			steps = got.steps
		case !slices.Equal(got.steps, steps):
			differs("%s: the steps are %q, and those of another tool are %q", tool, got.steps, steps)
		}
	}
	if of.unlooked {
		for _, line := range []string{"weir group describe --app " + s.app, "weir doctor --app " + s.app} {
			if _, said, code := s.output(line + " --connect-timeout 5s"); code != 1 || !regexp.MustCompile(of.refused).MatchString(said) {
				differs("%s: exit code %d: %s", line, code, said)
			}
		}
	}
	if firing, err := s.firing(); err != nil || !slices.Equal(firing, of.alerts) {
		differs("alerts %v, want %v (%v)", firing, of.alerts, err)
	}
	logs, metrics := "", ""
	for _, p := range s.workers {
		logs += p.said()
		if p.lives() {
			text, _ := get(s.t, p.addr+"/metrics")
			metrics += text
		}
	}
	text, _ := get(s.t, s.exporter+"/metrics")
	metrics += text
	for _, pattern := range of.logs {
		if !regexp.MustCompile(pattern).MatchString(logs) {
			differs("no line of the logs matches %q", pattern)
		}
	}
	for _, pattern := range append(of.metrics, of.shardState(s)...) {
		if !regexp.MustCompile(`(?m)^` + strings.ReplaceAll(pattern, "APP", s.app)).MatchString(metrics) {
			differs("no metric matches %q", pattern)
		}
	}
	text, err := get(s.t, s.page+"/app?app="+s.app)
	for _, part := range of.pages {
		if !strings.Contains(text, part) {
			differs("the page does not say %q (%v)", part, err)
		}
	}
	return all
}

// shardState returns the pattern of the metric with the state of the worst shard.
func (of *situation) shardState(*scene) []string {
	return []string{fmt.Sprintf(`weir_shard_state\{app="APP",shard="[^"]+",state="%s",stream="[^"]+"\} 1`, of.state.Label())}
}

// differs returns in what a statement differs from the table, or "". The statement of one worker
// may have fewer steps, because a worker does not know the others.
func (of *situation) differs(s *scene, got statement, one bool) string {
	switch {
	case got.state != of.state.Label():
		return "the state is wrong"
	case got.cause != notSaid && got.cause != of.cause.String():
		return fmt.Sprintf("the cause is not %q", of.cause)
	}
	if got.cause != notSaid {
		if len(got.steps) != len(of.steps) && !one {
			return fmt.Sprintf("the steps are not %q", of.steps)
		}
		for i, step := range got.steps {
			if one && slices.ContainsFunc(of.steps, func(want string) bool { return strings.HasPrefix(step, want) }) {
				continue
			}
			if !strings.HasPrefix(step, of.steps[i]) {
				return fmt.Sprintf("the steps are not %q", of.steps)
			}
		}
	}
	first, last := s.began.Add(of.from-exact), s.began.Add(of.to+exact)
	late := last.Add(sample)
	if got.rounded {
		late = late.Add(time.Minute)
	}
	switch {
	case of.timeless && !got.since.IsZero():
		return "it has no beginning"
	case of.timeless, of.untold && got.since.IsZero():
	case got.since.IsZero():
		return "since is unknown"
	case got.atLeast && (got.since.Before(first) || got.since.After(late)),
		!got.atLeast && (got.since.Before(first) || got.since.After(last)):
		return fmt.Sprintf("since is not from %s to %s", first.UTC().Format("15:04:05"), last.UTC().Format("15:04:05"))
	}
	return ""
}

// checkSteps runs the commands of the next steps. They must end with 0, or with an exit code of
// findings.
func (of *situation) checkSteps(s *scene) {
	v, err := s.exported()
	if err != nil {
		s.t.Fatal(err)
	}
	for _, step := range v.Steps {
		if step.Command == "" {
			continue
		}
		out, said, code := s.output(step.Command)
		looks := slices.Contains([]int{0, 3, 4, 5}, code) || // the codes of findings
			strings.Contains(said, "without a terminal: add --yes")
		if of.refused != "" { // the step shows the error
			looks = code == 1 && regexp.MustCompile(of.refused).MatchString(said)
		}
		if !looks {
			s.t.Errorf("%s: exit code %d: %s %s", step.Command, code, out, said)
		}
		s.t.Logf("%s: exit code %d", step.Command, code)
	}
}

// wait waits in the creation of a situation.
func (s *scene) wait(d time.Duration) {
	ctx, cancel := context.WithTimeout(s.t.Context(), d)
	defer cancel()
	<-ctx.Done()
}

// balanced waits until two workers hold the same number of shards.
func (s *scene) balanced(a, b *process, each int) {
	s.t.Helper()
	until(s.t, 2*time.Minute, "two workers hold the same number of shards", func() string {
		for _, p := range []*process{a, b} {
			text, err := get(s.t, p.addr+"/metrics")
			if m := leases.FindStringSubmatch(text); err != nil || m == nil || m[1] != fmt.Sprint(each) {
				return fmt.Sprint(p.name, m, err)
			}
		}
		return ""
	})
}

// run runs a command line that must succeed.
func (s *scene) run(line string) {
	s.t.Helper()
	if out, said, code := s.output(line); code != 0 {
		s.t.Fatalf("%s: exit code %d: %s %s", line, code, out, said)
	}
}

func (s *scene) mkdir(dir string) {
	s.t.Helper()
	if err := os.Mkdir(dir, 0o700); err != nil {
		s.t.Fatal(err)
	}
}

func (s *scene) remove(dir string) {
	s.t.Helper()
	if err := os.RemoveAll(dir); err != nil {
		s.t.Fatal(err)
	}
}
