package dashboard

import (
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/weir-go/weir/cmd/weir/internal/cli"
	"github.com/weir-go/weir/cmd/weir/internal/clitest"
	"github.com/weir-go/weir/cmd/weir/internal/target"
	"github.com/weir-go/weir/internal/dump"
	"github.com/weir-go/weir/lease"
)

// postForm sends a form like a browser that shows the page itself.
func postForm(t *testing.T, base string, form url.Values, headers ...string) (int, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, base+"write", strings.NewReader(form.Encode()))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set("Sec-Fetch-Site", "same-origin")
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Add(headers[i], headers[i+1])
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(body)
}

func TestDashboardChangesThings(t *testing.T) {
	server, endpoint := clitest.Kinesis(t)
	server.CreateStream("s", 2)
	dir := t.TempDir()
	store := "--store=sqlite:" + filepath.Join(dir, "leases.db")
	worker := clitest.Start(t, "", "consume", endpoint, store, "--stream=s", "--app=billing", "--worker=w1")
	clitest.MustRun(t, "one\n", "put", endpoint, "--stream=s")
	worker.Out.Await(t, "the record", func(s string) bool { return strings.Contains(s, "one") })
	c := clitest.Start(t, "", "dashboard", endpoint, store, "--addr=0", "--allow-writes", "--dump-dir="+dir)
	c.Err.Await(t, "the address", func(s string) bool {
		return pageLink.MatchString(s) && strings.Contains(s, "/, and changes things")
	})
	base := pageLink.FindStringSubmatch(c.Err.String())[1]
	get := func(path string) string {
		code, body := clitest.Get(t, base+path)
		if code != http.StatusOK {
			t.Fatalf("%s: %d %s", path, code, body)
		}
		return body
	}
	pause := url.Values{"do": {"pause"}, "app": {"billing"}, "stream": {""}, "seen": {""}}
	if code, body := postForm(t, base, pause); code != http.StatusOK || !strings.Contains(body, "The whole application is paused") {
		t.Errorf("%d %s", code, body)
	}
	if out := clitest.MustRun(t, "", "group", "resume", "--app=billing", store, "--wait=30s"); !strings.Contains(out, "is not paused any more") {
		t.Errorf("the command says %s", out)
	}
	// The streams and positions are unchanged.
	body := get("reset?app=billing&to=oldest")
	if !strings.Contains(body, "2 checkpoints would move to oldest") || !strings.Contains(body, "Workers run: w1") {
		t.Fatalf("the plan is %s", body)
	}
	form := url.Values{"do": {"reset"}, "app": {"billing"}, "to": {"oldest"}, "running": {"1"}}
	for _, name := range []string{"seen", "clock"} {
		form.Set(name, regexp.MustCompile(`(?s)name="` + name + `" value="([^"]*)"`).FindStringSubmatch(body)[1])
	}
	if code, body := postForm(t, base, form); code != http.StatusOK || !strings.Contains(body, "2 of 2 checkpoints moved to oldest") {
		t.Errorf("%d %s", code, body)
	}
	worker.Out.Await(t, "the record again", func(s string) bool { return strings.Count(s, "one") > 1 })
	saved, err := filepath.Glob(filepath.Join(dir, "weir-billing-*.ndjson"))
	if err != nil || len(saved) != 1 {
		t.Fatalf("saved are %q, %v", saved, err)
	}
	file, err := os.Open(saved[0])
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if f, err := dump.Read(file); err != nil || len(f.Leases) != 2 {
		t.Errorf("saved is %+v, %v", f, err)
	}
	if log := c.Err.String(); !strings.Contains(log, `msg="page: changed" action=reset app=billing to=oldest user="" remote=127.0.0.1:`) {
		t.Errorf("the log is %s", log)
	}
	if code := c.Interrupt(t); code != cli.ExitDone {
		t.Errorf("exit code %d, %s", code, c.Err)
	}
}

