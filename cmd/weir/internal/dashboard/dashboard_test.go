package dashboard

import (
	"net/http"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/weir-go/weir/cmd/weir/internal/cli"
	"github.com/weir-go/weir/cmd/weir/internal/clitest"
)

var pageLink = regexp.MustCompile(`the page is at (http://\S+/)`)

func TestDashboardShowsARunningApplication(t *testing.T) {
	server, endpoint := clitest.Kinesis(t)
	server.CreateStream("s", 2)
	store := "--store=sqlite:" + filepath.Join(t.TempDir(), "leases.db")
	worker := clitest.Start(t, "", "consume", endpoint, store, "--stream=s", "--app=billing", "--worker=w1")
	clitest.MustRun(t, "one\n", "put", endpoint, "--stream=s")
	worker.Out.Await(t, "the record", func(s string) bool { return strings.Contains(s, "one") })
	c := clitest.Start(t, "", "dashboard", endpoint, store, "--addr=0")
	c.Err.Await(t, "the address", pageLink.MatchString)
	base := pageLink.FindStringSubmatch(c.Err.String())[1]
	get := func(path string) string {
		code, body := clitest.Get(t, base+path)
		if code != http.StatusOK {
			t.Fatalf("%s: %d %s", path, code, body)
		}
		return body
	}
	for end := time.Now().Add(time.Minute); ; {
		body := get("")
		if strings.Contains(body, `href="app?app=billing"`) && strings.Contains(body, "all 2 shards are up to date") {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("the list is %s", body)
		}
	}
	if body := get("app?app=billing"); !strings.Contains(body, "Shards of s over time") || strings.Count(body, `<rect x=`) != 2 || !strings.Contains(body, "w1") {
		t.Errorf("the application is %s", body)
	}
	if code := c.Interrupt(t); code != cli.ExitDone {
		t.Errorf("exit code %d, %s", code, c.Err)
	}
	if resp, err := http.Get(base); err == nil {
		resp.Body.Close()
		t.Error("it still answers")
	}
	alone := clitest.Start(t, "", "dashboard", store, "--addr=0", "--no-kinesis")
	alone.Err.Await(t, "the address", pageLink.MatchString)
	base = pageLink.FindStringSubmatch(alone.Err.String())[1]
	if body := get("app?app=billing"); !strings.Contains(body, "Without access to Kinesis") {
		t.Errorf("without Kinesis the application is %s", body)
	}
	if code := alone.Interrupt(t); code != cli.ExitDone {
		t.Errorf("exit code %d, %s", code, alone.Err)
	}
}

func TestDashboardWarnsWhereOthersReachIt(t *testing.T) {
	store := "--store=sqlite:" + filepath.Join(t.TempDir(), "leases.db")
	clitest.MustRun(t, "", "store", "create", store)
	c := clitest.Start(t, "", "dashboard", store, "--addr=0.0.0.0:0", "--no-kinesis")
	c.Err.Await(t, "the warning", func(s string) bool { return strings.Contains(s, "without a password") })
	if code := c.Interrupt(t); code != cli.ExitDone {
		t.Errorf("exit code %d, %s", code, c.Err)
	}
}

func TestDashboardRefusesWhatItCannotServe(t *testing.T) {
	store := "--store=sqlite:" + filepath.Join(t.TempDir(), "leases.db")
	for want, args := range map[string][]string{
		"dashboard needs --store":               {"dashboard"},
		"memory: exists only inside the worker": {"dashboard", "--store=memory:"},
		`--addr "127.0.0.1:x": write it like`:   {"dashboard", store, "--addr=x"},
		`--host "http://a": give only a name`:   {"dashboard", store, "--host=http://a"},
		`weir dashboard takes no argument "x"`:  {"dashboard", store, "x"},
	} {
		if _, said := clitest.MustExit(t, cli.ExitUsage, args...); !strings.Contains(said, want) {
			t.Errorf("%q: %s, want %q", args, said, want)
		}
	}
	if _, said := clitest.MustExit(t, cli.ExitFailed, "dashboard", store); !strings.Contains(said, "leases.db") {
		t.Errorf("without the file: %s", said)
	}
}
