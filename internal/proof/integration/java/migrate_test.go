package java_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/weir-go/weir/aggregate"
	"github.com/weir-go/weir/internal/proof/integration/servers"
	"github.com/weir-go/weir/internal/proof/longform"
	"github.com/weir-go/weir/kinesistest"
)

// mover runs the command of weir against the servers of one test.
type mover struct {
	program string
	env     []string
	flags   []string
	table   string
}

func newMover(t *testing.T, srv *kinesistest.Server, dynamo *servers.Server, table string) mover {
	t.Helper()
	m := mover{program: filepath.Join(t.TempDir(), "weir"), table: table}
	build := exec.CommandContext(t.Context(), "go", "build", "-o", m.program, ".")
	build.Dir = filepath.Join("..", "..", "..", "..", "cmd", "weir")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	m.env = []string{
		"AWS_CA_BUNDLE=" + servers.CAFile(t, srv.CACertPEM()),
		"AWS_REGION=" + servers.Region,
		"AWS_ACCESS_KEY_ID=" + servers.AccessKeyID,
		"AWS_SECRET_ACCESS_KEY=" + servers.SecretAccessKey,
	}
	m.flags = []string{"--endpoint=" + srv.URL(), "--dynamodb-endpoint=" + dynamo.URL}
	return m
}

func (m mover) command(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), m.program, slices.Concat(args, m.flags)...)
	cmd.Env = append(cmd.Environ(), m.env...)
	return cmd
}

func (m mover) migrate(t *testing.T, args ...string) (out string, err error) {
	t.Helper()
	all := append(
		[]string{
			"migrate",
			"kcl",
			"--table",
			m.table,
			"--app",
			"billing",
			"--stream",
			"orders",
			"--failover",
			"5s",
		},
		args...)
	said, err := m.command(t, all...).CombinedOutput()
	t.Logf("weir %s\n%s", strings.Join(all, " "), said)
	return string(said), err
}

// fill puts plain records and then an aggregate into each of two shards, and returns the data of
// all user records.
func fill(t *testing.T, srv *kinesistest.Server, name string) (all []string) {
	t.Helper()
	var b aggregate.Builder
	last := map[string]bool{}
	for i := range 200 {
		data := fmt.Sprintf("%s-%d", name, i)
		all = append(all, data)
		srv.Put("orders", fmt.Sprintf("key-%d", i%17), []byte(data))
	}
	for i := 0; len(last) < 2; i++ {
		key := fmt.Sprintf("aggregate-%d", i)
		b.Reset()
		var packed []string
		for j := range 5 {
			packed = append(packed, fmt.Sprintf("%s-%s-%d", name, key, j))
			if err := b.Add(key, "", []byte(packed[j])); err != nil {
				t.Fatal(err)
			}
		}
		id, _ := srv.Put("orders", key, b.AppendContainer(nil))
		last[id] = true
		all = append(all, packed...)
	}
	return all
}

// settled waits until the leases in the table are at the last records of the stream.
func settled(t *testing.T, srv *kinesistest.Server, dynamo *servers.Server, table string) {
	t.Helper()
	last := map[string]string{}
	for _, r := range srv.Records("orders") {
		last[r.Shard] = r.SequenceNumber
	}
	client := dynamo.DynamoDB()
	for deadline := time.Now().Add(within); ; time.Sleep(200 * time.Millisecond) {
		out, err := client.Scan(t.Context(), &dynamodb.ScanInput{TableName: aws.String(table)})
		if err != nil {
			t.Fatal(err)
		}
		n := 0
		for _, it := range out.Items {
			key, _ := it["leaseKey"].(*types.AttributeValueMemberS)
			at, _ := it["checkpoint"].(*types.AttributeValueMemberS)
			if key != nil && at != nil && last[key.Value] == at.Value {
				n++
			}
		}
		if n == len(last) {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("the KCL has not checkpointed its last records: %v", out.Items)
		}
	}
}