func TestDashboardBelievesTheProxyThatNamesOne(t *testing.T) {
	server, endpoint := clitest.Kinesis(t)
	server.CreateStream("s", 1)
	store := "--store=sqlite:" + filepath.Join(t.TempDir(), "leases.db")
	clitest.MustRun(t, "", "store", "create", store)
	clitest.MustRun(t, "", "group", "reset", endpoint, store, "--app=billing", "--stream=s", "--to=oldest", "--yes", "--dump="+filepath.Join(t.TempDir(), "x"))
	c := clitest.Start(t, "", "dashboard", endpoint, store, "--addr=0.0.0.0:0", "--no-kinesis", "--allow-writes", "--behind-auth", "--user-header=X-Who")
	c.Err.Await(t, "what that means", func(s string) bool { return strings.Contains(s, "can name any user in X-Who and change things") })
	base := strings.Replace(pageLink.FindStringSubmatch(strings.ReplaceAll(c.Err.String(), "[::]", "127.0.0.1"))[1], "0.0.0.0", "127.0.0.1", 1)
	for _, step := range []struct {
		headers []string
		code    int
		says    string
	}{
		{nil, http.StatusForbidden, "sent no user in X-Who"},
		{[]string{"X-Forwarded-User", "ann"}, http.StatusForbidden, "sent no user in X-Who"},
		{[]string{"X-Who", " "}, http.StatusForbidden, "sent no user in X-Who"},
		{[]string{"X-Who", "eve", "X-Who", "ann"}, http.StatusForbidden, "was sent more than once"},
		{[]string{"X-Who", "ann"}, http.StatusOK, "is paused"},
	} {
		pause := url.Values{"do": {"pause"}, "app": {"billing"}, "stream": {"s"}, "seen": {""}}
		if code, body := postForm(t, base, pause, step.headers...); code != step.code || !strings.Contains(body, step.says) {
			t.Errorf("%q: %d %s", step.headers, code, body)
		}
	}
	if log := c.Err.String(); !strings.Contains(log, `action=pause app=billing stream=s user=ann`) {
		t.Errorf("the log is %s", log)
	}
	c.Interrupt(t)
}

func TestDashboardDoesNotLetStrangersWrite(t *testing.T) {
	store := "--store=sqlite:" + filepath.Join(t.TempDir(), "leases.db")
	for want, args := range map[string][]string{
		"--allow-writes with --addr 0.0.0.0:80 lets anyone": {"--allow-writes", "--addr=0.0.0.0:80"},
		"--allow-writes with --addr [::]:80 lets anyone":    {"--allow-writes", "--addr=[::]:80"},
		"--allow-writes with --addr 10.0.0.1:80 lets":       {"--allow-writes", "--addr=10.0.0.1:80"},
		"--user-header is trusted only behind a proxy":      {"--allow-writes", "--user-header=X-Who"},
		`--user-header "a b": give the name of a header`:    {"--allow-writes", "--behind-auth", "--user-header=a b"},
		"--dump-dir applies only to --allow-writes":         {"--dump-dir=."},
		"--dump-dir /nowhere: no such file or directory":    {"--allow-writes", "--dump-dir=/nowhere"},
	} {
		if _, said := clitest.MustExit(t, cli.ExitUsage, append([]string{"dashboard", store}, args...)...); !strings.Contains(said, want) {
			t.Errorf("%q: %s, want %q", args, said, want)
		}
	}
}

func TestProgressIsNeverWrittenOver(t *testing.T) {
	dir, now := t.TempDir(), time.Now()
	seen := map[string]bool{}
	for range 3 {
		path, err := saveProgress(dir, "a/b", []byte("x"), now)
		if err != nil || seen[path] || filepath.Dir(path) != dir {
			t.Errorf("%s, %v", path, err)
		}
		seen[path] = true
	}
	if _, err := saveProgress(filepath.Join(dir, "gone"), "a", nil, now); err == nil || !strings.Contains(err.Error(), "cannot be made") {
		t.Errorf("into nowhere: %v", err)
	}
	if _, err := target.DumpProgress("a", lease.View{}, filepath.Join(dir, "weir-a_b-"+now.UTC().Format("20060102T150405Z")+".ndjson"), now); err == nil || !strings.Contains(err.Error(), "exists already") {
		t.Errorf("over a file: %v", err)
	}
}
