package page_test

import (
	"bufio"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"

	"github.com/weir-go/weir/dashboard"
	"github.com/weir-go/weir/internal/proof/integration/servers"
	"github.com/weir-go/weir/kinesistest"
	"github.com/weir-go/weir/lease"
	"github.com/weir-go/weir/shard"
	"github.com/weir-go/weir/store/memstore"
)

// unread has an application with leases that nobody holds.
func unread(t *testing.T, store lease.Store, shards int) {
	t.Helper()
	var actions []lease.Action
	for i := range shards {
		actions = append(actions, lease.Action{Kind: lease.Create, Lease: lease.Lease{
			Key: lease.Key{Stream: "orders", Shard: fmt.Sprintf("shardId-%012d", i)}, Epoch: 1, Position: shard.Latest, Range: shard.HashRange{End: shard.MaxHashKey},
		}})
	}
	if _, err := store.Apply(t.Context(), "billing", actions); err != nil {
		t.Fatal(err)
	}
}

func pausedIn(t *testing.T, store lease.Store) bool {
	t.Helper()
	v, err := store.View(t.Context(), "billing", "")
	if err != nil {
		t.Fatal(err)
	}
	return len(v.Paused) > 0
}

// press clicks on a button by what a screen reader calls it, and waits for the answer.
func (s *site) press(label string) {
	s.t.Helper()
	s.goTo(chromedp.Click(fmt.Sprintf(`button[aria-label=%q]`, label), chromedp.ByQuery))
}

// says waits for a text on the page.
func (s *site) says(text string) {
	s.t.Helper()
	s.until(fmt.Sprintf(`document.body.innerText.includes(%q)`, text))
}

// fits leaves pictures of a page, wide and narrow, and checks that nothing is out of a narrow
// screen.
func (s *site) fits(name string) {
	s.t.Helper()
	s.picture(name)
	s.do(emulation.SetDeviceMetricsOverride(400, 900, 1, false))
	if got := s.number(`document.documentElement.scrollWidth`); got > 400 {
		s.t.Errorf("the page is %d wide on a screen of 400", got)
	}
	s.picture(name + "-narrow")
	s.do(emulation.SetDeviceMetricsOverride(1200, 900, 1, false))
}

func TestAWriteIsRefusedAndAWriteIsDone(t *testing.T) {
	kinesis := kinesistest.NewServer(t)
	kinesis.CreateStream("orders", 2)
	store := memstore.New()
	unread(t, store, 2)
	var lets atomic.Bool
	var saved atomic.Int32
	s := open(t, store, dashboard.Options{
		Kinesis: kinesis.Client(),
		Authorize: func(*http.Request, dashboard.Action) error {
			if !lets.Load() {
				return errors.New("only <who> is on call")
			}
			return nil
		},
		SaveProgress: func(context.Context, string, []byte) (string, error) {
			saved.Add(1)
			return "the-safe", nil
		},
	})
	s.goTo(chromedp.Navigate(s.url + "app?app=billing"))
	s.goTo(chromedp.Click(`a[href="change?app=billing"]`))
	s.fits("change")
	s.press("Pause: The whole application")
	s.says("only <who> is on call")
	if pausedIn(t, store) {
		t.Error("it is paused all the same")
	}
	s.picture("refused")

	lets.Store(true)
	s.goTo(chromedp.Click(`a[href="change?app=billing"]`))
	s.press("Pause: The whole application")
	s.says("The whole application is paused.")
	if !pausedIn(t, store) {
		t.Error("it is not paused")
	}
	s.picture("paused")

	// the same without scripts, from a form that is older than somebody else's change
	s.do(emulation.SetScriptExecutionDisabled(true))
	s.goTo(chromedp.Click(`a[href="change?app=billing"]`))
	if _, err := store.Apply(t.Context(), "billing", []lease.Action{{Kind: lease.Pause, On: false}}); err != nil {
		t.Fatal(err)
	}
	s.press("Resume: The whole application")
	s.do(chromedp.WaitVisible(`p[role="alert"]`))
	s.says("That has changed since it was shown: nothing is paused now.")

	// checkpoints: what would be done first
	s.goTo(chromedp.Click(`a[href="change?app=billing"]`))
	s.do(chromedp.SendKeys(`input[name="to"]`, "oldest"))
	s.goTo(chromedp.Submit(`input[name="to"]`))
	s.says("2 checkpoints would move to oldest")
	s.fits("reset")
	if saved.Load() != 0 {
		t.Error("looking saves progress")
	}
	s.goTo(chromedp.Click(`form[method="post"] button`))
	s.says("2 of 2 checkpoints moved to oldest.")
	s.says("the-safe")
	s.picture("moved")
	v, err := store.View(t.Context(), "billing", "")
	if err != nil || v.Leases[0].Position != shard.Oldest || saved.Load() != 1 {
		t.Errorf("%+v, %v, saved %d", v.Leases, err, saved.Load())
	}
}

