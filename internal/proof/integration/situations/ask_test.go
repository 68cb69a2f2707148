package situations_test

import (
	"context"
	"encoding/json"
	"fmt"
	"html"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/weir-go/weir/health"
)

// statement is what a tool says about an application.
type statement struct {
	state   string // a label
	since   time.Time
	atLeast bool   // since may have been earlier
	rounded bool   // since is rounded to a later minute
	cause   string // in words, or ""
	steps   []string
}

func (s statement) String() string {
	since := "-"
	switch {
	case s.atLeast:
		since = "at least " + s.since.UTC().Format("15:04:05")
	case !s.since.IsZero():
		since = s.since.UTC().Format("15:04:05")
	}
	return fmt.Sprintf("state %s, since %s, cause %q, steps %q", s.state, since, s.cause, s.steps)
}

// stated converts a verdict.
func stated(v health.Verdict) statement {
	s := statement{state: v.State.Label(), since: v.Since, atLeast: v.AtLeast, cause: v.Cause.String()}
	for _, step := range v.Steps {
		s.steps = append(s.steps, plain(step.Do, step.Command))
	}
	return s
}

// plain returns a step in words, without the numbers in it.
func plain(do, command string) string {
	if command != "" {
		do += ": " + command
	}
	return digits.ReplaceAllString(do, "N")
}

var (
	digits  = regexp.MustCompile(`\b\d+\b`)
	since   = regexp.MustCompile(` since (\d\d:\d\d:\d\d) UTC`)
	atLeast = regexp.MustCompile(` for at least (?:(\d+) h )?(\d+) (s|min)`)
	step    = regexp.MustCompile(`^ {2}\d\. (.*)$`)
)

// read parses what a tool writes for people: a sentence that begins with the state, then the cause
// and the steps.
func read(text string, now time.Time) (s statement, err error) {
	sentence, rest, _ := strings.Cut(text, "Next steps:")
	sentence, cause, _ := strings.Cut(strings.Join(strings.Fields(sentence), " "), " Cause: ")
	words, _, found := strings.Cut(sentence, ": ")
	words, _, _ = strings.Cut(words, " (") // the page adds the reason
	for _, state := range health.States() {
		if state.String() == words || state == health.NotKnown && words == "unknown" {
			s.state = state.Label()
		}
	}
	if !found || s.state == "" {
		return s, fmt.Errorf("no state: %.200q", text)
	}
	s.since, s.atLeast, s.rounded = moment(sentence, now)
	for _, c := range health.Causes() {
		if strings.HasPrefix(cause, c.String()) {
			s.cause = c.String()
		}
	}
	for line := range strings.Lines(rest) {
		line = strings.TrimRight(line, "\n")
		switch m := step.FindStringSubmatch(line); {
		case m != nil:
			s.steps = append(s.steps, m[1])
		case strings.HasPrefix(line, "     ") && len(s.steps) > 0:
			s.steps[len(s.steps)-1] += " " + strings.TrimSpace(line)
		case line != "":
			rest = ""
		}
		if rest == "" {
			break
		}
	}
	for i, step := range s.steps {
		s.steps[i] = plain(strings.TrimSuffix(step, "."), "")
	}
	return s, nil
}

// moment returns the time since which a sentence says that a state lasts.
func moment(sentence string, now time.Time) (at time.Time, least, rounded bool) {
	if m := since.FindStringSubmatch(sentence); m != nil {
		clock, _ := time.Parse("15:04:05", m[1])
		y, month, d := now.UTC().Date()
		at = time.Date(y, month, d, clock.Hour(), clock.Minute(), clock.Second(), 0, time.UTC)
		if at.After(now.Add(time.Minute)) {
			at = at.AddDate(0, 0, -1)
		}
		return at, false, false
	}
	if m := atLeast.FindStringSubmatch(sentence); m != nil {
		d, _ := time.ParseDuration(m[2] + m[3][:1])
		return now.Add(-d), true, m[3] == "min"
	}
	return time.Time{}, false, false
}

// tools returns what each tool says at about the same moment, and what was not understood.
func (s *scene) tools(of *situation) (all map[string]statement, problems []string) {
	all = map[string]statement{}
	var mu sync.Mutex
	var asked sync.WaitGroup
	ask := func(tool string, f func() (statement, error)) {
		asked.Go(func() {
			said, err := f()
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				problems = append(problems, tool+": "+err.Error())
				return
			}
			all[tool] = said
		})
	}
	ask("exporter", func() (statement, error) { v, err := s.exported(); return stated(v), err })
	ask("page", s.shown)
	ask("list of pages", s.listed)
	if !of.unlooked {
		for _, tool := range []string{"group describe", "doctor"} {
			line := "weir " + tool + " --app " + s.app
			ask(tool+" -o json", func() (statement, error) { return s.jsonOf(line + " -o json") })
			ask(tool, func() (statement, error) { return s.textOf(line) })
		}
	}
	for _, w := range s.workers {
		if of.livez && w.lives() {
			ask("/livez of "+w.name, func() (statement, error) {
				var answer struct{ Verdict health.Verdict }
				err := s.decode(w.addr+"/livez", &answer)
				return stated(answer.Verdict), err
			})
		}
	}
	asked.Wait()
	slices.Sort(problems)
	return all, problems
}

