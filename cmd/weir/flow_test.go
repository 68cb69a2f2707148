package main

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

type printed struct {
	Shard, Sequence, Key, Arrival string
	Data                          *string
	Base64                        []byte `json:"data_base64"`
}

func parsePrinted(t *testing.T, lines []string) []printed {
	t.Helper()
	var all []printed
	for _, line := range lines {
		var p printed
		if err := json.Unmarshal([]byte(line), &p); err != nil {
			t.Fatalf("line %q: %v", line, err)
		}
		all = append(all, p)
	}
	return all
}

// checkOrder complains unless the records are exactly the lines, those of each key in their order.
func checkOrder(t *testing.T, got, want []string) {
	t.Helper()
	number := func(line string) (key string, n int) {
		var v struct {
			Key string
			N   int
		}
		if err := json.Unmarshal([]byte(line), &v); err != nil {
			t.Fatalf("line %q: %v", line, err)
		}
		return v.Key, v.N
	}
	last := map[string]int{}
	for _, line := range got {
		key, n := number(line)
		if before, any := last[key]; any && n <= before {
			t.Fatalf("%d of key %s comes after %d", n, key, before)
		}
		last[key] = n
	}
	if sorted, wanted := slices.Sorted(slices.Values(got)), slices.Sorted(slices.Values(want)); !slices.Equal(sorted, wanted) {
		t.Fatalf("%d lines came, %d were put, and they are not the same", len(got), len(want))
	}
}

