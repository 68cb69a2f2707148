package costs_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weir-go/weir/internal/proof/integration/servers"
	"github.com/weir-go/weir/kinesistest"
	"github.com/weir-go/weir/shard"
)

// weighing is a proxy for a DynamoDB server that records the cost of each request.
type weighing struct {
	to string

	mu  sync.Mutex
	sum cost
}

func (w *weighing) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	var in map[string]any
	if err == nil {
		err = json.Unmarshal(body, &in)
	}
	if err != nil {
		http.Error(rw, err.Error(), http.StatusBadRequest)
		return
	}
	_, kind, _ := strings.Cut(r.Header.Get("X-Amz-Target"), ".")
	if kind != "DescribeTable" && kind != "DescribeTimeToLive" {
		in["ReturnConsumedCapacity"] = "TOTAL"
	}
	if body, err = json.Marshal(in); err != nil {
		http.Error(rw, err.Error(), http.StatusBadRequest)
		return
	}
	on, err := http.NewRequestWithContext(r.Context(), r.Method, w.to, bytes.NewReader(body))
	if err != nil {
		http.Error(rw, err.Error(), http.StatusBadGateway)
		return
	}
	on.Header = r.Header.Clone()
	on.Header.Del("Accept-Encoding")
	resp, err := http.DefaultClient.Do(on)
	if err != nil {
		http.Error(rw, err.Error(), http.StatusBadGateway)
		return
	}
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		http.Error(rw, err.Error(), http.StatusBadGateway)
		return
	}
	var out struct {
		ConsumedCapacity struct{ CapacityUnits float64 }
	}
	_ = json.Unmarshal(text, &out) // requests without a cost, or batches
	w.mu.Lock()
	w.sum.requests++
	w.sum.kinds[kind]++
	switch kind {
	case "GetItem", "Query", "Scan":
		w.sum.reads += out.ConsumedCapacity.CapacityUnits
	case "DescribeTable", "DescribeTimeToLive": // free
	default: // unexpected for a program that only reads
		w.sum.writes++
	}
	w.mu.Unlock()
	rw.Header().Set("Content-Type", resp.Header.Get("Content-Type"))
	if sum := resp.Header.Get("X-Amz-Crc32"); sum != "" {
		rw.Header().Set("X-Amz-Crc32", sum)
	}
	rw.WriteHeader(resp.StatusCode)
	_, _ = rw.Write(text)
}

// take returns the sum and resets it.
func (w *weighing) take() cost {
	w.mu.Lock()
	defer w.mu.Unlock()
	sum := w.sum
	w.sum = cost{kinds: map[string]int{}}
	return sum
}

func (w *weighing) looks() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.sum.kinds["Query"]
}

// watching is a process of the command that watches the application.
type watching struct {
	t    *testing.T
	link string
	stop func()
}

var address = regexp.MustCompile(`http://127\.0\.0\.1:\d+/`)

func startWatching(t *testing.T, program string, args ...string) watching {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Env = append(os.Environ(), "AWS_REGION="+servers.Region, "AWS_ACCESS_KEY_ID="+servers.AccessKeyID, "AWS_SECRET_ACCESS_KEY="+servers.SecretAccessKey)
	said, err := cmd.StderrPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		cancel()
		t.Fatal(err)
	}
	w := watching{t: t, stop: func() {
		cancel()
		_ = cmd.Wait()
	}}
	t.Cleanup(w.stop)
	var text strings.Builder
	for buf := make([]byte, 4096); w.link == ""; {
		n, err := said.Read(buf)
		text.Write(buf[:n])
		w.link = address.FindString(text.String())
		if err != nil && w.link == "" {
			t.Fatalf("%s %s: %v: %s", program, args[0], err, text.String())
		}
	}
	drained := make(chan struct{})
	go func() { // ends with the process
		defer close(drained)
		_, _ = io.Copy(io.Discard, said)
	}()
	t.Cleanup(func() { <-drained })
	return w
}

