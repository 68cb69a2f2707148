package consume

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/weir-go/weir/cmd/weir/internal/cli"
	"github.com/weir-go/weir/cmd/weir/internal/clitest"
)

func gzipped(text string) string {
	var to bytes.Buffer
	w := gzip.NewWriter(&to)
	_, _ = w.Write([]byte(text))
	_ = w.Close()
	return to.String()
}

// The filter reads decoded data, the command gets it, and records that do not match are
// acknowledged. Dead letters contain the payloads as they are in the stream.
func TestFilterAndDecodeAQueue(t *testing.T) {
	t.Parallel()
	dead := filepath.Join(t.TempDir(), "dead.ndjson")
	s, args := startQueue(t, gzipped(`{"kind":"order"}`), gzipped(`{"kind":"offer"}`), `{"kind":"order","n":2}`, "text", "\x1f\x8b\x08 torn")
	c := clitest.Start(t, "", append(args, "--decode=gzip", "--filter="+clitest.JustOrders, "--filter-not-json=fail", "--dead=file:"+dead)...)
	waitFor(t, func() bool { return s.QueueState("billing").Acknowledged == 5 })
	if code := c.Interrupt(t); code != 0 {
		t.Errorf("it ends with %d: %s", code, c.Err)
	}
	lines := c.Out.Lines()
	slices.Sort(lines)
	if !slices.Equal(lines, []string{`{"kind":"order","n":2}`, `{"kind":"order"}`}) {
		t.Errorf("it printed %q", lines)
	}
	text, err := os.ReadFile(dead)
	if said := string(text); err != nil || strings.Count(said, "\n") != 2 || !strings.Contains(said, `"data":"dGV4dA=="`) || !strings.Contains(said, "not JSON") {
		t.Errorf("the dead letters are %s, %v", text, err)
	}
}

// A record that cannot be decoded is rejected, and the others of its batch are handled.
func TestAQueueRejectsWhatItCannotDecode(t *testing.T) {
	t.Parallel()
	dead := filepath.Join(t.TempDir(), "dead.ndjson")
	s, args := startQueue(t, "one", "\x1f\x8b\x08 torn", gzipped("three"))
	c := clitest.Start(t, "", append(args, "--decode=gzip", "--dead=file:"+dead)...)
	waitFor(t, func() bool { return s.QueueState("billing").Acknowledged == 3 })
	if code := c.Interrupt(t); code != 0 {
		t.Errorf("it ends with %d: %s", code, c.Err)
	}
	if all := c.Out.String(); strings.Count(all, "\n") != 2 || !strings.Contains(all, "one\n") || !strings.Contains(all, "three\n") {
		t.Errorf("it printed %q", all)
	}
	if text, err := os.ReadFile(dead); err != nil || !strings.Contains(string(text), "--decode gzip: payload: the payload is damaged") || !strings.Contains(string(text), `"reason":"rejected"`) {
		t.Errorf("the dead letter is %s, %v", text, err)
	}
}

// An emulator's function handles the records of a queue. Only those that its answer names are
// handled again.
func TestAnEmulatorsFunctionHandlesAQueue(t *testing.T) {
	t.Parallel()
	var (
		mu  sync.Mutex
		got []string
	)
	emulator := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var event struct {
			Records []struct {
				EventID, EventSourceARN string
				Kinesis                 struct {
					SequenceNumber string
					Data           []byte
				}
			}
		}
		body, _ := io.ReadAll(r.Body)
		if err := json.Unmarshal(body, &event); err != nil || r.URL.Path != "/2015-03-31/functions/billing/invocations" {
			t.Errorf("%s: %v", r.URL, err)
		}
		mu.Lock()
		defer mu.Unlock()
		failures := []string{}
		for _, record := range event.Records {
			if !strings.Contains(record.EventSourceARN, ":queue/") || record.EventID != "queue:"+record.Kinesis.SequenceNumber {
				t.Errorf("the event is %s", body)
			}
			if data := string(record.Kinesis.Data); data == "bad" {
				failures = append(failures, fmt.Sprintf(`{"itemIdentifier":%q}`, record.Kinesis.SequenceNumber))
			} else {
				got = append(got, data)
			}
		}
		_, _ = fmt.Fprintf(w, `{"batchItemFailures":[%s]}`, strings.Join(failures, ","))
	}))
	defer emulator.Close()
	dead := filepath.Join(t.TempDir(), "dead.ndjson")
	s, args := startQueue(t, "one", "bad", "two", "three")
	c := clitest.Start(t, "", append(args, "--invoke="+emulator.URL, "--function-response-types=ReportBatchItemFailures", "--maximum-retry-attempts=1",
		"--outage-grace=0", "--retry-min=10ms", "--dead=file:"+dead)...)
	waitFor(t, func() bool { return s.QueueState("billing").Acknowledged == 4 })
	if code := c.Interrupt(t); code != 0 {
		t.Errorf("it ends with %d: %s", code, c.Err)
	}
	slices.Sort(got)
	if !slices.Equal(got, []string{"one", "three", "two"}) {
		t.Errorf("the function handled %q", got)
	}
	if text, err := os.ReadFile(dead); err != nil || !strings.Contains(string(text), `"data":"YmFk"`) || !strings.Contains(string(text), `"attempts":2`) {
		t.Errorf("the dead letter is %s, %v", text, err)
	}
}

