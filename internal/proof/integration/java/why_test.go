package java_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/weir-go/weir/internal/proof/integration/servers"
	"github.com/weir-go/weir/internal/proof/longform"
	"github.com/weir-go/weir/kinesistest"
	"github.com/weir-go/weir/store/dynamostore"
)

const (
	whyShards  = 8
	whyIdle    = 60 * time.Second
	whyWarm    = 100_000
	whyRecords = 400_000
	whyReady   = 20 * time.Second // from the start of a new worker to the stop of the old one
)

// arrivals contains what all workers of one side have handled.
type arrivals struct {
	mu      sync.Mutex
	times   map[int]int // how often each record was handled
	last    map[string]time.Time
	longest time.Duration // from the put of a record until it was first handled
	repeats int
}

// reader is one worker: a JVM with the KCL, or a process with weir.
type reader struct {
	name     string
	cmd      *exec.Cmd
	in       io.WriteCloser
	out      sync.WaitGroup
	problems bytes.Buffer
}

func (a *arrivals) start(t *testing.T, name string, cmd *exec.Cmd) *reader {
	t.Helper()
	r := &reader{name: name, cmd: cmd}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if r.in, err = cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	cmd.Stderr = &r.problems
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	r.out.Go(func() {
		for lines := bufio.NewScanner(out); lines.Scan(); {
			a.line(name, lines.Text())
		}
	})
	return r
}

// line notes one record. Its data is the number of the record and the time of its put.
func (a *arrivals) line(worker, text string) {
	f := strings.Split(text, " ")
	if len(f) != 6 || f[0] != "R" {
		return
	}
	number, put, _ := strings.Cut(f[5], "@")
	n, err1 := strconv.Atoi(number)
	at, err2 := strconv.ParseInt(put, 10, 64)
	if err1 != nil || err2 != nil {
		return // cut off by a kill
	}
	now := time.Now()
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.times[n]++; a.times[n] > 1 {
		a.repeats++
		return
	}
	a.longest = max(a.longest, now.Sub(time.Unix(0, at)))
	a.last[worker] = now
}

func (a *arrivals) handled() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.times)
}

// take returns the longest wait and the number of repeats since the last call.
func (a *arrivals) take() (longest time.Duration, repeats int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	longest, repeats = a.longest, a.repeats
	a.longest, a.repeats = 0, 0
	return longest, repeats
}

// end ends a worker and waits for it.
func (r *reader) end(how func()) {
	how()
	r.out.Wait()
	_ = r.cmd.Wait()
}

// kill ends a worker as a crash does.
func (r *reader) kill() { r.end(func() { _ = r.cmd.Process.Kill() }) }

// seconds returns the processor time that a process has used.
func (r *reader) seconds(t *testing.T) float64 {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", r.cmd.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	f := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
	user, _ := strconv.Atoi(f[11])
	system, _ := strconv.Atoi(f[12])
	return float64(user+system) / 100
}

// memory returns the most memory that a process had resident, in MiB.
func (r *reader) memory(t *testing.T) float64 {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", r.cmd.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	_, after, _ := strings.Cut(string(text), "VmHWM:")
	kb, _ := strconv.Atoi(strings.Fields(after)[0])
	return float64(kb) / 1024
}

// load puts records, at once or steadily.
type load struct {
	mu  sync.Mutex
	srv *kinesistest.Server
	n   int
}

func (l *load) put(n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for range n {
		l.srv.Put("orders", "key-"+strconv.Itoa(l.n%997), fmt.Appendf(nil, "%d@%d", l.n, time.Now().UnixNano()))
		l.n++
	}
}

func (l *load) records() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.n
}

// steadily puts 100 records per second until stop is called.
func (l *load) steadily() (stop func()) {
	end, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for {
			l.put(10)
			select {
			case <-end:
				return
			case <-time.After(100 * time.Millisecond):
			}
		}
	}()
	return func() { close(end); <-ended }
}

// why is one side of the comparison.
type why struct {
	start  func(name string) *exec.Cmd
	stop   func(*reader) // asks for an orderly stop
	leader func() string
	meter  *tally
	rows   []string
}