// get requests a file of the web page and requires that it exists.
func (w watching) get(path string) {
	w.t.Helper()
	resp, err := http.Get(w.link + path)
	if err != nil {
		w.t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	if _, err := io.Copy(io.Discard, resp.Body); err != nil || resp.StatusCode != http.StatusOK {
		w.t.Fatalf("%s: %s, %v", path, resp.Status, err)
	}
}

// TestWatchingAThousandLeases prints how much the exporter and the web page read in an hour.
func TestWatchingAThousandLeases(t *testing.T) {
	const leases, workers = 1000, 20
	s := servers.DynamoDBLocal(t)
	m, _ := dynamo(t, s, "watched")
	assembleAt(m, leases, workers, func(int) shard.Position { return shard.Oldest })
	kinesis := kinesistest.NewServer(t, kinesistest.Config{NoLimits: true, ShardLimit: leases})
	kinesis.CreateStream("orders", leases)
	w := &weighing{to: s.URL, sum: cost{kinds: map[string]int{}}}
	front := httptest.NewServer(w)
	t.Cleanup(front.Close)
	program := filepath.Join(t.TempDir(), "weir")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", program, ".")
	build.Dir = filepath.Join("..", "..", "..", "..", "cmd", "weir")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	at := []string{"--store", "dynamodb:watched", "--dynamodb-endpoint", front.URL, "--endpoint", kinesis.URL(), "--addr", "0"}
	calls := func() int { return kinesis.Requests("GetRecords") + kinesis.Requests("GetShardIterator") }

	// measured runs a watcher from one read to a later one, and extrapolates the cost to an hour.
	measured := func(what string, looks int, path string, args ...string) cost {
		t.Helper()
		x := startWatching(t, program, append(args, at...)...)
		defer x.stop()
		often := time.NewTicker(100 * time.Millisecond)
		defer often.Stop()
		ask := time.NewTicker(time.Second) // like the page
		defer ask.Stop()
		next := func() (began time.Time) { // waits for the end of the next read
			before, end := w.looks(), time.Now().Add(time.Minute)
			var last int
			var changed time.Time
			for began.IsZero() || time.Since(changed) < 2*time.Second {
				if n := w.looks() + calls(); w.looks() > before && n != last {
					last, changed = n, time.Now()
					if began.IsZero() {
						began = changed
					}
				}
				select {
				case <-ask.C:
					if path != "" && began.IsZero() {
						x.get(path)
					}
				case <-often.C:
				}
				if time.Now().After(end) {
					t.Fatalf("%s: it does not look, or without end", what)
				}
			}
			return began
		}
		began := next()
		w.take()
		read := calls()
		var ended time.Time
		for range looks {
			ended = next()
		}
		took, c := ended.Sub(began), w.take()
		hour := float64(time.Hour) / float64(took)
		t.Logf("%s: %.0f read units, %.0f requests and %.0f calls of Kinesis an hour (%d looks in %v: %s)", what, c.reads*hour, float64(c.requests)*hour, float64(calls()-read)*hour,
			looks, took.Round(100*time.Millisecond), c.said())
		if c.writes > 0 || c.reads == 0 {
			t.Errorf("%s: %v writes, %v read units: %s", what, c.writes, c.reads, c.said())
		}
		return c
	}
	// Subtract the cost of opening the store.
	page := startWatching(t, program, append([]string{"dashboard"}, at...)...)
	page.get("page.css")
	quiet := time.NewTimer(3 * time.Second)
	<-quiet.C
	w.take()
	quiet.Reset(5 * time.Second)
	<-quiet.C
	if c := w.take(); c.requests > 0 || calls() > 0 {
		t.Errorf("a page that nobody has open makes %s, and %d calls of Kinesis", c.said(), calls())
	}
	page.stop()
	if !*full { // the cost of one read
		measured("the exporter, with a look each 4 s", 1, "", "exporter", "--app", app, "--every", "4s")
		measured("the page, while somebody has the application open", 1, "app?app="+app+"&part=1", "dashboard")
		return
	}
	measured("the exporter, with --app", 4, "", "exporter", "--app", app)
	measured("the exporter, of all applications", 4, "", "exporter")
	measured("the exporter, with --no-kinesis", 2, "", "exporter", "--app", app, "--no-kinesis")
	measured("the page, while somebody has the application open", 10, "app?app="+app+"&part=1", "dashboard")
	measured("the page, while somebody has the list open", 10, "?part=1", "dashboard")
	measured("the page with --no-kinesis, while somebody has the application open", 4, "app?app="+app+"&part=1", "dashboard", "--no-kinesis")
}