// With --health and --metrics, a consumer of a queue is checked and scraped at one address.
func TestAConsumerOfAQueueIsObserved(t *testing.T) {
	t.Parallel()
	_, args := startQueue(t, "a", "b")
	c := clitest.Start(t, "", append(args, "--app=a", "--health=0", "--metrics=0")...)
	link := regexp.MustCompile(`http://127\.0\.0\.1:\d+/`)
	c.Err.Await(t, "the address", link.MatchString)
	base := link.FindString(c.Err.String())
	waitFor(t, func() bool { code, _ := clitest.Get(t, base+"readyz"); return code == http.StatusOK })
	if code, body := clitest.Get(t, base+"livez"); code != http.StatusOK || !strings.Contains(body, `"in_flight":`) {
		t.Errorf("/livez: %d %s", code, body)
	}
	waitFor(t, func() bool {
		_, body := clitest.Get(t, base+"metrics")
		return strings.Contains(body, `weir_queue_handled_records_total{app="a",queue="billing"} 2`) &&
			strings.Contains(body, `weir_queue_ready{app="a",queue="billing"} 1`) && strings.Contains(body, "go_goroutines ")
	})
	if code := c.Interrupt(t); code != cli.ExitDone {
		t.Errorf("exit code %d, %s", code, c.Err)
	}
}

// With --metrics-emf, a consumer of a queue writes the lines for CloudWatch.
func TestAConsumerOfAQueueWritesMetricsForCloudWatch(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "metrics")
	for _, c := range []struct {
		flags     []string
		namespace string
	}{
		{[]string{"--metrics-emf=stderr"}, "billing"},
		{[]string{"--metrics-emf=file:" + file, "--metrics-namespace=shop/a", "--app=x"}, "shop/a"},
	} {
		s, args := startQueue(t, "a", "b", "c")
		x := clitest.Start(t, "", append(args, c.flags...)...)
		waitFor(t, func() bool { return s.QueueState("billing").Acknowledged == 3 })
		if code := x.Interrupt(t); code != cli.ExitDone {
			t.Errorf("exit code %d, %s", code, x.Err)
		}
		text := x.Err.String()
		if len(c.flags) > 1 {
			written, err := os.ReadFile(file)
			if err != nil || len(emfOf(t, text)) > 0 {
				t.Errorf("%v, on standard error: %s", err, text)
			}
			text = string(written)
		}
		sum := map[string]float64{}
		for _, line := range emfOf(t, text) {
			if got := fmt.Sprint(line["_aws"]); !strings.Contains(got, "Namespace:"+c.namespace) || line["QueueName"] != "billing" || line["Operation"] != "ProcessTask" {
				t.Errorf("%v", line)
			}
			for _, name := range []string{"RecordsReceived", "RecordsProcessed", "RecordsAcknowledged"} {
				sum[name] += line[name].(float64)
			}
		}
		if fmt.Sprint(sum) != "map[RecordsAcknowledged:3 RecordsProcessed:3 RecordsReceived:3]" {
			t.Errorf("%v: %s", sum, text)
		}
	}
}

// The flags of these metrics are checked as for streams.
func TestWrongFlagsOfMetricsOfAQueueForCloudWatch(t *testing.T) {
	_, args := startQueue(t)
	for _, c := range []struct {
		more string
		code int
		want string
	}{
		{"--metrics-emf=stdout", cli.ExitUsage, `--metrics-emf "stdout": want stderr, or file:PATH`},
		{"--metrics-namespace=x", cli.ExitUsage, "add --metrics-emf stderr"},
		{"--metrics-emf=stderr --metrics-namespace=AWS/x", cli.ExitUsage, `--metrics-namespace: Namespace "AWS/x"`},
		{"--app=größe --metrics-emf=stderr", cli.ExitUsage, "unless --metrics-namespace is set"},
		{"--metrics-emf=file:" + filepath.Join(t.TempDir(), "none", "x"), cli.ExitFailed, "--metrics-emf: open "},
	} {
		if _, said := clitest.MustExit(t, c.code, append(args, strings.Fields(c.more)...)...); !strings.Contains(said, c.want) {
			t.Errorf("%s: %s", c.more, said)
		}
	}
}

// A command gets the ARN of the queue, and the ID of its record if it has one.
func TestTheEnvironmentOfACommandForAQueue(t *testing.T) {
	t.Parallel()
	_, args := startQueue(t, "one")
	c := clitest.Start(t, "", append(args, "--exec=echo $WEIR_QUEUE $WEIR_STREAM $WEIR_RECORD")...)
	said := regexp.MustCompile(`^arn:aws:kinesis:[^ ]*:queue/[^ ]+ orders [^ ]+\n$`)
	c.Out.Await(t, "the line of the command", said.MatchString)
	if code := c.Interrupt(t); code != 0 {
		t.Errorf("it ends with %d: %s", code, c.Err)
	}
}

// A stop kills a command that ignores signals, and its record stays in the queue.
func TestAStopKillsTheCommandForAQueue(t *testing.T) {
	t.Parallel()
	s, args := startQueue(t, "one")
	c := clitest.Start(t, "", append(args, "--stop-timeout=50ms", "--exec=trap '' TERM; echo begun; sleep 100; sleep 100")...)
	c.Out.Await(t, "the command", func(s string) bool { return strings.Contains(s, "begun") })
	if code := c.Interrupt(t); code != cli.ExitDone || strings.Contains(c.Err.String(), "handlers still run") {
		t.Errorf("exit code %d, %s", code, c.Err)
	}
	if now := s.QueueState("billing"); now.Acknowledged != 0 {
		t.Errorf("the queue is %+v", now)
	}
}
