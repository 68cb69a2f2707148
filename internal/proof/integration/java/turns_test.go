package java_test

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weir-go/weir/aggregate"
	"github.com/weir-go/weir/internal/proof/integration/servers"
	"github.com/weir-go/weir/internal/proof/longform"
	"github.com/weir-go/weir/kinesistest"
)

// turn is one run of the KCL or of weir, between two moves.
type turn struct {
	name   string
	resume map[string]int // where each shard began, as an index in its records; nil for the first
	order  []string       // the data of the records that were handled
}

// writer puts records with one key each. Every tenth put is an aggregate of five records. The data
// is the key and the number of the record within its key.
type writer struct {
	srv     *kinesistest.Server
	puts    int
	records int
	ofKey   map[string]int
}

func (w *writer) put(t *testing.T, n int) {
	t.Helper()
	for end := w.records + n; w.records < end; w.puts++ {
		key := fmt.Sprintf("key-%d", w.puts%97)
		next := func() []byte {
			w.records++
			w.ofKey[key]++
			return fmt.Appendf(nil, "%s/%d", key, w.ofKey[key])
		}
		if w.puts%10 != 9 || end-w.records < 5 {
			w.srv.Put("orders", key, next())
			continue
		}
		var b aggregate.Builder
		for range 5 {
			if err := b.Add(key, "", next()); err != nil {
				t.Fatal(err)
			}
		}
		w.srv.Put("orders", key, b.AppendContainer(nil))
	}
}

// stored is a user record of the stream.
type stored struct {
	sequence string
	sub      int
	data     string
}

// storedIn returns the user records of each shard in their order.
func storedIn(t *testing.T, srv *kinesistest.Server) map[string][]stored {
	t.Helper()
	all := map[string][]stored{}
	var a aggregate.Aggregate
	for _, r := range srv.Records("orders") {
		is, err := a.Parse(r.Data)
		if err != nil {
			t.Fatal(err)
		}
		if !is {
			all[r.Shard] = append(all[r.Shard], stored{r.SequenceNumber, 0, string(r.Data)})
			continue
		}
		sub := 0
		for u := range a.All() {
			all[r.Shard] = append(all[r.Shard], stored{r.SequenceNumber, sub, string(u.Data())})
			sub++
		}
	}
	return all
}

// index returns the number of records of a shard that are done at a position of weir or at a
// checkpoint of the KCL.
func index(t *testing.T, of []stored, position string) int {
	t.Helper()
	switch position {
	case "oldest", "TRIM_HORIZON":
		return 0
	case "end", "SHARD_END":
		return len(of)
	}
	number, done := position, 1<<40
	if i := strings.IndexAny(position, "+/"); i > 0 {
		n, err := strconv.Atoi(position[i+1:])
		if err != nil {
			t.Fatal(err)
		}
		number, done = position[:i], n
		if position[i] == '/' {
			done = n + 1
		}
	}
	for i, r := range of {
		later := len(r.sequence) > len(number) || len(r.sequence) == len(number) && r.sequence > number
		if later || r.sequence == number && r.sub >= done {
			return i
		}
	}
	return len(of)
}

// move runs weir migrate kcl, and returns where each shard resumes.
func (m mover) move(t *testing.T, args ...string) map[string]string {
	t.Helper()
	began := time.Now()
	all := append([]string{"migrate", "kcl", "--table", m.table, "--app=billing", "--stream=orders", "--failover=5s", "--watch", "--yes", "-o=json"}, args...)
	cmd := m.command(t, all...)
	var said bytes.Buffer
	cmd.Stderr = &said
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("weir %s: %v\n%s%s", strings.Join(all, " "), err, out, &said)
	}
	var report struct {
		Steps    []struct{ Shard, To string }
		Verified bool
	}
	if err := json.Unmarshal(out, &report); err != nil || !report.Verified {
		t.Fatalf("%v: %s", err, out)
	}
	to := map[string]string{}
	for _, s := range report.Steps {
		to[s.Shard] = s.To
	}
	t.Logf("%s took %v", strings.Join(args, " "), time.Since(began).Round(100*time.Millisecond))
	return to
}