func (s *scene) decode(url string, into any) error {
	text, err := get(s.t, url)
	if err != nil {
		return err
	}
	if err := json.Unmarshal([]byte(text), into); err != nil {
		return fmt.Errorf("%w: %.200s", err, text)
	}
	return nil
}

// exported returns the verdict of the exporter.
func (s *scene) exported() (health.Verdict, error) {
	var answer struct{ Verdict health.Verdict }
	err := s.decode(s.exporter+"/lag.json?app="+s.app, &answer)
	return answer.Verdict, err
}

// jsonOf returns the verdict in the output of a command.
func (s *scene) jsonOf(line string) (statement, error) {
	out, said, code := s.output(line)
	var answer struct{ Verdict health.Verdict }
	if err := json.Unmarshal([]byte(out), &answer); err != nil {
		return statement{}, fmt.Errorf("exit code %d, %w: %.300s %.300s", code, err, out, said)
	}
	return stated(answer.Verdict), nil
}

// textOf returns the verdict in the text of a command.
func (s *scene) textOf(line string) (statement, error) {
	out, said, code := s.output(line)
	now := time.Now()
	for _, state := range health.States() { // the verdict begins a line
		for _, word := range []string{state.String(), "unknown"} {
			if at := strings.Index("\n"+out, "\n"+word+": "); at >= 0 {
				verdict, _, _ := strings.Cut(out[at:], "\n\n")
				return read(verdict, now)
			}
		}
	}
	return statement{}, fmt.Errorf("exit code %d, no verdict: %.500s %.300s", code, out, said)
}

var (
	shownState    = regexp.MustCompile(`<p class="sentence"><span class="state \w+">([^<]*)</span> ([^<]*)</p>`)
	shownVerdict  = regexp.MustCompile(`(?s)<section class="verdict"[^>]*>(.*?)</section>`)
	shownStep     = regexp.MustCompile(`<li>(.*?)</li>`)
	shownElements = regexp.MustCompile(`<[^>]*>`)
)

// shown returns the verdict on the page of the application.
func (s *scene) shown() (statement, error) {
	text, err := get(s.t, s.page+"/app?app="+url.QueryEscape(s.app))
	if err != nil {
		return statement{}, err
	}
	m := shownState.FindStringSubmatch(text)
	if m == nil {
		return statement{}, fmt.Errorf("no state: %.1000s", text)
	}
	said, err := read(sentenceOf(m[1], m[2]), time.Now())
	if v := shownVerdict.FindStringSubmatch(text); v != nil {
		words := html.UnescapeString(shownElements.ReplaceAllString(v[1], ""))
		_, cause, _ := strings.Cut(words, "Cause: ")
		for _, c := range health.Causes() {
			if strings.HasPrefix(cause, c.String()) {
				said.cause = c.String()
			}
		}
		for _, li := range shownStep.FindAllStringSubmatch(v[1], -1) {
			said.steps = append(said.steps, plain(strings.TrimSuffix(html.UnescapeString(shownElements.ReplaceAllString(li[1], "")), "."), ""))
		}
	}
	return said, err
}

// sentenceOf returns a sentence that begins with its state.
func sentenceOf(state, sentence string) string {
	sentence = html.UnescapeString(sentence)
	if strings.HasPrefix(sentence, state+": ") || strings.HasPrefix(sentence, "unknown: ") {
		return sentence
	}
	return strings.Replace(state, "not known", "unknown", 1) + ": " + sentence
}

// listed returns what the page's list of applications says.
func (s *scene) listed() (statement, error) {
	text, err := get(s.t, s.page+"/")
	if err != nil {
		return statement{}, err
	}
	row := regexp.MustCompile(`>` + s.app + `</a></th><td><span class="state \w+">([^<]*)</span> ([^<]*)</td>`).FindStringSubmatch(text)
	if row == nil {
		return statement{}, fmt.Errorf("no row for %s", s.app)
	}
	said, err := read(sentenceOf(row[1], row[2]), time.Now())
	said.cause, said.steps = notSaid, nil
	return said, err
}

// notSaid is the cause of a tool that names only states.
const notSaid = "?"

// firing returns the names of the application's alerts that fire.
func (s *scene) firing() ([]string, error) {
	ctx, cancel := context.WithTimeout(s.t.Context(), 20*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.prometheus+"/api/v1/alerts", nil)
	if err != nil {
		return nil, err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	var answer struct {
		Data struct {
			Alerts []struct {
				State  string
				Labels map[string]string
			}
		}
	}
	if err := json.NewDecoder(resp.Body).Decode(&answer); err != nil {
		return nil, err
	}
	var names []string
	for _, a := range answer.Data.Alerts {
		if a.State == "firing" && a.Labels["app"] == s.app {
			names = append(names, a.Labels["alertname"])
		}
	}
	slices.Sort(names)
	return names, nil // an alert that is there twice fires twice
}
