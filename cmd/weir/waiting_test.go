package main

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weir-go/weir/cmd/weir/internal/cli"
	"github.com/weir-go/weir/cmd/weir/internal/clitest"
)

// If a server never answers, each command ends after --connect-timeout. The error names the server.
func TestEveryCommandGivesUpOnASilentServer(t *testing.T) {
	t.Parallel()
	at := clitest.SilentServer(t)
	server, endpoint := clitest.Kinesis(t)
	server.CreateStream("s", 1)
	store := "--store=sqlite:" + t.TempDir() + "/leases.db"
	clitest.MustRun(t, `{"weir":"progress","version":1,"app":"a","leases":0,"paused":[]}`, "group", "import", "--app=a", store, "--yes", "-")
	mute := "--endpoint=http://" + at
	for _, args := range []string{
		"put --stream s " + mute + " -",
		"put --stream s --create " + mute + " -",
		"tail --stream s " + mute,
		"tail --stream s --fan-out existing --fan-out-name x " + mute,
		"consume --stream s --app a --store memory: " + mute,
		"consume --stream s --app a --store memory: --fan-out register " + mute,
		"fanout list --stream s " + mute,
		"fanout remove --stream s --name x --yes " + mute,
		"group reset --app a --stream s --to oldest --yes " + store + " " + mute,
	} {
		givesUp(t, "Kinesis at http://"+at, args)
	}
	givesUp(t, "DynamoDB at http://"+at, "migrate kcl --table billing --stream s --app a --to sqlite:x.db --dynamodb-endpoint=http://"+at+" "+endpoint)
	for url, name := range map[string]string{
		"postgres://u@" + at + "/d":                      "the store postgres://u@" + at + "/d",
		"mysql://u:p@" + at + "/d":                       "the store mysql://u:xxxxx@" + at + "/d",
		"redis://" + at:                                  "the store redis://" + at,
		"dynamodb:weir --dynamodb-endpoint=http://" + at: "DynamoDB at http://" + at,
	} {
		for _, args := range []string{
			"consume --stream s --app a " + endpoint, "consume --stream s --app a --create-store " + endpoint, "store create", "doctor --app a " + endpoint,
			"group list", "group describe --app a " + endpoint, "group lag --app a " + endpoint, "group plan --app a", "group pause --app a", "group resume --app a",
			"group drain --app a w", "group delete --app a --yes", "group export --app a -", "group import --app a --yes FILE", "group reset --app a --to oldest --yes " + endpoint,
		} {
			givesUp(t, name, args+" --store "+url)
		}
	}
}

func givesUp(t *testing.T, name, args string) {
	t.Helper()
	t.Run(args, func(t *testing.T) {
		t.Parallel()
		words := strings.Fields(args)
		if i := slices.Index(words, "FILE"); i >= 0 {
			words[i] = t.TempDir() + "/progress"
			if err := os.WriteFile(words[i], []byte(`{"weir":"progress","version":1,"app":"a","leases":0,"paused":["s"]}`), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		got := clitest.Start(t, "record\n", append(words, "--connect-timeout=500ms")...)
		code := got.Wait(t)
		if want := name + " did not answer within 500ms: "; code != cli.ExitFailed || !strings.Contains(got.Err.String(), want) {
			t.Errorf("exit code %d and %q, want %q", code, got.Err, want)
		}
	})
}

// While a worker waits for the service, it is alive but not ready. It starts when the service
// answers.
func TestConsumeWaits(t *testing.T) {
	t.Parallel()
	server, _ := clitest.Kinesis(t)
	server.CreateStream("s", 1)
	clitest.MustRun(t, "a\n", "put", "--stream=s", "--endpoint="+server.URL(), "-")
	to := strings.TrimPrefix(server.URL(), "http://")
	gate := &gate{to: to, held: make(chan struct{})}
	at := gate.listen(t)
	c := clitest.Start(t, "", "consume", "--stream=s", "--app=a", "--store=memory:", "--endpoint=http://"+at, "--connect-timeout=300ms", "--wait", "--health=127.0.0.1:0")
	var health string
	c.Err.Await(t, "health checks", func(s string) bool {
		_, after, found := strings.Cut(s, "health: ")
		health, _, _ = strings.Cut(after, "/livez")
		return found
	})
	gate.await(t, 3) // calls were ended and repeated
	for path, want := range map[string]int{"/livez": 200, "/readyz": 503} {
		answer, err := http.Get(health + path)
		if err != nil {
			t.Fatal(err)
		}
		_ = answer.Body.Close()
		if answer.StatusCode != want {
			t.Errorf("%s: %d, want %d", path, answer.StatusCode, want)
		}
	}
	close(gate.held)
	c.Out.Await(t, "the record", func(s string) bool { return s == "a\n" })
	if code := c.Interrupt(t); code != cli.ExitDone {
		t.Errorf("exit code %d, %s", code, c.Err)
	}
}

// gate is a proxy that does not answer until held is closed. Then it forwards requests to the
// server behind it.
type gate struct {
	to   string
	held chan struct{}
	more chan struct{} // receives one element for each call that is not answered
}

func (g *gate) listen(t *testing.T) string {
	t.Helper()
	target, err := url.Parse("http://" + g.to)
	if err != nil {
		t.Fatal(err)
	}
	g.more = make(chan struct{}, 100)
	proxy := httputil.NewSingleHostReverseProxy(target)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		// Without reading the body, the server does not notice that the client disconnects.
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		select {
		case <-g.held:
			proxy.ServeHTTP(w, r)
		default:
			g.more <- struct{}{}
			<-r.Context().Done()
		}
	}))
	t.Cleanup(s.Close)
	return s.Listener.Addr().String()
}

func (g *gate) await(t *testing.T, calls int) {
	t.Helper()
	late := time.After(time.Minute)
	for range calls {
		select {
		case <-g.more:
		case <-late:
			t.Fatal("it does not ask again")
		}
	}
}
