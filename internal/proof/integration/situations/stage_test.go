package situations_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/big"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"
	"github.com/aws/aws-sdk-go-v2/service/kinesis/types"

	"github.com/weir-go/weir/internal/proof/integration/servers"
)

// world is what all situations share: the command, Kinesis and Prometheus.
type world struct {
	program    string
	awsDir     string // folder of the AWS CLI
	kinesis    string // URL of weir local
	client     *kinesis.Client
	prometheus string
	targets    string // path of the file with what Prometheus scrapes

	mu      sync.Mutex // guards scraped
	scraped []string
}

// stage is a store with the tools that observe it.
type stage struct {
	*world
	store     string // URL
	observers *proxy // between the tools and Kinesis
	page      string // URL
	exporter  string // URL
}

// newWorld starts weir local and Prometheus.
func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{program: build(t), targets: filepath.Join(t.TempDir(), "targets.json")}
	w.awsDir = filepath.Dir(servers.Python(t, "").Path)
	local := start(t, "weir local", w.program, "local", "--addr=127.0.0.1:0", "--no-limits", "--region="+servers.Region)
	w.kinesis = local.serving()
	w.client = (&servers.Server{URL: w.kinesis}).Kinesis()
	w.scrape(t)
	rules, err := os.ReadFile(filepath.Join("..", "..", "..", "..", "deploy", "prometheus", "weir.rules.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "rules.yaml")
	if err := os.WriteFile(file, []byte(faster(string(rules))), 0o600); err != nil {
		t.Fatal(err)
	}
	w.prometheus = servers.Prometheus(t, fmt.Sprintf(`global: {scrape_interval: 1s, evaluation_interval: 1s}
rule_files: [%q]
scrape_configs:
  - job_name: weir
    file_sd_configs: [{files: [%q], refresh_interval: 1s}]
`, file, w.targets)).URL
	return w
}

// scrape adds addresses to those that Prometheus scrapes.
func (w *world) scrape(t *testing.T, addresses ...string) {
	t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, a := range addresses {
		w.scraped = append(w.scraped, strings.TrimPrefix(a, "http://"))
	}
	text, err := json.Marshal([]map[string][]string{{"targets": slices.Concat([]string{}, w.scraped)}})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(w.targets+".new", text, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(w.targets+".new", w.targets); err != nil {
		t.Fatal(err)
	}
}

// factor is the number by which the times in the rules are divided.
const factor = 20

var (
	spans = regexp.MustCompile(`(for: |interval: |\[)(\d+)([smh])`)
	// These are ages that are not a part of the retention.
	ages = regexp.MustCompile(`(weir_checkpoint_lag_seconds\)|weir_handled_lag_seconds|weir_checkpoint_lag_seconds) > (600|60)\b`)
	// A worker sends a heartbeat each second.
	storeUp = regexp.MustCompile(`(weir_store_up_timestamp_seconds\) > )60`)
)

// faster returns the rules with shorter times.
func faster(text string) string {
	text = storeUp.ReplaceAllString(text, "${1}6")
	text = ages.ReplaceAllStringFunc(text, func(s string) string {
		m := ages.FindStringSubmatch(s)
		n, _ := strconv.Atoi(m[2])
		return fmt.Sprintf("%s > %d", m[1], n/factor)
	})
	return spans.ReplaceAllStringFunc(text, func(s string) string {
		m := spans.FindStringSubmatch(s)
		n, _ := strconv.Atoi(m[2])
		return fmt.Sprintf("%s%ds", m[1], max(1, n*map[string]int{"s": 1, "m": 60, "h": 3600}[m[3]]/factor))
	})
}

// newStage starts the tools that observe a store.
func newStage(t *testing.T, w *world, store string, apps ...string) *stage {
	t.Helper()
	s := &stage{world: w, store: store, observers: newProxy(t, w.kinesis)}
	if out, err := exec.CommandContext(t.Context(), w.program, "store", "create", "--store="+store).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	flags := []string{"--store=" + store, "--endpoint=" + s.observers.server.URL, "--addr=127.0.0.1:0"}
	page := start(t, "the page", w.program, append([]string{"dashboard"}, flags...)...)
	args := append([]string{"exporter", "--every=2s", "--read-share=1"}, flags...)
	for _, app := range apps {
		args = append(args, "--app="+app)
	}
	exporter := start(t, "the exporter", w.program, args...)
	s.page, s.exporter = page.serving(), exporter.serving()
	w.scrape(t, s.exporter)
	return s
}

// scene is a situation that is being created.
type scene struct {
	*stage
	t       *testing.T
	app     string // and its stream
	shards  int
	workers []*process
	calls   *proxy // between the workers and Kinesis
	dead    string // where dead letters go
	began   time.Time
	server  *servers.Database // of the store, or nil
	putting sync.WaitGroup
}

// stream creates a stream.
func (s *scene) stream(name string, shards int) {
	s.t.Helper()
	if _, err := s.client.CreateStream(s.t.Context(), &kinesis.CreateStreamInput{StreamName: &name, ShardCount: aws.Int32(int32(shards))}); err != nil { //nolint:gosec // they are few
		s.t.Fatal(err)
	}
}

// worker starts a worker of the application. A later flag overrides an earlier one.
func (s *scene) worker(name string, flags ...string) *process {
	s.t.Helper()
	port := strconv.Itoa(freePort(s.t))
	args := []string{"consume", "--store=" + s.store, "--app=" + s.app, "--endpoint=" + s.calls.server.URL, "--worker=" + name, "--metrics=" + port, "--health=" + port, "--retry-max=1s"}
	if !slices.ContainsFunc(flags, func(f string) bool { return strings.HasPrefix(f, "--stream=") }) {
		args = append(args, "--stream="+s.app)
	}
	p := start(s.t, name, s.program, append(args, flags...)...)
	p.addr = "http://127.0.0.1:" + port
	s.workers = append(s.workers, p)
	s.scrape(s.t, p.addr)
	return p
}

// ready waits until the workers that live hold n shards.
func (s *scene) ready(n int) {
	s.t.Helper()
	until(s.t, 2*time.Minute, fmt.Sprintf("workers hold %d shards", n), func() string {
		held, said := 0, ""
		for _, p := range s.workers {
			if !p.lives() {
				continue
			}
			text, err := get(s.t, p.addr+"/metrics")
			if err != nil {
				said += err.Error()
			}
			for _, m := range leases.FindAllStringSubmatch(text, -1) {
				of, _ := strconv.Atoi(m[1])
				held += of
			}
		}
		if held == n {
			return ""
		}
		return fmt.Sprint(held, said)
	})
}

var leases = regexp.MustCompile(`(?m)^weir_leases\{[^}]*\} (\d+)$`)

// put puts a record into a shard, by its number.
func (s *scene) put(shard int, data []byte) {
	if err := s.tryPut(s.t.Context(), shard, data); err != nil && s.t.Context().Err() == nil {
		s.t.Error(err)
	}
}

func (s *scene) tryPut(ctx context.Context, shard int, data []byte) error {
	part := new(big.Int).Div(new(big.Int).Lsh(big.NewInt(1), 128), big.NewInt(int64(s.shards)))
	hash := part.Mul(part, big.NewInt(int64(shard)))
	hash.Add(hash, big.NewInt(1000))
	_, err := s.client.PutRecord(ctx, &kinesis.PutRecordInput{
		StreamName: &s.app, PartitionKey: aws.String(strconv.Itoa(len(data))), Data: data, ExplicitHashKey: aws.String(hash.String()),
	})
	return err
}

// produce puts records into some shards until the test ends. It fails silently once the stream is
// gone.
func (s *scene) produce(every time.Duration, data []byte, shards ...int) {
	s.putting.Go(func() {
		ticker := time.NewTicker(every)
		defer ticker.Stop()
		for {
			select {
			case <-ticker.C:
			case <-s.t.Context().Done():
				return
			}
			for _, shard := range shards {
				_ = s.tryPut(s.t.Context(), shard, data)
			}
		}
	})
}

// all returns the numbers of all shards.
func (s *scene) all() (all []int) {
	for i := range s.shards {
		all = append(all, i)
	}
	return all
}

// happens sets the time at which the fault begins.
func (s *scene) happens() { s.began = time.Now() }

// delete deletes the stream.
func (s *scene) delete() {
	s.t.Helper()
	if _, err := s.client.DeleteStream(s.t.Context(), &kinesis.DeleteStreamInput{StreamName: &s.app, EnforceConsumerDeletion: aws.Bool(true)}); err != nil {
		s.t.Fatal(err)
	}
}

// watch opens the page from time to time until the test ends, because the page observes only what
// is open.
func (s *scene) watch() {
	s.putting.Go(func() {
		ticker := time.NewTicker(3 * time.Second)
		defer ticker.Stop()
		for {
			for _, open := range []string{"/", "/app?app=" + s.app} {
				_, _ = get(s.t, s.page+open) // differences looks at what it says
			}
			select {
			case <-ticker.C:
			case <-s.t.Context().Done():
				return
			}
		}
	})
}

// older returns the number of a record that came a day before the first record of the first shard,
// and has left the stream. A sequence number has the time of arrival in seconds at bit 36, and the
// number of the record in the shard at bit 80.
func (s *scene) older() string {
	s.t.Helper()
	it, err := s.client.GetShardIterator(s.t.Context(), &kinesis.GetShardIteratorInput{
		StreamName: &s.app, ShardId: aws.String("shardId-000000000000"), ShardIteratorType: types.ShardIteratorTypeTrimHorizon,
	})
	if err != nil {
		s.t.Fatal(err)
	}
	page, err := s.client.GetRecords(s.t.Context(), &kinesis.GetRecordsInput{ShardIterator: it.ShardIterator})
	if err != nil || len(page.Records) == 0 {
		s.t.Fatal(page, err)
	}
	n, ok := new(big.Int).SetString(aws.ToString(page.Records[0].SequenceNumber), 10)
	if !ok {
		s.t.Fatal(aws.ToString(page.Records[0].SequenceNumber))
	}
	n.Sub(n, new(big.Int).Lsh(big.NewInt(1), 80))
	return n.Sub(n, new(big.Int).Lsh(big.NewInt(25*60*60), 36)).String()
}
