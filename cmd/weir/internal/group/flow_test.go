package group

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weir-go/weir/cmd/weir/internal/cli"
	"github.com/weir-go/weir/cmd/weir/internal/clitest"
)

// A new user first runs put, tail, consume and describe.
func TestPutTailConsumeDescribe(t *testing.T) {
	t.Parallel()
	server, endpoint := clitest.Kinesis(t)
	store := "--store=sqlite:" + filepath.Join(t.TempDir(), "leases.db")
	text, lines := clitest.Numbered(300)

	var summary struct {
		Records, Bytes, Retries int
		Shards                  map[string]int
	}
	out := clitest.MustRun(t, text, "put", endpoint, "--stream=s", "--create", "--shards=3", "--key=key", "-o=json")
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
		out := clitest.MustRun(t, "", "tail", endpoint, "--stream=s", "--until-tip")
		clitest.CheckOrder(t, strings.Split(strings.TrimSpace(out), "\n"), lines)
	})
	t.Run("tail prints objects", func(t *testing.T) {
		out := clitest.MustRun(t, "", "tail", endpoint, "--stream=s", "--from=oldest", "--limit=7", "-o=json")
		all := clitest.ParsePrinted(t, strings.Split(strings.TrimSpace(out), "\n"))
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
			out := clitest.MustRun(t, "", "tail", endpoint, "--stream=s", "--until-tip", "--shard="+id)
			if got := strings.Count(out, "\n"); got != n {
				t.Errorf("%s: %d records, want %d", id, got, n)
			}
		}
	})

	worker := clitest.Start(t, "", "consume", endpoint, store, "--stream=s", "--app=a", "--worker=first")
	worker.Out.Await(t, "all records", func(s string) bool { return strings.Count(s, "\n") >= 300 })
	clitest.CheckOrder(t, worker.Out.Lines(), lines)

	t.Run("describe shows the worker", func(t *testing.T) {
		var d description
		out := clitest.MustRun(t, "", "group", "describe", endpoint, store, "--app=a", "-o=json", "--watch=30s")
		if err := json.Unmarshal([]byte(out), &d); err != nil {
			t.Fatal(err)
		}
		if d.Leader == nil || d.Leader.Worker != "first" || len(d.Workers) != 1 || d.Workers[0].State != "alive" || len(d.Leases) != 3 {
			t.Errorf("described as %s", out)
		}
		for _, l := range d.Leases {
			if l.Worker != "first" || l.State != "held" || l.Lag == nil {
				t.Errorf("lease %+v", l)
			}
		}
		text := clitest.MustRun(t, "", "group", "describe", endpoint, store, "--app=a", "--no-lag", "--watch=0")
		if !strings.Contains(text, "first leads") || !strings.Contains(text, "held") || !strings.Contains(text, "?") {
			t.Errorf("described as %s", text)
		}
	})
	if code := worker.Interrupt(t); code != cli.ExitDone {
		t.Errorf("the worker ended with %d: %s", code, worker.Err)
	}

	t.Run("progress is saved and the leases are free", func(t *testing.T) {
		var d description
		if err := json.Unmarshal([]byte(clitest.MustRun(t, "", "group", "describe", endpoint, store, "--app=a", "-o=json")), &d); err != nil {
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
		next := clitest.Start(t, "", "consume", endpoint, store, "--stream=s", "--app=a", "-o=json")
		clitest.MustRun(t, `{"key":"a","n":1000}`+"\n", "put", endpoint, "--stream=s", "--key=key")
		next.Out.Await(t, "the new record", func(s string) bool { return strings.Contains(s, "1000") })
		if got := next.Out.Lines(); len(got) != 1 {
			t.Errorf("it repeats %d records", len(got)-1)
		}
		if code := next.Interrupt(t); code != cli.ExitDone {
			t.Errorf("it ended with %d: %s", code, next.Err)
		}
	})
}
