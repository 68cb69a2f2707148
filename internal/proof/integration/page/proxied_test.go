package page_test

import (
	"bufio"
	"html"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/weir-go/weir/kinesistest"
)

var repository = filepath.Join("..", "..", "..", "..")

// setUp is a configuration from the guide for the page behind a proxy.
type setUp struct {
	command []string // arguments of weir
	config  string   // configuration of the proxy
}

// guide reads the configuration below a heading on the guide's page.
func guide(t *testing.T, heading, language string) setUp {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(repository, "docs", "guide", "page.md"))
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile(`(?s)\n### ` + regexp.QuoteMeta(heading) + "\n\n    weir ([^\n]*)\n\n```" + language + "\n(.*?)\n```\n").FindStringSubmatch(string(text))
	if found == nil {
		t.Fatalf("the guide has no command with a block of %s under %q", language, heading)
	}
	return setUp{strings.Fields(found[1]), found[2]}
}

// elsewhere replaces addresses in a configuration. Each address must occur once.
func elsewhere(t *testing.T, config string, places map[string]string) string {
	t.Helper()
	for old, now := range places {
		if n := strings.Count(config, old); n != 1 {
			t.Fatalf("the guide has %s %d times:\n%s", old, n, config)
		}
		config = strings.ReplaceAll(config, old, now)
	}
	return config
}

// proxied is the command "weir dashboard" behind a proxy. Its application has two shards of the
// stream orders.
type proxied struct {
	t       *testing.T
	url     string // address that bypasses the proxy
	program string
	dir     string
	kinesis *kinesistest.Server
	lines   chan string // output of the command; closed when the command has ended
	log     []string    // lines that were awaited, and earlier ones
}

var pageAt = regexp.MustCompile(`the page is at (http://\S+)/`)

// serve runs the command until the test ends. It uses the arguments of the guide, with another port
// and another Kinesis server.
func serve(t *testing.T, args []string) *proxied {
	t.Helper()
	dir := t.TempDir()
	p := &proxied{t: t, dir: dir, program: filepath.Join(dir, "weir"), kinesis: kinesistest.NewServer(t), lines: make(chan string, 100)}
	p.kinesis.CreateStream("orders", 2)
	build := exec.CommandContext(t.Context(), "go", "build", "-o", p.program, ".")
	build.Dir = filepath.Join(repository, "cmd", "weir")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	p.run("store", "create", guideStore)
	p.run("group", "reset", "--endpoint", p.kinesis.URL(), guideStore, "--app=billing", "--stream=orders", "--to=latest", "--yes")

	page := exec.CommandContext(t.Context(), p.program, append(args, "--endpoint", p.kinesis.URL(), "--addr=127.0.0.1:0")...)
	page.Dir = dir
	stderr, err := page.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := page.Start(); err != nil {
		t.Fatal(err)
	}
	go func() { // ends with the command
		defer close(p.lines)
		for lines := bufio.NewScanner(stderr); lines.Scan(); {
			p.lines <- lines.Text()
		}
	}()
	t.Cleanup(func() {
		_ = page.Process.Kill()
		for line := range p.lines {
			p.log = append(p.log, line)
		}
		_ = page.Wait()
	})
	p.url = p.await(pageAt)[1]
	return p
}

// guideStore is the flag for the store in the guide.
const guideStore = "--store=sqlite:billing.db"

// run runs another weir command and returns its output.
func (p *proxied) run(args ...string) string {
	p.t.Helper()
	cmd := exec.CommandContext(p.t.Context(), p.program, args...)
	cmd.Dir = p.dir
	out, err := cmd.CombinedOutput()
	if err != nil {
		p.t.Fatalf("weir %v: %v\n%s", args, err, out)
	}
	return string(out)
}

// await waits until the command prints a matching line, and returns the match.
func (p *proxied) await(what *regexp.Regexp) []string {
	p.t.Helper()
	late := time.After(30 * time.Second)
	for {
		select {
		case line, more := <-p.lines:
			if !more {
				p.t.Fatalf("the command has ended and did not say %s:\n%s", what, strings.Join(p.log, "\n"))
			}
			p.log = append(p.log, line)
			if found := what.FindStringSubmatch(line); found != nil {
				return found
			}
		case <-late:
			p.t.Fatalf("the command does not say %s", what)
		}
	}
}

var (
	forms   = regexp.MustCompile(`(?s)<form.*?</form>`)
	actions = regexp.MustCompile(`action="([^"]*)"`)
	hiddens = regexp.MustCompile(`type="hidden" name="([^"]*)" value="([^"]*)"`)
)

// form finds the form of a page that has a button with the given text. It returns the form's action
// and fields.
func form(t *testing.T, page, button string) (action string, sends url.Values) {
	t.Helper()
	for _, text := range forms.FindAllString(page, -1) {
		to := actions.FindStringSubmatch(text)
		if to == nil || !strings.Contains(text, button) {
			continue
		}
		sends = url.Values{}
		for _, field := range hiddens.FindAllStringSubmatch(text, -1) {
			sends.Add(field[1], html.UnescapeString(field[2]))
		}
		return to[1], sends
	}
	t.Fatalf("there is no form with %q on the page:\n%s", button, page)
	return "", nil
}
