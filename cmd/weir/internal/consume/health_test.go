package consume

import (
	"encoding/json"
	"net"
	"net/http"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/weir-go/weir/cmd/weir/internal/cli"
	"github.com/weir-go/weir/cmd/weir/internal/clitest"
)

func TestConsumeAnswersHealthChecks(t *testing.T) {
	server, endpoint := clitest.Kinesis(t)
	server.CreateStream("s", 1)
	store := "--store=sqlite:" + filepath.Join(t.TempDir(), "leases.db")
	c := clitest.Start(t, "", "consume", endpoint, store, "--stream=s", "--app=a", "--health=0")
	link := regexp.MustCompile(`http://127\.0\.0\.1:\d+/`)
	c.Err.Await(t, "the address", link.MatchString)
	base := link.FindString(c.Err.String())
	get := func(path string) (int, string) { return clitest.Get(t, base+path) }
	if code, body := get("livez"); code != http.StatusOK || !json.Valid([]byte(body)) {
		t.Errorf("/livez: %d %s", code, body)
	}
	for end := time.Now().Add(time.Minute); ; {
		code, body := get("readyz")
		if code == http.StatusOK {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("/readyz: %d %s", code, body)
		}
	}
	if code := c.Interrupt(t); code != cli.ExitDone {
		t.Errorf("exit code %d, %s", code, c.Err)
	}
	if resp, err := http.Get(base + "livez"); err == nil {
		resp.Body.Close()
		t.Error("it still answers")
	}
}

func TestConsumeSaysWhatAStopCutsShort(t *testing.T) {
	server, endpoint := clitest.Kinesis(t)
	server.CreateStream("s", 1)
	server.Put("s", "k", []byte("x"))
	out := clitest.NewOutput()
	c := clitest.StartTo(t, out, strings.NewReader(""), "consume", endpoint, "--stream=s", "--app=a", "--store=memory:", "--stop-timeout=50ms",
		"--exec", "echo begun; exec sleep 100")
	out.Await(t, "the command", func(s string) bool { return strings.Contains(s, "begun") })
	if code := c.Interrupt(t); code != cli.ExitDone {
		t.Errorf("exit code %d, %s", code, c.Err)
	}
	if said := c.Err.String(); !strings.Contains(said, "a handler did not finish within --stop-timeout") {
		t.Errorf("it said %s", said)
	}
}

// The error for a wrong flag contains the flag's name.
func TestWrongFlagsOfAWorkerAreNamed(t *testing.T) {
	server, endpoint := clitest.Kinesis(t)
	server.CreateStream("s", 1)
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	args := []string{"consume", endpoint, "--stream=s", "--app=a", "--store=memory:"}
	if _, said := clitest.MustExit(t, cli.ExitUsage, append(args, "--health=0.0.0.0:99999")...); !strings.Contains(said, `--health "0.0.0.0:99999"`) {
		t.Errorf("an address that is none: %s", said)
	}
	if _, said := clitest.MustExit(t, cli.ExitFailed, append(args, "--health="+taken.Addr().String())...); !strings.Contains(said, "choose a port with --health") {
		t.Errorf("an address that is taken: %s", said)
	}
	for _, batch := range []string{"0", "-1", "10001"} {
		if _, said := clitest.MustExit(t, cli.ExitUsage, append(args, "--batch="+batch)...); !strings.Contains(said, "--batch "+batch+": want 1 to 10000") {
			t.Errorf("a batch of %s: %s", batch, said)
		}
	}
}
