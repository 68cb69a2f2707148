package main

import (
	"net/http"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

var pageLink = regexp.MustCompile(`the page is at (http://\S+/)`)

func TestDashboardShowsARunningApplication(t *testing.T) {
	server, endpoint := kinesisServer(t)
	server.CreateStream("s", 2)
	store := "--store=sqlite:" + filepath.Join(t.TempDir(), "leases.db")
	worker := start(t, "", "consume", endpoint, store, "--stream=s", "--app=billing", "--worker=w1")
	mustRun(t, "one\n", "put", endpoint, "--stream=s")
	worker.out.await(t, "the record", func(s string) bool { return strings.Contains(s, "one") })
	c := start(t, "", "dashboard", endpoint, store, "--addr=0")
	c.err.await(t, "the address", pageLink.MatchString)
	base := pageLink.FindStringSubmatch(c.err.String())[1]
	get := func(path string) string {
		code, body := page(t, base+path)
		if code != http.StatusOK {
			t.Fatalf("%s: %d %s", path, code, body)
		}
		return body
	}
	for end := time.Now().Add(time.Minute); ; {
		body := get("")
		if strings.Contains(body, `href="app?app=billing"`) && strings.Contains(body, "all 2 shards are handled up to now") {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("the list is %s", body)
		}
	}
	if body := get("app?app=billing"); !strings.Contains(body, "Shards of s over time") || strings.Count(body, `<rect x=`) != 2 || !strings.Contains(body, "w1") {
		t.Errorf("the application is %s", body)
	}
	if code := c.interrupt(t); code != exitDone {
		t.Errorf("exit code %d, %s", code, c.err)
	}
	if resp, err := http.Get(base); err == nil {
		resp.Body.Close()
		t.Error("it still answers")
	}
	alone := start(t, "", "dashboard", store, "--addr=0", "--no-kinesis")
	alone.err.await(t, "the address", pageLink.MatchString)
	base = pageLink.FindStringSubmatch(alone.err.String())[1]
	if body := get("app?app=billing"); !strings.Contains(body, "Without access to Kinesis") {
		t.Errorf("without Kinesis the application is %s", body)
	}
	if code := alone.interrupt(t); code != exitDone {
		t.Errorf("exit code %d, %s", code, alone.err)
	}
}

func TestDashboardWarnsWhereOthersReachIt(t *testing.T) {
	store := "--store=sqlite:" + filepath.Join(t.TempDir(), "leases.db")
	mustRun(t, "", "store", "create", store)
	c := start(t, "", "dashboard", store, "--addr=0.0.0.0:0", "--no-kinesis")
	c.err.await(t, "the warning", func(s string) bool { return strings.Contains(s, "without a password") })
	if code := c.interrupt(t); code != exitDone {
		t.Errorf("exit code %d, %s", code, c.err)
	}
}

func TestDashboardRefusesWhatItCannotServe(t *testing.T) {
	store := "--store=sqlite:" + filepath.Join(t.TempDir(), "leases.db")
	for want, args := range map[string][]string{
		"dashboard needs --store":              {"dashboard"},
		"memory: belongs to the worker":        {"dashboard", "--store=memory:"},
		`--addr "127.0.0.1:x": write it like`:  {"dashboard", store, "--addr=x"},
		`--host "http://a": give a name alone`: {"dashboard", store, "--host=http://a"},
		`weir dashboard takes no argument "x"`: {"dashboard", store, "x"},
	} {
		if _, said := refused(t, exitUsage, args...); !strings.Contains(said, want) {
			t.Errorf("%q: %s, want %q", args, said, want)
		}
	}
	if _, said := refused(t, exitFailed, "dashboard", store); !strings.Contains(said, "leases.db") {
		t.Errorf("without the file: %s", said)
	}
}
