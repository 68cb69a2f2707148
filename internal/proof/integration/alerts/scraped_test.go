package alerts_test

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/weir-go/weir/internal/proof/integration/servers"
	"github.com/weir-go/weir/kinesistest"
)

// factor is the number by which the times in the rules are divided.
const factor = 20

var (
	spans   = regexp.MustCompile(`(for: |interval: |\[)(\d+)([smh])`)
	storeUp = regexp.MustCompile(`(weir_store_up_timestamp_seconds\) > )(\d+)`)
)

// faster returns the rules with shorter times. Detecting a stalled shard still takes its two
// minutes.
func faster(text string) string {
	// A worker sends a heartbeat each second, and is scraped as often.
	text = storeUp.ReplaceAllString(text, "${1}6")
	return spans.ReplaceAllStringFunc(text, func(s string) string {
		m := spans.FindStringSubmatch(s)
		n, _ := strconv.Atoi(m[2])
		seconds := max(1, n*map[string]int{"s": 1, "m": 60, "h": 3600}[m[3]]/factor)
		return fmt.Sprintf("%s%ds", m[1], seconds)
	})
}

// workers runs processes of the command.
type workers struct {
	t       *testing.T
	program string
	args    []string
	mu      sync.Mutex
	running map[int]*exec.Cmd
}

// start starts a worker with metrics on a port.
func (w *workers) start(port int, more ...string) {
	w.t.Helper()
	w.run(port, append(append(slices.Clone(w.args), "--metrics", strconv.Itoa(port), "--worker", strconv.Itoa(port)), more...)...)
}

// run starts a process with metrics on a port.
func (w *workers) run(port int, args ...string) {
	w.t.Helper()
	cmd := exec.Command(w.program, args...)
	cmd.Dir = w.t.TempDir()
	cmd.Env = append(os.Environ(), "AWS_REGION="+servers.Region, "AWS_ACCESS_KEY_ID="+servers.AccessKeyID, "AWS_SECRET_ACCESS_KEY="+servers.SecretAccessKey)
	log, err := os.Create(filepath.Join(cmd.Dir, "log"))
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() {
		_ = log.Close()
		if said, err := os.ReadFile(log.Name()); err == nil && w.t.Failed() {
			w.t.Logf("worker %d said:\n%.3000s", port, said)
		}
	})
	cmd.Stdout, cmd.Stderr = nil, log
	if err := cmd.Start(); err != nil {
		w.t.Fatal(err)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.running[port] = cmd
}

// killAll kills all processes.
func (w *workers) killAll() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for port, cmd := range w.running {
		_ = cmd.Process.Signal(syscall.SIGKILL)
		_ = cmd.Wait()
		delete(w.running, port)
	}
}

// watcher queries Prometheus for alerts that fire.
type watcher struct {
	t   *testing.T
	url string
}

func (w watcher) firing(ctx context.Context) (names []string, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, w.url+"/api/v1/alerts", nil)
	if err != nil {
		return nil, err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	defer func() { _ = resp.Body.Close() }()
	var answer struct {
		Data struct {
			Alerts []struct {
				State  string
				Labels map[string]string
			}
		}
	}
	if err := json.NewDecoder(resp.Body).Decode(&answer); err != nil {
		return nil, err
	}
	for _, a := range answer.Data.Alerts {
		if a.State == "firing" {
			names = append(names, a.Labels["alertname"])
		}
	}
	slices.Sort(names)
	return slices.Compact(names), nil
}

// until waits until all of the alerts fire. If fire is false, it waits until none of the alerts
// fires.
func (w watcher) until(fire bool, within time.Duration, alerts ...string) {
	w.t.Helper()
	began := time.Now()
	ctx, cancel := context.WithTimeout(w.t.Context(), within)
	defer cancel()
	every := time.NewTicker(time.Second)
	defer every.Stop()
	var last []string
	for {
		now, err := w.firing(ctx)
		if err == nil {
			last = now
			if !slices.ContainsFunc(alerts, func(a string) bool { return slices.Contains(now, a) != fire }) {
				w.t.Logf("%s fires: %v, after %s; all that fires: %v", strings.Join(alerts, " and "), fire, time.Since(began).Round(time.Second), now)
				return
			}
		} else if !errors.Is(err, context.DeadlineExceeded) {
			w.t.Fatal(err)
		}
		select {
		case <-every.C:
		case <-ctx.Done():
			w.t.Fatalf("%v fires: want %v within %s; what fires is %v", alerts, fire, within, last)
		}
	}
}