// read runs a worker of weir until it has read n records, and returns their data.
func (m mover) read(t *testing.T, n int) (all []string) {
	t.Helper()
	var out, problems bytes.Buffer
	var mu sync.Mutex
	cmd := m.command(
		t,
		"consume",
		"--stream=orders",
		"--app=billing",
		"--store=dynamodb:weir",
		"-o=json",
	)
	cmd.Stdout, cmd.Stderr = locked{&mu, &out}, &problems
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := func() []string {
		mu.Lock()
		defer mu.Unlock()
		return strings.Split(strings.TrimSpace(out.String()), "\n")
	}
	for deadline := time.Now().Add(within); len(lines()) < n && time.Now().Before(deadline); time.Sleep(100 * time.Millisecond) {
	}
	time.Sleep(2 * time.Second) // for records that must not come
	_ = cmd.Process.Signal(os.Interrupt)
	if err := cmd.Wait(); err != nil {
		t.Fatalf("the worker: %v, %s", err, &problems)
	}
	for _, line := range lines() {
		var r struct{ Data string }
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		all = append(all, r.Data)
	}
	return all
}

type locked struct {
	mu *sync.Mutex
	to *bytes.Buffer
}

func (l locked) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.to.Write(p)
}

// same requires each record exactly once.
func same(t *testing.T, who string, got, want []string) {
	t.Helper()
	got, want = slices.Sorted(slices.Values(got)), slices.Sorted(slices.Values(want))
	if !slices.Equal(got, want) {
		t.Errorf(
			"%s has read %d records, want %d:\n%.2000q\n%.2000q",
			who,
			len(got),
			len(want),
			got,
			want,
		)
	}
}

func (h *heard) data() (all []string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, records := range h.shards {
		for _, r := range records {
			all = append(all, r.data)
		}
	}
	return all
}

// An application goes from the real KCL to weir and back. Each record is handled once. This
// includes the records of the aggregates that are the last records before each move.
func TestAnApplicationMovesFromTheKCLAndBack(t *testing.T) {
	longform.Only(t)
	srv := kinesistest.NewServer(
		t,
		kinesistest.Config{
			Region:     servers.Region,
			TLS:        true,
			NoLimits:   true,
			StateDelay: 300 * time.Millisecond,
		},
	)
	srv.CreateStream("orders", 2)
	dynamo := servers.DynamoDBLocal(t)
	const table = "billing-polling"
	m := newMover(t, srv, dynamo, table)
	if said, err := m.command(t, "store", "create", "--store=dynamodb:weir").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, said)
	}

	first := fill(t, srv, "first")
	start := func() (*heard, func()) {
		h, end := startStoppable(t, servers.Java(t, srv.CACertPEM(), "KclReader", srv.URL(), dynamo.URL, "orders", table, "polling"))
		return h, func() { end("s") }
	}
	h, stop := start()
	h.await(t, "first records", func() bool { return h.total >= len(first) })
	settled(t, srv, dynamo, table)
	if said, err := m.migrate(t, "--to=dynamodb:weir", "--yes"); err == nil ||
		!strings.Contains(said, "workers of the KCL run: ") {
		t.Errorf("while the KCL runs: %v", err)
	}
	stop()
	same(t, "the KCL", h.data(), first)

	second := fill(t, srv, "second")
	if _, err := m.migrate(t, "--to=dynamodb:weir", "--yes", "--watch"); err != nil {
		t.Fatal(err)
	}
	same(t, "weir", m.read(t, len(second)), second)

	third := fill(t, srv, "third")
	if _, err := m.migrate(t, "--from=dynamodb:weir", "--yes"); err != nil {
		t.Fatal(err)
	}
	h, stop = start()
	h.await(t, "third records", func() bool { return h.total >= len(third) })
	settled(t, srv, dynamo, table)
	stop()
	same(t, "the KCL after the way back", h.data(), third)

	// A KCL that starts after a move is noticed.
	if _, err := m.migrate(t, "--to=dynamodb:weir", "--yes", "--watch"); err != nil {
		t.Fatal(err)
	}
	doctor := func() string {
		out, err := m.command(t, "doctor", "--app=billing", "--store=dynamodb:weir").Output()
		var failed *exec.ExitError
		if err != nil && !errors.As(err, &failed) {
			t.Fatal(err)
		}
		return string(out)
	}
	if said := doctor(); strings.Contains(said, "old-worker") {
		t.Errorf("before a KCL starts: %s", said)
	}
	_, stop = start()
	waitUntil(t, "finding about the KCL", func() bool {
		return strings.Contains(doctor(), "[old-worker] a worker of the KCL runs with the table "+table)
	})
	stop()
}
