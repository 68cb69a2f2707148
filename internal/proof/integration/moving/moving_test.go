// Package moving_test moves applications from the tables of other clients to weir and back, with
// the command and real databases. The tables contain rows as those clients write them.
package moving_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/weir-go/weir/internal/proof/integration/servers"
	"github.com/weir-go/weir/internal/proof/leaktest"
	"github.com/weir-go/weir/kinesistest"
)

func TestMain(m *testing.M) {
	code := leaktest.Run(m)
	if file, err := program(); err == nil {
		_ = os.RemoveAll(filepath.Dir(file))
	}
	os.Exit(code)
}

func id(n int) string { return fmt.Sprintf("shardId-%012d", n) }

// program builds the command once.
var program = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "weir-moving-")
	if err != nil {
		return "", err
	}
	file := filepath.Join(dir, "weir")
	build := exec.Command("go", "build", "-o", file, ".")
	build.Dir = filepath.Join("..", "..", "..", "..", "cmd", "weir")
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("go build: %w\n%s", err, out)
	}
	return file, nil
})

// move is one application on its way.
type move struct {
	srv    *kinesistest.Server
	dynamo *servers.Server // nil if the client does not use DynamoDB
	client string          // of the command
	args   []string        // of the command, besides those of every client
	put    int
}

// run runs the command.
func (m *move) run(t *testing.T, args ...string) (out, said string, err error) {
	t.Helper()
	file, err := program()
	if err != nil {
		t.Fatal(err)
	}
	var stdout, stderr bytes.Buffer
	cmd := exec.CommandContext(t.Context(), file, args...)
	cmd.Env = append(os.Environ(), "AWS_REGION="+servers.Region,
		"AWS_ACCESS_KEY_ID="+servers.AccessKeyID, "AWS_SECRET_ACCESS_KEY="+servers.SecretAccessKey)
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err = cmd.Run()
	return stdout.String(), stderr.String(), err
}

// step is a step of a migration.
type step struct{ Shard, Was, Have, To, Why, State string }

// migrate runs weir migrate, and returns its steps by shard.
func (m *move) migrate(t *testing.T, args ...string) map[string]step {
	t.Helper()
	out, said, err := m.tryMigrate(t, append([]string{"--yes", "-o=json"}, args...)...)
	if err != nil {
		t.Fatalf("%v: %s%s", err, out, said)
	}
	var report struct {
		Steps    []step
		Notes    []string
		Verified bool
	}
	if err := json.Unmarshal([]byte(out), &report); err != nil || !report.Verified {
		t.Fatalf("%v: %s", err, out)
	}
	steps := map[string]step{}
	for _, s := range report.Steps {
		steps[s.Shard] = s
	}
	t.Logf("%s %q: %+v, notes %q", m.client, args, report.Steps, report.Notes)
	return steps
}

func (m *move) tryMigrate(t *testing.T, args ...string) (out, said string, err error) {
	t.Helper()
	all := append([]string{"migrate", m.client, "--endpoint=" + m.srv.URL(), "--stream=orders", "--app=billing"}, m.args...)
	if m.dynamo != nil {
		all = append(all, "--dynamodb-endpoint="+m.dynamo.URL)
	}
	return m.run(t, append(all, args...)...)
}

// records puts n records with many keys.
func (m *move) records(n int) {
	for range n {
		m.srv.Put("orders", fmt.Sprintf("key-%d", m.put%61), fmt.Appendf(nil, "record-%d", m.put))
		m.put++
	}
}

// begin creates a stream with three shards, 300 records, one split (0 into 3 and 4) and one merge
// (1 and 2 into 5).
func begin(t *testing.T, client string, dynamo *servers.Server, args ...string) *move {
	t.Helper()
	m := &move{srv: kinesistest.NewServer(t, kinesistest.Config{Region: servers.Region, NoLimits: true}), dynamo: dynamo, client: client, args: args}
	m.srv.CreateStream("orders", 3)
	m.records(100)
	m.srv.Split("orders", id(0))
	m.records(100)
	m.srv.Merge("orders", id(1), id(2))
	m.records(100)
	return m
}