// full adds an alert that takes long: a shard counts as stalled only after two minutes without
// progress.
var full = flag.Bool("full", false, "also show the alert of a shard that has stalled, which takes some three minutes")

// Six alerts fire and end during faults of real workers. Without -full there are only five.
func TestAlertsOfRealWorkers(t *testing.T) {
	t.Parallel()
	ports := []int{freePort(t), freePort(t)}
	prometheus := scraping(t, ports...)
	kinesis := kinesistest.NewServer(t)
	kinesis.CreateStream("orders", 4)
	store := servers.Redis(t)
	dir := t.TempDir()
	program := built(t)
	fails, hangs := filepath.Join(dir, "fails"), filepath.Join(dir, "hangs")
	w := &workers{t: t, program: program, running: map[int]*exec.Cmd{}, args: []string{
		"consume", "--endpoint", kinesis.URL(), "--stream", "orders", "--app", "billing", "--store", "redis://" + "127.0.0.1:" + store.Port() + "/0", "--create-store",
		"--retry-max", "1s", "--exec", fmt.Sprintf("cat >/dev/null; while test -e %s; do sleep .2; done; test ! -e %s", hangs, fails),
	}}
	t.Cleanup(w.killAll)
	startAll := func(more ...string) {
		for _, port := range ports {
			w.start(port, more...)
		}
	}
	touch := func(name string) {
		if err := os.WriteFile(name, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	remove := func(name string) {
		if err := os.Remove(name); err != nil {
			t.Fatal(err)
		}
	}
	alerts := watcher{t, prometheus.URL}
	startAll()
	all := []string{"WeirUnread", "WeirNoLeader", "WeirShardStalled", "WeirHandlerFailing", "WeirDeadLetters", "WeirStoreDown"}
	alerts.until(false, time.Minute, all...)

	touch(fails)
	kinesis.Put("orders", "k", []byte("x"))
	alerts.until(true, 2*time.Minute, "WeirHandlerFailing")
	remove(fails)
	alerts.until(false, time.Minute, "WeirHandlerFailing")

	store.Suspend()
	alerts.until(true, 2*time.Minute, "WeirStoreDown", "WeirNoLeader")
	store.Resume()
	alerts.until(false, 2*time.Minute, "WeirStoreDown", "WeirNoLeader")

	w.killAll()
	alerts.until(true, 2*time.Minute, "WeirUnread", "WeirNoLeader")
	startAll("--max-attempts", "2", "--dead", "file:"+filepath.Join(dir, "dead.ndjson"), "--outage-grace", "1s")
	alerts.until(false, time.Minute, "WeirUnread", "WeirNoLeader")

	touch(fails)
	kinesis.Put("orders", "k", []byte("never"))
	alerts.until(true, 2*time.Minute, "WeirDeadLetters")
	remove(fails)
	alerts.until(false, 2*time.Minute, "WeirDeadLetters")

	if !*full {
		return
	}
	touch(hangs)
	kinesis.Put("orders", "k", []byte("long"))
	alerts.until(true, 4*time.Minute, "WeirShardStalled")
	remove(hangs)
	alerts.until(false, 2*time.Minute, "WeirShardStalled")
}

// scraping starts a Prometheus server that scrapes the ports each second and uses the faster rules.
func scraping(t *testing.T, ports ...int) *servers.Server {
	t.Helper()
	file := filepath.Join(t.TempDir(), "rules.yaml")
	if err := os.WriteFile(file, []byte(faster(rules(t))), 0o600); err != nil {
		t.Fatal(err)
	}
	targets := make([]string, len(ports))
	for i, port := range ports {
		targets[i] = fmt.Sprintf("%q", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	}
	return servers.Prometheus(t, fmt.Sprintf(`global: {scrape_interval: 1s, evaluation_interval: 1s}
rule_files: [%q]
scrape_configs:
  - job_name: weir
    static_configs: [{targets: [%s]}]
`, file, strings.Join(targets, ", ")))
}

// built builds the command and returns its path.
func built(t *testing.T) string {
	t.Helper()
	program := filepath.Join(t.TempDir(), "weir")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", program, ".")
	build.Dir = filepath.Join("..", "..", "..", "..", "cmd", "weir")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	return program
}

// freePort returns the number of an unused port.
func freePort(t *testing.T) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	return l.Addr().(*net.TCPAddr).Port
}