// command builds the command.
func command(t *testing.T) string {
	t.Helper()
	program := filepath.Join(t.TempDir(), "weir")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", program, ".")
	build.Dir = filepath.Join("..", "..", "..", "..", "cmd", "weir")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	return program
}

var pageAt = regexp.MustCompile(`the page is at (http://\S+)/`)

// location is the one of the guide's page, with other places.
func location(t *testing.T, page string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "..", "..", "docs", "guide", "page.md"))
	if err != nil {
		t.Fatal(err)
	}
	block := regexp.MustCompile(`(?s)\tlocation /weir/ \{.*?\n\t\}`).FindString(string(text))
	for old, now := range map[string]string{"http://127.0.0.1:4568": page, "/etc/nginx/weir.users": "$dir/users"} {
		if strings.Count(block, old) != 1 {
			t.Fatalf("the guide's location has %s %d times:\n%s", old, strings.Count(block, old), block)
		}
		block = strings.ReplaceAll(block, old, now)
	}
	return block
}

// The page behind nginx as the guide has it: a password, a prefix, and who asks in the log.
func TestBehindNginxWithAPasswordAndAPrefix(t *testing.T) {
	kinesis := kinesistest.NewServer(t)
	kinesis.CreateStream("orders", 2)
	dir := t.TempDir()
	program := command(t)
	store := "--store=sqlite:" + filepath.Join(dir, "leases.db")
	run := func(args ...string) string {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), program, args...)
		cmd.Dir = dir
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("weir %v: %v\n%s", args, err, out)
		}
		return string(out)
	}
	run("store", "create", store)
	run("group", "reset", "--endpoint", kinesis.URL(), store, "--app=billing", "--stream=orders", "--to=latest", "--yes")

	page := exec.CommandContext(t.Context(), program, "dashboard", "--endpoint", kinesis.URL(), store, "--addr=127.0.0.1:0", "--allow-writes", "--behind-auth", "--host=tools.example.com", "--dump-dir="+dir)
	stderr, err := page.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := page.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(stderr)
	said, told := make(chan string, 100), make(chan struct{})
	go func() { // ends with the command
		defer close(told)
		for lines.Scan() {
			said <- lines.Text()
		}
	}()
	t.Cleanup(func() {
		_ = page.Process.Kill()
		<-told
		_ = page.Wait()
	})
	await := func(what *regexp.Regexp) []string {
		t.Helper()
		late := time.After(30 * time.Second)
		for {
			select {
			case line := <-said:
				if found := what.FindStringSubmatch(line); found != nil {
					return found
				}
			case <-late:
				t.Fatalf("the command does not say %s", what)
			}
		}
	}
	at := await(pageAt)[1]
	nginx := servers.Nginx(t, location(t, at), map[string]string{"users": "ann:{PLAIN}secret\n"})

	ask := func(target string, headers map[string]string, form string) (int, string) {
		t.Helper()
		method := http.MethodGet
		if form != "" {
			method = http.MethodPost
		}
		r, err := http.NewRequestWithContext(t.Context(), method, target, strings.NewReader(form))
		if err != nil {
			t.Fatal(err)
		}
		for name, value := range headers {
			r.Header.Set(name, value)
		}
		if host := headers["Host"]; host != "" {
			r.Host = host
		}
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		text, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return resp.StatusCode, string(text)
	}
	const pause = "do=pause&app=billing&stream=&seen="
	ours := "Basic " + base64.StdEncoding.EncodeToString([]byte("ann:secret"))
	for name, c := range map[string]struct {
		at      string
		headers map[string]string
		form    string
		code    int
		says    string
	}{
		"without a password":                  {nginx.URL, nil, "", http.StatusUnauthorized, "401"},
		"a write without a password":          {nginx.URL, map[string]string{"Sec-Fetch-Site": "same-origin"}, pause, http.StatusUnauthorized, "401"},
		"a write past the proxy":              {at, map[string]string{"Sec-Fetch-Site": "same-origin"}, pause, http.StatusForbidden, "named nobody in X-Forwarded-User"},
		"a write from another site":           {nginx.URL, map[string]string{"Sec-Fetch-Site": "cross-site", "Authorization": ours}, pause, http.StatusForbidden, "cross-origin"},
		"a write from another origin":         {nginx.URL, map[string]string{"Origin": "http://evil.example", "Authorization": ours}, pause, http.StatusForbidden, "cross-origin"},
		"a write under a name that is no one": {nginx.URL, map[string]string{"Host": "evil.example", "Sec-Fetch-Site": "same-origin", "Authorization": ours}, pause, http.StatusForbidden, "not to other names"},
		"with a password":                     {nginx.URL, map[string]string{"Authorization": ours}, "", http.StatusOK, "billing"},
		"under its name":                      {nginx.URL, map[string]string{"Host": "tools.example.com", "Authorization": ours}, "", http.StatusOK, "billing"},
	} {
		target := c.at + "/"
		if c.at == nginx.URL {
			target += "weir/"
		}
		if c.form != "" {
			target += "write"
			c.headers["Content-Type"] = "application/x-www-form-urlencoded"
		}
		if code, text := ask(target, c.headers, c.form); code != c.code || !strings.Contains(text, c.says) {
			t.Errorf("%s: %d %s", name, code, text)
		}
	}

	s := open(t, memstore.New(), dashboard.Options{})
	s.url = nginx.URL + "/weir/"
	// what a browser sends of itself is not what the page gets
	s.do(network.SetExtraHTTPHeaders(network.Headers{"Authorization": ours, "X-Forwarded-User": "eve"}))
	s.goTo(chromedp.Navigate(nginx.URL + "/weir/"))
	s.goTo(chromedp.Click(`a[href="app?app=billing"]`))
	s.until(`document.getElementById("live").textContent === "Live"`)
	s.goTo(chromedp.Click(`a[href="change?app=billing"]`))
	s.says("logged under the name ann")
	s.press("Pause: Stream orders")
	s.says("Stream orders is paused.")
	await(regexp.MustCompile(`page: changed" action=pause app=billing stream=orders user=ann remote=127\.0\.0\.1:`))
	if out := run("group", "describe", store, "--app=billing", "--endpoint", kinesis.URL()); !strings.Contains(out, "paused") {
		t.Errorf("weir group describe says %s", out)
	}
	s.goTo(chromedp.Click(`a[href="change?app=billing"]`))
	s.do(chromedp.SendKeys(`input[name="to"]`, "oldest"))
	s.goTo(chromedp.Click(`form.fields button`))
	s.says("2 checkpoints would move to oldest")
	s.goTo(chromedp.Click(`form[method="post"] button`))
	s.says("2 of 2 checkpoints moved to oldest.")
	await(regexp.MustCompile(`page: changed" action=reset app=billing to=oldest user=ann`))
	s.picture("behind-nginx")
	s.clean()
}
