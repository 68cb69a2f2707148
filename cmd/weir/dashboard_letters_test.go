package main

import (
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var letterInput = regexp.MustCompile(`name="letter" value="([^"]*)"`)

// A record is given up by a worker, shown by the page, and handed to the page's command.
func TestDashboardHandsLettersToACommand(t *testing.T) {
	server, endpoint := kinesisServer(t)
	server.CreateStream("s", 1)
	dir := t.TempDir()
	store, dead := "--store=sqlite:"+filepath.Join(dir, "leases.db"), "--dead=file:"+filepath.Join(dir, "dead.ndjson")
	mustRun(t, "bad\n", "put", endpoint, "--stream=s")
	worker := start(t, "", "consume", endpoint, store, "--stream=s", "--app=billing", "--from=oldest", "--exec=false", "--attempts=1", "--patience=0s", dead)
	worker.err.await(t, "the letter", func(string) bool {
		text, err := os.ReadFile(filepath.Join(dir, "dead.ndjson"))
		return err == nil && strings.Contains(string(text), `"reason":"attempts"`)
	})
	again := filepath.Join(dir, "again")
	c := start(t, "", "dashboard", store, "--addr=0", "--no-kinesis", dead, "--allow-writes", "--retry-exec=cat >> "+again, "--dump-dir="+dir)
	c.err.await(t, "the address", pageLink.MatchString)
	base := pageLink.FindStringSubmatch(c.err.String())[1]
	_, letters := page(t, base+"letters?app=billing")
	ids := letterInput.FindAllStringSubmatch(letters, -1)
	if len(ids) != 1 || strings.Contains(letters, "bad") {
		t.Fatalf("the page is %s", letters)
	}
	form := url.Values{"do": {"retry-letters"}, "app": {"billing"}, "letter": {ids[0][1]}}
	if code, body := postForm(t, base, form); code != http.StatusOK || !strings.Contains(body, "1 of 1 letter was handled again.") {
		t.Errorf("%d %s", code, body)
	}
	if text, err := os.ReadFile(again); err != nil || string(text) != "bad\n" {
		t.Errorf("the command got %q, %v", text, err)
	}
	if _, letters := page(t, base+"letters?app=billing"); !strings.Contains(letters, "There are none") {
		t.Errorf("the page is %s", letters)
	}
	for _, of := range []*command{c, worker} {
		if code := of.interrupt(t); code != exitDone {
			t.Errorf("exit code %d, %s", code, of.err)
		}
	}
}

// The queue of workers on this machine, which the page cannot list, is not in its way.
func TestDashboardLeavesAQueueOfTheEnvironmentAlone(t *testing.T) {
	store := "--store=sqlite:" + filepath.Join(t.TempDir(), "leases.db")
	mustRun(t, "", "store", "create", store)
	t.Setenv(letterVariable, "sqs:http://127.0.0.1:1/q")
	c := start(t, "", "dashboard", store, "--addr=0", "--no-kinesis")
	c.err.await(t, "the address", pageLink.MatchString)
	if code := c.interrupt(t); code != exitDone {
		t.Errorf("exit code %d, %s", code, c.err)
	}
}

func TestDashboardRefusesLettersThatItCannotHandle(t *testing.T) {
	dir := t.TempDir()
	server, endpoint := kinesisServer(t)
	server.CreateStream("s", 1)
	store, dead := "--store=sqlite:"+filepath.Join(dir, "leases.db"), "--dead=file:"+filepath.Join(dir, "dead.ndjson")
	mustRun(t, "", "store", "create", store)
	for want, args := range map[string][]string{
		"give --allow-writes, too":           {dead, "--retry-exec=cat"},
		"say with --dead where they are":     {"--allow-writes", "--retry-exec=cat"},
		"are for --retry-exec":               {dead, "--input=json"},
		"a queue cannot be listed":           {"--dead=sqs:http://127.0.0.1:1/q"},
		"--dead":                             {"--dead=nowhere"},
		"a stream keeps no marks, so each w": {"--dead=kinesis:s", endpoint, "--allow-writes", "--retry-exec=cat"},
	} {
		if _, said := refused(t, exitUsage, append([]string{"dashboard", store, "--no-kinesis"}, args...)...); !strings.Contains(said, want) {
			t.Errorf("%q: %s, want %q", args, said, want)
		}
	}
	if _, said := refused(t, exitFailed, "dashboard", store, "--no-kinesis", dead); !strings.Contains(said, "dead.ndjson") {
		t.Errorf("without the file: %s", said)
	}
}