// What a newcomer does first: put, tail, consume, describe.
func TestPutTailConsumeDescribe(t *testing.T) {
	t.Parallel()
	server, endpoint := kinesisServer(t)
	store := "--store=sqlite:" + filepath.Join(t.TempDir(), "leases.db")
	text, lines := numbered(300)

	var summary struct {
		Records, Bytes, Retries int
		Shards                  map[string]int
	}
	out := mustRun(t, text, "put", endpoint, "--stream=s", "--create", "--shards=3", "--key=key", "-o=json")
	if err := json.Unmarshal([]byte(out), &summary); err != nil {
		t.Fatalf("summary %q: %v", out, err)
	}
	total := 0
	for _, n := range summary.Shards {
		total += n
	}
	if summary.Records != 300 || total != 300 || summary.Bytes < len(text)-300 {
		t.Errorf("summary %s", out)
	}
	if n := len(server.OpenShards("s")); n != 3 {
		t.Errorf("the stream has %d shards, want 3", n)
	}

	t.Run("tail prints what was put", func(t *testing.T) {
		out := mustRun(t, "", "tail", endpoint, "--stream=s", "--until-tip")
		checkOrder(t, strings.Split(strings.TrimSpace(out), "\n"), lines)
	})
	t.Run("tail prints objects", func(t *testing.T) {
		out := mustRun(t, "", "tail", endpoint, "--stream=s", "--from=oldest", "--limit=7", "-o=json")
		all := parsePrinted(t, strings.Split(strings.TrimSpace(out), "\n"))
		if len(all) != 7 {
			t.Fatalf("%d records, want 7", len(all))
		}
		for _, p := range all {
			if p.Data == nil || !strings.Contains(*p.Data, `"key":"`+p.Key+`"`) || p.Sequence == "" || p.Arrival == "" || !strings.HasPrefix(p.Shard, "shardId-") {
				t.Errorf("record %+v", p)
			}
		}
	})
	t.Run("tail reads one shard", func(t *testing.T) {
		for id, n := range summary.Shards {
			out := mustRun(t, "", "tail", endpoint, "--stream=s", "--until-tip", "--shard="+id)
			if got := strings.Count(out, "\n"); got != n {
				t.Errorf("%s: %d records, want %d", id, got, n)
			}
		}
	})

	worker := start(t, "", "consume", endpoint, store, "--stream=s", "--app=a", "--worker=first")
	worker.out.await(t, "all records", func(s string) bool { return strings.Count(s, "\n") >= 300 })
	checkOrder(t, worker.out.lines(), lines)

	t.Run("describe shows the worker", func(t *testing.T) {
		var d description
		out := mustRun(t, "", "group", "describe", endpoint, store, "--app=a", "-o=json", "--watch=30s")
		if err := json.Unmarshal([]byte(out), &d); err != nil {
			t.Fatal(err)
		}
		if d.Leader == nil || d.Leader.Worker != "first" || len(d.Workers) != 1 || d.Workers[0].State != "beating" || len(d.Leases) != 3 {
			t.Errorf("described as %s", out)
		}
		for _, l := range d.Leases {
			if l.Worker != "first" || l.State != "held" || l.Lag == nil {
				t.Errorf("lease %+v", l)
			}
		}
		text := mustRun(t, "", "group", "describe", endpoint, store, "--app=a", "--no-lag", "--watch=0")
		if !strings.Contains(text, "first leads") || !strings.Contains(text, "held") || !strings.Contains(text, "?") {
			t.Errorf("described as %s", text)
		}
	})
	if code := worker.interrupt(t); code != exitDone {
		t.Errorf("the worker ended with %d: %s", code, worker.err)
	}

	t.Run("progress is saved and the leases are free", func(t *testing.T) {
		var d description
		if err := json.Unmarshal([]byte(mustRun(t, "", "group", "describe", endpoint, store, "--app=a", "-o=json")), &d); err != nil {
			t.Fatal(err)
		}
		if d.Leader != nil || len(d.Workers) != 0 {
			t.Errorf("there still are %+v, led by %+v", d.Workers, d.Leader)
		}
		for _, l := range d.Leases {
			if l.State != "free" || l.Lag == nil || *l.Lag != 0 || l.Checkpoint == "oldest" {
				t.Errorf("lease %+v", l)
			}
		}
	})
	t.Run("the next worker goes on where that one stopped", func(t *testing.T) {
		next := start(t, "", "consume", endpoint, store, "--stream=s", "--app=a", "-o=json")
		mustRun(t, `{"key":"a","n":1000}`+"\n", "put", endpoint, "--stream=s", "--key=key")
		next.out.await(t, "the new record", func(s string) bool { return strings.Contains(s, "1000") })
		if got := next.out.lines(); len(got) != 1 {
			t.Errorf("it repeats %d records", len(got)-1)
		}
		if code := next.interrupt(t); code != exitDone {
			t.Errorf("it ended with %d: %s", code, next.err)
		}
	})
}

// Two workers, a split and a merge: every line appears, those of each key in order whoever printed
// them.
func TestConsumeThroughSplitsAndMerges(t *testing.T) {
	t.Parallel()
	server, endpoint := kinesisServer(t)
	server.CreateStream("s", 4)
	store := "--store=sqlite:" + filepath.Join(t.TempDir(), "leases.db")
	out := newOutput()
	var workers []*command
	for i := range 2 {
		workers = append(workers, startTo(t, out, strings.NewReader(""), "consume", endpoint, store, "--stream=s", "--app=a", fmt.Sprint("--worker=w", i)))
	}
	text, lines := numbered(200)
	first, second := text[:strings.Index(text, lines[100])], text[strings.Index(text, lines[100]):]
	mustRun(t, first, "put", endpoint, "--stream=s", "--key=key")
	open := server.OpenShards("s")
	server.Split("s", open[0])
	server.Merge("s", open[1], open[2])
	mustRun(t, second, "put", endpoint, "--stream=s", "--key=key")

	out.await(t, "all records", func(s string) bool { return strings.Count(s, "\n") >= 200 })
	checkOrder(t, out.lines(), lines)
	for _, w := range workers {
		if code := w.interrupt(t); code != exitDone {
			t.Errorf("a worker ended with %d: %s", code, w.err)
		}
	}
}