// stored returns the records of each shard.
func (m *move) stored() map[string][]kinesistest.Record {
	all := map[string][]kinesistest.Record{}
	for _, r := range m.srv.Records("orders") {
		all[r.Shard] = append(all[r.Shard], r)
	}
	return all
}

// number returns the sequence number of a record of a shard, counted from 1. 0 is no number.
func (m *move) number(t *testing.T, shard string, n int) string {
	t.Helper()
	if n == 0 {
		return ""
	}
	return m.stored()[shard][n-1].SequenceNumber
}

// consume runs a worker of weir up to the tip, and checks that it gets the records of each shard
// after those that are done, in order, and children after all of their parents.
func (m *move) consume(t *testing.T, store string, done map[string]int) {
	t.Helper()
	out, said, err := m.run(t, "consume", "--endpoint="+m.srv.URL(), "--stream=orders", "--app=billing",
		"--store="+store, "-o=json", "--until-tip")
	if err != nil {
		t.Fatalf("%v: %s", err, said)
	}
	got := map[string][]string{}
	first, last := map[string]int{}, map[string]int{}
	for i, line := range strings.Split(strings.TrimSpace(out), "\n") {
		if line == "" {
			continue
		}
		var r struct{ Shard, Data string }
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		if len(got[r.Shard]) == 0 {
			first[r.Shard] = i
		}
		last[r.Shard] = i
		got[r.Shard] = append(got[r.Shard], r.Data)
	}
	total := 0
	for shard, list := range m.stored() {
		var want []string
		for _, r := range list[min(done[shard], len(list)):] {
			want = append(want, string(r.Data))
		}
		total += len(want)
		if !slices.Equal(got[shard], want) {
			t.Errorf("%s: got %d records, want %d", shard, len(got[shard]), len(want))
		}
	}
	for child, parents := range map[string][]string{id(3): {id(0)}, id(4): {id(0)}, id(5): {id(1), id(2)}} {
		for _, parent := range parents {
			if len(got[child]) > 0 && len(got[parent]) > 0 && first[child] < last[parent] {
				t.Errorf("%s began before the end of %s", child, parent)
			}
		}
	}
	t.Logf("weir handled exactly the %d records after the old positions", total)
}

// all marks all records of all shards as done.
func (m *move) all() map[string]int {
	done := map[string]int{}
	for shard, list := range m.stored() {
		done[shard] = len(list)
	}
	return done
}

func (m *move) store(t *testing.T) string {
	t.Helper()
	return "sqlite:" + filepath.Join(t.TempDir(), "weir.db")
}

// roundTrip moves an application to weir, lets weir handle the rest, moves it back, and to a new
// store of weir. done contains the records that the old client had handled in each shard.
func (m *move) roundTrip(t *testing.T, done map[string]int) map[string]step {
	t.Helper()
	first := m.store(t)
	m.migrate(t, "--to="+first)
	m.consume(t, first, done)
	// Once more: nothing is left to do, because weir is ahead.
	if _, said, err := m.tryMigrate(t, "--yes", "--to="+first); err == nil || !strings.Contains(said, "the application is ahead in") {
		t.Errorf("over newer progress: %v, %s", err, said)
	}
	handled := m.all()
	m.records(50)
	back := m.migrate(t, "--from="+first)
	for shard, list := range m.stored() {
		n := handled[shard]
		if n == 0 || back[shard].Was == "end" {
			continue
		}
		if want := list[n-1].SequenceNumber; back[shard].To != want {
			t.Errorf("%s goes back at %s, want %s", shard, back[shard].To, want)
		}
	}
	again := m.migrate(t, "--from="+first)
	for shard, s := range again {
		if s.State != "unchanged" {
			t.Errorf("a second way back: %s is %s", shard, s.State)
		}
	}
	second := m.store(t)
	m.migrate(t, "--to="+second)
	m.consume(t, second, handled)
	return back
}

// locked is a buffer for the output of a process.
type locked struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *locked) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *locked) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}