// consumer is a worker of weir in a process.
type consumer struct {
	cmd      *exec.Cmd
	mu       sync.Mutex
	out      bytes.Buffer
	problems bytes.Buffer
}

func (m mover) consume(t *testing.T) *consumer {
	t.Helper()
	c := &consumer{cmd: m.command(t, "consume", "--stream=orders", "--app=billing", "--store=dynamodb:weir", "-o=json")}
	c.cmd.Stdout, c.cmd.Stderr = locked{&c.mu, &c.out}, &c.problems
	if err := c.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return c
}

func (c *consumer) lines() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return bytes.Count(c.out.Bytes(), []byte("\n"))
}

// stop ends the worker, or kills it, and returns the data that it printed.
func (c *consumer) stop(t *testing.T, kill bool) (all []string) {
	t.Helper()
	if kill {
		_ = c.cmd.Process.Kill()
		_ = c.cmd.Wait()
	} else {
		_ = c.cmd.Process.Signal(os.Interrupt)
		if err := c.cmd.Wait(); err != nil {
			t.Fatalf("the worker: %v, %s", err, &c.problems)
		}
	}
	for line := range strings.Lines(c.out.String()) {
		if !strings.HasSuffix(line, "\n") {
			break // cut off by the kill
		}
		var r struct{ Data string }
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		all = append(all, r.Data)
	}
	return all
}

func waitUntil(t *testing.T, what string, so func() bool) {
	t.Helper()
	for deadline := time.Now().Add(within); !so(); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("no %s within %v", what, within)
		}
	}
}

// The KCL and weir take turns with one application, while records arrive. The last record of each
// turn is in the middle of the stream. A record is repeated only if it comes after the checkpoint
// that was moved. In the long form, one KCL and one worker of weir crash. The first worker of weir
// sees a split.
func TestTheKCLAndWeirTakeTurns(t *testing.T) {
	records, turns, versions := 5_000, 3, []string{"3"}
	if longform.On() {
		records, turns, versions = 100_000, 5, []string{"3", "1"}
	}
	for _, version := range versions {
		t.Run("KCL "+version, func(t *testing.T) { takeTurns(t, version, records, turns) })
	}
}

func takeTurns(t *testing.T, version string, records, turns int) {
	srv := kinesistest.NewServer(t, kinesistest.Config{
		Region: servers.Region, TLS: true, NoLimits: true, StateDelay: 300 * time.Millisecond,
	})
	srv.CreateStream("orders", 2)
	dynamo := servers.DynamoDBLocal(t)
	m := newMover(t, srv, dynamo, "billing-polling")
	if said, err := m.command(t, "store", "create", "--store=dynamodb:weir").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, said)
	}
	startOld := func() (*heard, func(input string)) {
		if version == "1" {
			return startStoppable(t, servers.JavaOne(t, srv.CACertPEM(), "KclOneReader", srv.URL(), dynamo.URL, "orders", "billing-polling"))
		}
		return startStoppable(t, servers.Java(t, srv.CACertPEM(), "KclReader", srv.URL(), dynamo.URL, "orders", "billing-polling", "polling"))
	}
	w := &writer{srv: srv, ofKey: map[string]int{}}
	share := records / turns
	var done []turn
	var resume map[string]string
	for i := range turns {
		last := i == turns-1
		now := turn{name: "the KCL"}
		if resume != nil {
			now.resume = map[string]int{}
			kept := storedIn(t, srv)
			for shard, at := range resume {
				now.resume[shard] = index(t, kept[shard], at)
			}
		}
		w.put(t, share/2) // while neither side runs
		rest := share - share/2
		if last {
			rest = records - w.records
		}
		var count func() int
		var stop func()
		if i%2 == 0 {
			h, end := startOld()
			count = func() int { h.mu.Lock(); defer h.mu.Unlock(); return h.total }
			input := "s" // stop in order
			if i == 2 {
				input = "" // crash
			}
			stop = func() { end(input); now.order = h.order }
		} else {
			now.name = "weir"
			c := m.consume(t)
			count = c.lines
			stop = func() { now.order = c.stop(t, i == 3) }
		}
		waitUntil(t, "record of "+now.name, func() bool { return count() > share/20 })
		for n := range 10 {
			w.put(t, rest/10)
			if n == 2 && i == 1 {
				srv.Split("orders", "shardId-000000000000")
			}
			time.Sleep(100 * time.Millisecond) // the side reads meanwhile
		}
		w.put(t, rest-rest/10*10)
		if last {
			waitUntil(t, "end", func() bool { return handled(append(done, now), count(), records) })
			waitUntil(t, "rest", quiet(count))
		} else {
			waitUntil(t, "half of the records", func() bool { return count() > share/2 })
		}
		stop()
		done = append(done, now)
		t.Logf("turn %d: %s handled %d records", i+1, now.name, len(now.order))
		switch {
		case last:
		case i%2 == 0:
			resume = m.move(t, "--to=dynamodb:weir")
		default:
			resume = m.move(t, "--from=dynamodb:weir")
		}
	}
	judgeTurns(t, storedIn(t, srv), done, w)
}