func (w *why) row(t *testing.T, what, format string, args ...any) {
	t.Helper()
	w.rows = append(w.rows, what, fmt.Sprintf(format, args...))
	t.Logf("%-60s %s", what, w.rows[len(w.rows)-1])
}

// The KCL 3 and weir do the same work at their defaults, one after the other, on DynamoDB Local,
// with two workers and eight shards. The test prints the table of docs/moving/why.md. It checks
// only that no record is lost, because the figures depend on the machine.
func TestWhyMove(t *testing.T) {
	longform.Only(t)
	if _, err := os.Stat("/proc/self/stat"); err != nil {
		t.Skip("it reads processor time and memory from /proc")
	}
	var kcl, ours why
	t.Run("KCL 3", func(t *testing.T) {
		srv := whyServer(t)
		dynamo := servers.DynamoDBLocal(t)
		kcl.meter = newTally(t, dynamo.URL)
		kcl.start = func(name string) *exec.Cmd {
			cmd := servers.Java(t, srv.CACertPEM(), "KclReader", srv.URL(), kcl.meter.url, "orders", "billing", "polling", name)
			// The tests start the JVM for a short life; this one has its default compilers.
			cmd.Args = slices.DeleteFunc(cmd.Args, func(arg string) bool { return arg == "-XX:TieredStopAtLevel=1" })
			return cmd
		}
		kcl.stop = func(r *reader) { _, _ = io.WriteString(r.in, "s"); _ = r.in.Close() }
		kcl.leader = func() string {
			out, err := dynamo.DynamoDB().GetItem(t.Context(), &dynamodb.GetItemInput{
				TableName: aws.String("billing"), Key: map[string]types.AttributeValue{"leaseKey": &types.AttributeValueMemberS{Value: "Leader"}},
			})
			if err != nil {
				t.Fatal(err)
			}
			name, _ := out.Item["ownerName"].(*types.AttributeValueMemberS)
			if name == nil {
				return ""
			}
			return name.Value
		}
		kcl.run(t, srv)
	})
	t.Run("weir", func(t *testing.T) {
		srv := whyServer(t)
		dynamo := servers.DynamoDBLocal(t)
		ours.meter = newTally(t, dynamo.URL)
		store := dynamostore.New(dynamo.DynamoDB(), dynamostore.Options{Table: "weir"})
		if err := store.Migrate(t.Context()); err != nil {
			t.Fatal(err)
		}
		m := newMover(t, srv, dynamo, "")
		ours.start = func(name string) *exec.Cmd { return weirCommand(t, srv, ours.meter.url, name) }
		ours.stop = func(r *reader) { _ = r.cmd.Process.Signal(os.Interrupt) }
		ours.leader = func() string { return leaderOf(t, m) }
		ours.run(t, srv)
	})
	var table strings.Builder
	for i := 0; i+1 < min(len(kcl.rows), len(ours.rows)); i += 2 {
		fmt.Fprintf(&table, "\n| %s | %s | %s |", kcl.rows[i], kcl.rows[i+1], ours.rows[i+1])
	}
	t.Logf("\n| | KCL 3 | weir |\n| --- | ---: | ---: |%s", &table)
}

func whyServer(t *testing.T) *kinesistest.Server {
	srv := kinesistest.NewServer(t, kinesistest.Config{Region: servers.Region, TLS: true, NoLimits: true})
	srv.CreateStream("orders", whyShards)
	return srv
}

