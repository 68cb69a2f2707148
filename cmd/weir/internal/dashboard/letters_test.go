package dashboard

import (
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/weir-go/weir/cmd/weir/internal/cli"
	"github.com/weir-go/weir/cmd/weir/internal/clitest"
)

var letterInput = regexp.MustCompile(`name="letter" value="([^"]*)"`)

// A worker dead-letters a record. The page shows the dead letter, and passes it to the command for
// retries.
func TestDashboardHandsLettersToACommand(t *testing.T) {
	server, endpoint := clitest.Kinesis(t)
	server.CreateStream("s", 1)
	dir := t.TempDir()
	store, dead := "--store=sqlite:"+filepath.Join(dir, "leases.db"), "--dead=file:"+filepath.Join(dir, "dead.ndjson")
	clitest.MustRun(t, "bad\n", "put", endpoint, "--stream=s")
	worker := clitest.Start(t, "", "consume", endpoint, store, "--stream=s", "--app=billing", "--from=oldest", "--exec=false", "--max-attempts=1", "--outage-grace=0s", dead)
	worker.Err.Await(t, "the letter", func(string) bool {
		text, err := os.ReadFile(filepath.Join(dir, "dead.ndjson"))
		return err == nil && strings.Contains(string(text), `"reason":"attempts"`)
	})
	again := filepath.Join(dir, "again")
	c := clitest.Start(t, "", "dashboard", store, "--addr=0", "--no-kinesis", dead, "--allow-writes", "--retry-exec=cat >> "+again, "--dump-dir="+dir)
	c.Err.Await(t, "the address", pageLink.MatchString)
	base := pageLink.FindStringSubmatch(c.Err.String())[1]
	_, letters := clitest.Get(t, base+"letters?app=billing")
	ids := letterInput.FindAllStringSubmatch(letters, -1)
	if len(ids) != 1 || strings.Contains(letters, "bad") {
		t.Fatalf("the page is %s", letters)
	}
	form := url.Values{"do": {"retry-letters"}, "app": {"billing"}, "letter": {ids[0][1]}}
	if code, body := postForm(t, base, form); code != http.StatusOK || !strings.Contains(body, "1 of 1 dead letter was handled again.") {
		t.Errorf("%d %s", code, body)
	}
	if text, err := os.ReadFile(again); err != nil || string(text) != "bad\n" {
		t.Errorf("the command got %q, %v", text, err)
	}
	if _, letters := clitest.Get(t, base+"letters?app=billing"); !strings.Contains(letters, "There are none") {
		t.Errorf("the page is %s", letters)
	}
	for _, of := range []*clitest.Command{c, worker} {
		if code := of.Interrupt(t); code != cli.ExitDone {
			t.Errorf("exit code %d, %s", code, of.Err)
		}
	}
}

// The environment may set a queue of dead letters for the workers of this machine. The page ignores
// the queue, because it cannot list the dead letters of a queue.
func TestDashboardLeavesAQueueOfTheEnvironmentAlone(t *testing.T) {
	store := "--store=sqlite:" + filepath.Join(t.TempDir(), "leases.db")
	clitest.MustRun(t, "", "store", "create", store)
	t.Setenv(cli.DeadVariable, "sqs:http://127.0.0.1:1/q")
	c := clitest.Start(t, "", "dashboard", store, "--addr=0", "--no-kinesis")
	c.Err.Await(t, "the address", pageLink.MatchString)
	if code := c.Interrupt(t); code != cli.ExitDone {
		t.Errorf("exit code %d, %s", code, c.Err)
	}
}

func TestDashboardRefusesLettersThatItCannotHandle(t *testing.T) {
	dir := t.TempDir()
	server, endpoint := clitest.Kinesis(t)
	server.CreateStream("s", 1)
	store, dead := "--store=sqlite:"+filepath.Join(dir, "leases.db"), "--dead=file:"+filepath.Join(dir, "dead.ndjson")
	clitest.MustRun(t, "", "store", "create", store)
	for want, args := range map[string][]string{
		"add --allow-writes":                       {dead, "--retry-exec=cat"},
		"add --dead with the place where they are": {"--allow-writes", "--retry-exec=cat"},
		"apply only to --retry-exec":               {dead, "--input=json"},
		"a queue cannot be listed":                 {"--dead=sqs:http://127.0.0.1:1/q"},
		"--dead":                                   {"--dead=nowhere"},
		"a stream stores no states, so each":       {"--dead=kinesis:s", endpoint, "--allow-writes", "--retry-exec=cat"},
	} {
		if _, said := clitest.MustExit(t, cli.ExitUsage, append([]string{"dashboard", store, "--no-kinesis"}, args...)...); !strings.Contains(said, want) {
			t.Errorf("%q: %s, want %q", args, said, want)
		}
	}
	if _, said := clitest.MustExit(t, cli.ExitFailed, "dashboard", store, "--no-kinesis", dead); !strings.Contains(said, "dead.ndjson") {
		t.Errorf("without the file: %s", said)
	}
}