// handled reports whether the turns have handled at least as many records as there are.
func handled(done []turn, now, records int) bool {
	for _, d := range done {
		now += len(d.order)
	}
	return now >= records
}

// quiet reports whether a count has stayed the same for three seconds.
func quiet(count func() int) func() bool {
	last, since := -1, time.Now()
	return func() bool {
		if n := count(); n != last {
			last, since = n, time.Now()
		}
		return time.Since(since) > 3*time.Second
	}
}

// judgeTurns compares the turns with the stream, record by record, and prints a verdict.
func judgeTurns(t *testing.T, kept map[string][]stored, turns []turn, w *writer) {
	t.Helper()
	type place struct {
		shard string
		index int
	}
	where := map[string]place{}
	for shard, list := range kept {
		for i, r := range list {
			where[r.data] = place{shard, i}
		}
	}
	if len(where) != w.records {
		t.Errorf("%d different records are stored, want %d", len(where), w.records)
	}
	next := map[string]int{}   // the record after the last one that was handled, by shard
	newest := map[string]int{} // the number of the last record of a key
	total, repeated, keys := 0, 0, map[string]bool{}
	for i, turn := range turns {
		for shard, at := range turn.resume {
			if at > next[shard] {
				t.Errorf("turn %d: %s resumes at record %d, although %d were handled", i+1, shard, at, next[shard])
			}
			repeated += next[shard] - min(at, next[shard]) // those that may come again
			next[shard] = at
		}
		for _, data := range turn.order {
			total++
			at, there := where[data]
			if !there {
				t.Fatalf("turn %d: %s is not in the stream", i+1, data)
			}
			if at.index != next[at.shard] {
				t.Fatalf("turn %d: %s handled record %d of %s, want record %d", i+1, turn.name, at.index, at.shard, next[at.shard])
			}
			next[at.shard]++
			key, number, _ := strings.Cut(data, "/")
			n, err := strconv.Atoi(number)
			if err != nil || n > newest[key]+1 {
				t.Fatalf("turn %d: %s follows number %d", i+1, data, newest[key])
			}
			newest[key] = max(newest[key], n)
			keys[key] = true
		}
	}
	lost := 0
	for shard, list := range kept {
		lost += len(list) - next[shard]
	}
	if lost > 0 || total-w.records != repeated {
		t.Errorf("%d records are lost, and %d were repeated instead of %d", lost, total-w.records, repeated)
	}
	verdict := cmp.Or(map[bool]string{true: "FAILED"}[t.Failed()], "PASSED")
	t.Logf("verdict %s: %d records in %d shards, %d moves; %d lost, %d repeated, all of them after the "+
		"checkpoints that were moved; the records of %d keys in order",
		verdict, w.records, len(kept), len(turns)-1, lost, total-w.records, len(keys))
}