// run measures one side.
func (w *why) run(t *testing.T, srv *kinesistest.Server) {
	a := &arrivals{times: map[int]int{}, last: map[string]time.Time{}}
	l := &load{srv: srv}
	var all []*reader
	start := func(name string) *reader {
		r := a.start(t, name, w.start(name))
		all = append(all, r)
		return r
	}
	defer func() {
		for _, r := range all {
			if r.cmd.ProcessState == nil {
				r.kill()
			}
			if t.Failed() {
				t.Logf("%s: %.3000s", r.name, r.problems.String())
			}
		}
	}()
	// calm waits until all records are handled, and no new record waits long.
	calm := func() {
		t.Helper()
		waitUntil(t, "rest", func() bool { return a.handled() == l.records() })
	}

	handles := func(n int) func() bool {
		return func() bool {
			a.mu.Lock()
			defer a.mu.Unlock()
			return len(a.last) == n
		}
	}
	began := time.Now()
	stop := l.steadily()
	first := start("worker-1")
	waitUntil(t, "first record", handles(1))
	w.row(t, "start of a new application until its first record", "%.0f s", time.Since(began).Seconds())
	began = time.Now()
	second := start("worker-2")
	waitUntil(t, "record of the second worker", handles(2))
	w.row(t, "start of a second worker until its first record", "%.0f s", time.Since(began).Seconds())
	stop()
	calm()

	time.Sleep(10 * time.Second)
	w.meter.take()
	cpu := first.seconds(t) + second.seconds(t)
	time.Sleep(whyIdle)
	cost := w.meter.take()
	cpu = first.seconds(t) + second.seconds(t) - cpu
	hour := time.Hour.Seconds() / whyIdle.Seconds()
	t.Logf("idle for %v: %+v", whyIdle, cost)
	w.row(t, "requests to DynamoDB per hour, idle", "%.0f", float64(cost.requests)*hour)
	w.row(t, "write units per hour, idle", "%.0f", cost.writes*hour)
	w.row(t, "read units per hour, idle", "%.0f", cost.reads*hour)
	w.row(t, "price per hour, idle", "$%.5f", (cost.writes*0.625+cost.reads*0.125)/1e6*hour)
	w.row(t, "processor time of both workers, idle", "%.1f s per minute", cpu)

	l.put(whyWarm)
	calm()
	cpu = first.seconds(t) + second.seconds(t)
	began = time.Now()
	l.put(whyRecords)
	calm()
	cpu = first.seconds(t) + second.seconds(t) - cpu
	w.row(t, "processor time per record", "%.1f µs", cpu/whyRecords*1e6)
	t.Logf("%d records in %v", whyRecords, time.Since(began))
	w.row(t, "most resident memory of a worker", "%.0f MiB", max(first.memory(t), second.memory(t)))

	stop = l.steadily()
	time.Sleep(5 * time.Second)
	leader, other := first, second
	if w.leader() == second.name {
		leader, other = second, first
	}
	a.take()
	crash := func(r *reader) {
		r.kill()
		time.Sleep(time.Second) // records of the dead worker's shards arrive
		until := l.records()
		waitUntil(t, "records of the dead worker's shards", func() bool { return a.first(until) })
	}
	crash(other)
	longest, repeats := a.take()
	w.row(t, "longest wait of a record after the crash of a worker", "%.1f s", longest.Seconds())
	w.row(t, "repeats after that crash", "%d", repeats)

	third := start("worker-3")
	time.Sleep(whyReady)
	a.take()
	crash(leader)
	longest, repeats = a.take()
	w.row(t, "longest wait of a record after the crash of the leader", "%.1f s", longest.Seconds())
	w.row(t, "repeats after that crash", "%d", repeats)

	old := third
	a.take()
	for _, name := range []string{"worker-4", "worker-5"} {
		next := start(name)
		time.Sleep(whyReady)
		old.end(func() { w.stop(old) })
		until := l.records()
		waitUntil(t, "records of the stopped worker's shards", func() bool { return a.first(until) })
		old = next
	}
	longest, repeats = a.take()
	w.row(t, "longest wait of a record in a rolling deployment", "%.1f s", longest.Seconds())
	w.row(t, "repeats in it", "%d", repeats)
	stop()
	calm()
}

// first reports whether the first n records were handled.
func (a *arrivals) first(n int) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	for i := n - 1; i >= 0; i-- {
		if a.times[i] == 0 {
			return false
		}
	}
	return true
}

// leaderOf returns the name of the worker of weir that leads.
func leaderOf(t *testing.T, m mover) string {
	t.Helper()
	out, err := m.command(t, "group", "describe", "--stream=orders", "--app=billing", "--store=dynamodb:weir", "-o=json", "--no-lag").Output()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	var d struct {
		Leader *struct{ Worker string }
	}
	if err := json.Unmarshal(out, &d); err != nil || d.Leader == nil {
		t.Fatalf("%v: %s", err, out)
	}
	return d.Leader.Worker
}
