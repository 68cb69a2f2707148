package consume

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weir-go/weir/cmd/weir/internal/cli"
	"github.com/weir-go/weir/cmd/weir/internal/clitest"
	"github.com/weir-go/weir/cmd/weir/internal/records"
)

func TestAnEmulatorsFunctionIsInvoked(t *testing.T) {
	server, endpoint := clitest.Kinesis(t)
	server.CreateStream("s", 1)
	for i := range 6 {
		server.Put("s", "k", fmt.Appendf(nil, `{"n":%d}`, i))
	}
	var (
		mu    sync.Mutex
		calls int
		got   []string
	)
	emulator := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var event struct {
			Records []struct{ Kinesis struct{ Data []byte } }
		}
		body, _ := io.ReadAll(r.Body)
		if err := json.Unmarshal(body, &event); err != nil || r.Method != http.MethodPost || r.Header.Get("X-Amz-Invocation-Type") != "RequestResponse" {
			t.Errorf("%s %s: %v", r.Method, r.URL, err)
		}
		mu.Lock()
		defer mu.Unlock()
		if r.URL.Path != "/2015-03-31/functions/my-app/invocations" {
			t.Errorf("the path is %s", r.URL.Path)
		}
		switch calls++; calls {
		case 1:
			w.WriteHeader(http.StatusTooManyRequests)
			_, _ = fmt.Fprint(w, `{"Reason":"ReservedFunctionConcurrentInvocationLimitExceeded"}`)
		case 2:
			w.Header().Set("X-Amz-Function-Error", "Unhandled")
			_, _ = fmt.Fprint(w, `{"errorMessage":"first time","errorType":"ValueError"}`)
		case 3:
			http.Redirect(w, r, "http://127.0.0.1:1/elsewhere", http.StatusTemporaryRedirect)
		default:
			for _, record := range event.Records {
				got = append(got, string(record.Kinesis.Data))
			}
			_, _ = fmt.Fprint(w, `{}`)
		}
	}))
	defer emulator.Close()
	c := clitest.Start(t, "", "consume", endpoint, "--stream=s", "--app=my-app", "--store=memory:", "--invoke="+emulator.URL,
		"--starting-position=TRIM_HORIZON", `--filter-criteria={"Filters":[{"Pattern":"{\"data\":{\"n\":[{\"numeric\":[\">\",1]}]}}"}]}`)
	for end := time.Now().Add(time.Minute); ; {
		mu.Lock()
		n := len(got)
		mu.Unlock()
		if n >= 4 {
			break
		}
		if time.Now().After(end) {
			t.Fatal(c.Err.String())
		}
	}
	if code := c.Interrupt(t); code != cli.ExitDone {
		t.Errorf("exit code %d", code)
	}
	if said := strings.Join(got, " "); said != `{"n":2} {"n":3} {"n":4} {"n":5}` {
		t.Errorf("the function got %s", said)
	}
	for _, why := range []string{"429 Too Many Requests", "ValueError: first time", "307 Temporary Redirect"} {
		if !strings.Contains(c.Err.String(), why) {
			t.Errorf("standard error lacks %q: %s", why, c.Err)
		}
	}
}

func TestAFunctionThatIsInvokedIsBounded(t *testing.T) {
	t.Parallel()
	server, endpoint := clitest.Kinesis(t)
	server.CreateStream("s", 1)
	server.Put("s", "k", []byte("x"))
	release := make(chan struct{})
	var calls int
	emulator := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		switch calls++; calls {
		case 1:
			select { // do not answer
			case <-r.Context().Done():
			case <-release:
			}
		case 2:
			_, _ = w.Write(make([]byte, 7<<20))
		case 3:
			_, _ = fmt.Fprint(w, `{"batchItemFailures":[{"itemIdentifier":"nonsense"}]}`)
		default:
			_, _ = fmt.Fprint(w, `null`)
		}
	}))
	defer emulator.Close()
	defer close(release)
	dead := filepath.Join(t.TempDir(), "dead.ndjson")
	c := clitest.Start(t, "", "consume", endpoint, "--stream=s", "--app=a", "--store=memory:", "--invoke="+emulator.URL, "--lambda-timeout=4s",
		"--function-response-types=ReportBatchItemFailures", "--maximum-retry-attempts=2", "--outage-grace=0", "--dead=file:"+dead)
	for end := time.Now().Add(time.Minute); ; {
		if letters, err := os.ReadFile(dead); err == nil && len(letters) > 0 {
			break
		}
		if time.Now().After(end) {
			t.Fatal(c.Err.String())
		}
		time.Sleep(10 * time.Millisecond) // poll the file
	}
	if code := c.Interrupt(t); code != cli.ExitDone {
		t.Errorf("exit code %d", code)
	}
	for _, why := range []string{"did not answer in time", "more than 6 MiB"} {
		if !strings.Contains(c.Err.String(), why) {
			t.Errorf("standard error lacks %q: %s", why, c.Err)
		}
	}
}

func TestLambdasStartingPositions(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ position, at, want string }{
		{"TRIM_HORIZON", "", "oldest"}, {"LATEST", "", "latest"},
		{"AT_TIMESTAMP", "2026-03-01T12:00:00Z", "2026-03-01T12:00:00Z"}, {"AT_TIMESTAMP", "1541139109.5", "2018-11-02T06:11:49.5Z"},
		{"AT_TIMESTAMP", "-1", ""}, {"AT_TIMESTAMP", "1h", ""}, {"LATEST", "1", ""}, {"", "1", ""}, {"latest", "", ""},
	} {
		from, err := (&lambdaFlags{position: c.position, at: c.at}).from()
		if from != c.want || (err == nil) != (c.want != "") {
			t.Errorf("%s, %s: %q, %v", c.position, c.at, from, err)
		}
		if _, err := records.ParseFrom(from, time.Now()); c.want != "" && err != nil {
			t.Errorf("--from %s: %v", from, err)
		}
	}
}
