package group

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weir-go/weir/cmd/weir/internal/cli"
	"github.com/weir-go/weir/cmd/weir/internal/clitest"
	"github.com/weir-go/weir/cmd/weir/internal/records"
	"github.com/weir-go/weir/cmd/weir/internal/shardlag"
	"github.com/weir-go/weir/health"
	"github.com/weir-go/weir/kinesistest"
	"github.com/weir-go/weir/lease"
)

// An operator uses the commands while a worker is running.
func TestGroupWithARunningWorker(t *testing.T) {
	t.Parallel()
	server, endpoint := clitest.Kinesis(t)
	server.CreateStream("s", 2)
	dir := t.TempDir()
	store := "--store=sqlite:" + filepath.Join(dir, "leases.db")
	text, _ := clitest.Numbered(50)
	clitest.MustRun(t, text, "put", endpoint, "--stream=s", "--key=key")
	worker := clitest.Start(t, "", "consume", endpoint, store, "--stream=s", "--app=a", "--worker=first")
	worker.Out.Await(t, "all records", func(s string) bool { return strings.Count(s, "\n") >= 50 })

	t.Run("list shows the application", func(t *testing.T) {
		all := clitest.Decode[appList](t, clitest.MustRun(t, "", "group", "list", store, "-o=json")).Applications
		if len(all) != 1 || all[0].App != "a" || all[0].Leases != 2 || all[0].Held != 2 || all[0].Workers != 1 || all[0].Leader != "first" || !slices.Equal(all[0].Streams, []string{"s"}) {
			t.Errorf("listed as %+v", all)
		}
		if text := clitest.MustRun(t, "", "group", "list", store); !strings.Contains(text, "APPLICATION") || !regexp.MustCompile(`(?m)^a  .* s$`).MatchString(text) {
			t.Errorf("listed as %s", text)
		}
	})
	t.Run("list shows the state and the lag", func(t *testing.T) {
		all := clitest.Decode[appList](t, clitest.MustRun(t, "", "group", "list", endpoint, store, "-o=json")).Applications
		if len(all) != 1 || all[0].Worst == nil || all[0].State == health.NotKnown || all[0].Sentence == "" {
			t.Errorf("listed as %+v", all)
		}
		watch := clitest.Start(t, "", "group", "list", endpoint, store, "--watch")
		watch.Out.Await(t, "two looks", func(s string) bool { return strings.Count(s, "APPLICATION") == 2 })
		if code := watch.Interrupt(t); code != cli.ExitDone {
			t.Errorf("exit code %d: %s", code, watch.Err)
		}
	})
	t.Run("there is no lag, and nothing to plan", func(t *testing.T) {
		report := clitest.Decode[lagReport](t, clitest.MustRun(t, "", "group", "lag", endpoint, store, "--app=a", "--max=1h", "-o=json"))
		if report.State.String() == "" || report.Sentence == "" || (len(report.Shards) > 0 && report.State < report.Shards[0].State) {
			t.Errorf("the application is as bad as its worst shard: %+v", report)
		}
		if len(report.Shards) != 2 || report.Unknown != 0 || report.Worst == nil || report.Shards[0].Worker != "first" {
			t.Errorf("lag %+v", report)
		}
		if text := clitest.MustRun(t, "", "group", "plan", store, "--app=a"); text != "Nothing would move: everybody has what is due.\n" {
			t.Errorf("the plan is %q", text)
		}
	})
	t.Run("the doctor finds nothing", func(t *testing.T) {
		type found struct {
			Findings        []struct{ Code string }
			Workers, Leases int
			Leader          string
		}
		out := clitest.MustRun(t, "", "doctor", endpoint, store, "--app=a", "-o=json")
		if r := clitest.Decode[found](t, out); len(r.Findings) != 0 || r.Workers != 1 || r.Leases != 2 || r.Leader != "first" {
			t.Errorf("%s", out)
		}
	})
	t.Run("what could lose progress refuses", func(t *testing.T) {
		dump := filepath.Join(dir, "export.ndjson")
		clitest.MustRun(t, "", "group", "export", store, "--app=a", dump)
		for _, args := range [][]string{
			{"group", "reset", endpoint, store, "--app=a", "--to=oldest", "--yes"},
			{"group", "delete", store, "--app=a", "--yes"},
			{"group", "import", store, "--app=a", "--yes", "--replace", dump},
		} {
			if _, said := clitest.MustExit(t, cli.ExitFailed, args...); !strings.Contains(said, "workers run: first; stop them first") {
				t.Errorf("%v: %s", args, said)
			}
		}
		if left, err := filepath.Glob("weir-*.ndjson"); err != nil || len(left) > 0 {
			t.Errorf("a refusal left %v, %v", left, err)
		}
	})
	t.Run("a pause, and its end", func(t *testing.T) {
		report := clitest.Decode[pauseReport](t, clitest.MustRun(t, "", "group", "pause", store, "--app=a", "--wait=1m", "-o=json"))
		if !report.Changed || report.Held != 0 || !slices.Equal(report.Paused, []string{""}) {
			t.Errorf("paused: %+v", report)
		}
		if text := clitest.MustRun(t, "", "group", "pause", store, "--app=a"); text != "application a was paused already; 0 leases are still held\n" {
			t.Errorf("paused again: %s", text)
		}
		if text := clitest.MustRun(t, "", "group", "describe", store, "--app=a", "--no-lag"); !strings.Contains(text, "It is paused by ") || strings.Count(text, "paused  ") != 2 {
			t.Errorf("described as %s", text)
		}
		out, _ := clitest.MustExit(t, cli.ExitIntended, "doctor", endpoint, store, "--app=a", "-o=json")
		if got := clitest.FindingCodes(t, out); !slices.Equal(got, []string{"paused"}) {
			t.Errorf("the doctor found %v", got)
		}
		if text := clitest.MustRun(t, "", "group", "plan", store, "--app=a"); text != "Nothing would move: the application is paused.\n" {
			t.Errorf("the plan is %q", text)
		}
		report = clitest.Decode[pauseReport](t, clitest.MustRun(t, "", "group", "resume", store, "--app=a", "--wait=1m", "-o=json"))
		if !report.Changed || report.Held != 2 || len(report.Paused) != 0 {
			t.Errorf("resumed: %+v", report)
		}
	})
	t.Run("a stream is paused by its name", func(t *testing.T) {
		if text := clitest.MustRun(t, "", "group", "pause", store, "--app=a", "--stream=s", "--wait=1m"); text != "stream s of a is paused; 0 leases are still held\n" {
			t.Errorf("paused: %s", text)
		}
		if text := clitest.MustRun(t, "", "group", "resume", store, "--app=a"); text != "application a was not paused; still paused: s\n" {
			t.Errorf("resumed: %s", text)
		}
		if text := clitest.MustRun(t, "", "group", "resume", store, "--app=a", "--stream=s", "--wait=1m"); text != "stream s of a is not paused any more; 2 leases are held\n" {
			t.Errorf("resumed: %s", text)
		}
	})
	t.Run("a drain with nobody else, and with another worker", func(t *testing.T) {
		c := clitest.Start(t, "", "group", "drain", store, "--app=a", "first")
		if code := c.Wait(t); code != cli.ExitDone || !strings.Contains(c.Err.String(), "no other worker takes leases") {
			t.Errorf("exit code %d: %s", code, c.Err)
		}
		second := clitest.Start(t, "", "consume", endpoint, store, "--stream=s", "--app=a", "--worker=second")
		report := clitest.Decode[drainReport](t, clitest.MustRun(t, "", "group", "drain", store, "--app=a", "--wait=1m", "-o=json", "first"))
		if report.Held != 0 || len(report.Sessions) != 1 || !report.Drain {
			t.Errorf("drained: %+v", report)
		}
		out, _ := clitest.MustExit(t, cli.ExitIntended, "doctor", endpoint, store, "--app=a", "-o=json")
		if got := clitest.FindingCodes(t, out); !slices.Equal(got, []string{"draining"}) {
			t.Errorf("the doctor found %v", got)
		}
		if text := clitest.MustRun(t, "", "group", "drain", store, "--app=a", "--off", report.Sessions[0]); text != report.Sessions[0]+" takes leases again\n" {
			t.Errorf("ended: %s", text)
		}
		second.Interrupt(t)
	})
	t.Run("a reset while it runs", func(t *testing.T) {
		clitest.MustRun(t, "", "group", "reset", endpoint, store, "--app=a", "--to=oldest", "--while-running", "--yes", "--dump="+filepath.Join(dir, "running.ndjson"))
		worker.Out.Await(t, "all records again", func(s string) bool { return strings.Count(s, "\n") >= 100 })
	})
}

// After a reset to the oldest record, all records are read again. The records of each key are in
// order, across splits and merges.
func TestResetReadsAgainInOrder(t *testing.T) {
	t.Parallel()
	server, endpoint := clitest.Kinesis(t)
	server.CreateStream("s", 3)
	dir := t.TempDir()
	store := "--store=sqlite:" + filepath.Join(dir, "leases.db")
	text, lines := clitest.Numbered(200)
	first, second := text[:strings.Index(text, lines[100])], text[strings.Index(text, lines[100]):]
	clitest.MustRun(t, first, "put", endpoint, "--stream=s", "--key=key")
	open := server.OpenShards("s")
	server.Split("s", open[0])
	server.Merge("s", open[1], open[2])
	clitest.MustRun(t, second, "put", endpoint, "--stream=s", "--key=key")
	clitest.CheckOrder(t, clitest.Consume(t, 200, endpoint, store), lines)

	dump := filepath.Join(dir, "before.ndjson")
	args := []string{"group", "reset", endpoint, store, "--app=a", "--to=oldest", "--dump=" + dump}
	if code, _, said := clitest.Answered(t, "no\n", args...); code != cli.ExitFailed || !strings.Contains(said, "nothing was changed") {
		t.Fatalf("exit code %d: %s", code, said)
	}
	if _, err := os.Stat(dump); err == nil {
		t.Error("a dump was written for nothing")
	}
	out := clitest.MustRun(t, "", append(args, "--dry-run")...)
	if !strings.Contains(out, "6 checkpoints would move; nothing was changed.") || strings.Count(out, "it is opened again") != 3 {
		t.Errorf("the dry run shows %s", out)
	}
	code, out, said := clitest.Answered(t, "yes\n", args...)
	if code != cli.ExitDone || !strings.Contains(out, "6 checkpoints moved.") || !strings.Contains(said, dump) {
		t.Fatalf("exit code %d: %s%s", code, out, said)
	}
	clitest.CheckOrder(t, clitest.Consume(t, 200, endpoint, store), lines)

	t.Run("the dump brings it back", func(t *testing.T) {
		clitest.MustRun(t, `{"key":"a","n":1000}`+"\n", "put", endpoint, "--stream=s", "--key=key")
		clitest.Consume(t, 1, endpoint, store)
		if _, said := clitest.MustExit(t, cli.ExitFailed, "group", "import", store, "--app=a", "--yes", dump); !strings.Contains(said, "give --replace") {
			t.Errorf("without --replace: %s", said)
		}
		report := clitest.Decode[importReport](t, clitest.MustRun(t, "", "group", "import", store, "--app=a", "--yes", "--replace", "-o=json", dump))
		if len(report.Steps) != 6 || report.From != "a" {
			t.Errorf("%+v", report)
		}
		if got := clitest.Consume(t, 1, endpoint, store); !slices.Equal(got, []string{`{"key":"a","n":1000}`}) {
			t.Errorf("it reads %q", got)
		}
	})
	t.Run("latest skips", func(t *testing.T) {
		clitest.MustRun(t, text, "put", endpoint, "--stream=s", "--key=key")
		report := clitest.Decode[resetReport](t, clitest.MustRun(t, "", "group", "reset", endpoint, store, "--app=a", "--to=latest", "--yes", "-o=json", "--dump="+filepath.Join(dir, "latest.ndjson")))
		ends := 0
		for _, s := range report.Steps {
			if s.To == "end" {
				ends++
			}
		}
		if ends != 3 || len(report.Steps) != 6 {
			t.Errorf("%+v", report)
		}
	})
}

// If the progress cannot be dumped, reset and delete stop before they change anything.
func TestNoResetWithoutADump(t *testing.T) {
	server, endpoint := clitest.Kinesis(t)
	server.CreateStream("s", 2)
	dir := t.TempDir()
	store := "--store=sqlite:" + filepath.Join(dir, "leases.db")
	text, _ := clitest.Numbered(10)
	clitest.MustRun(t, text, "put", endpoint, "--stream=s", "--key=key")
	clitest.Consume(t, 10, endpoint, store)
	before := clitest.MustRun(t, "", "group", "export", store, "--app=a", "-")
	taken := filepath.Join(dir, "taken")
	if err := os.WriteFile(taken, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, dump := range []string{taken, filepath.Join(dir, "none", "x")} {
		for _, what := range [][]string{{"reset", endpoint, "--to=oldest"}, {"delete"}} {
			args := append([]string{"group"}, append(what, store, "--app=a", "--yes", "--dump="+dump)...)
			if _, said := clitest.MustExit(t, cli.ExitFailed, args...); !strings.Contains(said, "could not be saved") {
				t.Errorf("%v: %s", args, said)
			}
		}
	}
	if after := clitest.MustRun(t, "", "group", "export", store, "--app=a", "-"); after != before {
		t.Errorf("%s became %s", before, after)
	}
	if mine, err := os.ReadFile(taken); err != nil || string(mine) != "mine" {
		t.Errorf("the file that was there is now %q, %v", mine, err)
	}
}

// An application is exported, imported into another store, and deleted in the old store. It
// continues at its checkpoints.
func TestExportImportDelete(t *testing.T) {
	server, endpoint := clitest.Kinesis(t)
	server.CreateStream("s", 2)
	dir := t.TempDir()
	from, to := "--store=sqlite:"+filepath.Join(dir, "from.db"), "--store=sqlite:"+filepath.Join(dir, "to.db")
	text, _ := clitest.Numbered(40)
	clitest.MustRun(t, text, "put", endpoint, "--stream=s", "--key=key")
	clitest.Consume(t, 40, endpoint, from)
	clitest.MustRun(t, "", "group", "pause", from, "--app=a", "--stream=s")

	dump := clitest.MustRun(t, "", "group", "export", from, "--app=a", "-")
	if out := clitest.MustRun(t, dump, "group", "import", to, "--app=a", "--yes", "-"); !strings.Contains(out, "2 leases brought, 0 were there already. Paused: s.") {
		t.Errorf("%s", out)
	}
	if again := clitest.MustRun(t, dump, "group", "import", to, "--app=a", "--yes", "-"); !strings.Contains(again, "0 leases brought, 2 were there already.") {
		t.Errorf("again: %s", again)
	}
	if there := clitest.MustRun(t, "", "group", "export", to, "--app=a", "-"); there != dump {
		t.Errorf("%s became %s", dump, there)
	}
	half := dump[:strings.LastIndex(strings.TrimSpace(dump), "\n")+1]
	c := clitest.Start(t, half, "group", "import", "--store=sqlite:"+filepath.Join(dir, "half.db"), "--app=a", "--yes", "-")
	if code := c.Wait(t); code != cli.ExitFailed || !strings.Contains(c.Err.String(), "it ends after 1 of its 2 leases") {
		t.Errorf("half a file: exit code %d, %s", code, c.Err)
	}
	if _, err := os.Stat(filepath.Join(dir, "half.db")); err == nil {
		t.Error("half a file made a store")
	}

	clitest.MustRun(t, "", "group", "resume", to, "--app=a", "--stream=s")
	clitest.MustRun(t, `{"key":"a","n":1000}`+"\n", "put", endpoint, "--stream=s", "--key=key")
	if got := clitest.Consume(t, 1, endpoint, to); len(got) != 1 {
		t.Errorf("it repeats %d records", len(got)-1)
	}

	saved := filepath.Join(dir, "saved.ndjson")
	if code, _, said := clitest.Answered(t, "yes\n", "group", "delete", from, "--app=a", "--dump="+saved); code != cli.ExitFailed || !strings.Contains(said, "Type a to do so") {
		t.Errorf("exit code %d: %s", code, said)
	}
	if code, out, _ := clitest.Answered(t, "a\n", "group", "delete", from, "--app=a", "--dump="+saved); code != cli.ExitDone || out != "application a and its 2 leases are deleted\n" {
		t.Errorf("exit code %d: %s", code, out)
	}
	if text := clitest.MustRun(t, "", "group", "list", from); text != "This store has no applications.\n" {
		t.Errorf("there still is %s", text)
	}
	if text, err := os.ReadFile(saved); err != nil || string(text) != dump {
		t.Errorf("%v, saved %s, want %s", err, text, dump)
	}
}

// A reset can prepare an application that has never run.
func TestResetBeforeTheFirstWorker(t *testing.T) {
	server, endpoint := clitest.Kinesis(t)
	server.CreateStream("s", 1)
	dir := t.TempDir()
	store := "--store=sqlite:" + filepath.Join(dir, "leases.db")
	clitest.MustRun(t, "", "store", "create", store)
	shard, _ := server.Put("s", "k", []byte(`one`))
	_, second := server.Put("s", "k", []byte(`two`))
	clitest.MustRun(t, "", "group", "reset", endpoint, store, "--app=a", "--stream=s", "--shard="+records.ShortID(shard), "--to="+second+"+0", "--yes", "--dump="+filepath.Join(dir, "d"))
	if got := clitest.Consume(t, 1, endpoint, store); !slices.Equal(got, []string{"two"}) {
		t.Errorf("it read %q", got)
	}
	for _, v := range clitest.Decode[description](t, clitest.MustRun(t, "", "group", "describe", endpoint, store, "--app=a", "-o=json")).Leases {
		if v.Created == "" {
			t.Errorf("%+v does not say when its stream was made", v)
		}
	}
}

func TestLagForMonitors(t *testing.T) {
	server, endpoint := clitest.Kinesis(t)
	server.CreateStream("s", 2)
	dir := t.TempDir()
	store := "--store=sqlite:" + filepath.Join(dir, "leases.db")
	text, _ := clitest.Numbered(20)
	clitest.MustRun(t, text, "put", endpoint, "--stream=s", "--key=key")
	clitest.Consume(t, 20, endpoint, store)
	clitest.MustRun(t, text, "put", endpoint, "--stream=s", "--key=key")
	out, said := clitest.MustExit(t, cli.ExitWrong, "group", "lag", endpoint, store, "--app=a", "--max=0s")
	if !strings.Contains(out, "behind; the worst by") || !strings.Contains(said, "behind, more than 0 s") {
		t.Errorf("%s%s", out, said)
	}
	clitest.MustRun(t, "", "group", "lag", endpoint, store, "--app=a", "--max=24h")
	clitest.MustRun(t, "", "group", "lag", endpoint, store, "--app=a")

	blocked := server.OpenShards("s")[0]
	server.Control("GetRecords", func(c *kinesistest.Call) (f kinesistest.Fault) {
		if c.Shard == blocked {
			f.Err = &kinesistest.Error{Code: "KMSDisabledException", Message: "the key is off"}
		}
		return f
	})
	if out, said := clitest.MustExit(t, cli.ExitFailed, "group", "lag", endpoint, store, "--app=a", "--max=24h"); !strings.Contains(out, "the key is off") || !strings.Contains(said, "the lag of 1 shard is not known") {
		t.Errorf("%s%s", out, said)
	}
	if text := clitest.MustRun(t, "", "group", "lag", endpoint, store, "--app=a"); !strings.Contains(text, "not known of 1") {
		t.Errorf("without --max: %s", text)
	}
}

// The store still names a killed worker as the owner of its shards. The command "group lag"
// therefore checks whether the worker's heartbeats continue.
func TestLagTellsThatWorkersAreDead(t *testing.T) {
	t.Parallel()
	key := func(stream, id string) lease.Key { return lease.Key{Stream: stream, Shard: id} }
	v := lease.View{
		Workers: []lease.Worker{{Session: "s1", Name: "w1"}, {Session: "s2", Name: "w2"}},
		Leases:  []lease.Lease{{Key: key("orders", "a"), Owner: "s1"}, {Key: key("orders", "b"), Owner: "s2"}, {Key: key("bills", "c"), Owner: "s1"}},
	}
	lags := map[lease.Key]shardlag.Lag{key("orders", "a"): {Age: time.Second}, key("orders", "b"): {Age: 20 * time.Hour}}
	for name, c := range map[string]struct {
		beats    map[string]bool
		length   time.Duration
		kept     time.Duration
		state    health.State
		sentence string
	}{
		"all send heartbeats":              {map[string]bool{"s1": true, "s2": true}, time.Minute, 0, health.Behind, "b of orders"},
		"half of the retention has passed": {map[string]bool{"s1": true, "s2": true}, time.Minute, 24 * time.Hour, health.RetentionNear, "records expire in 4 h"},
		"one does not":                     {map[string]bool{"s2": true}, time.Minute, 0, health.Unread, "a of orders, 1 s behind, its worker sends no heartbeats"},
		"none does":                        {map[string]bool{}, time.Minute, 0, health.Unread, "no worker lives"},
		"it was not looked for long":       {map[string]bool{}, time.Millisecond, 0, health.Behind, "b of orders"},
		"it was not looked at all":         {nil, time.Minute, 0, health.Behind, "b of orders"},
	} {
		look := shardlag.LookAt(time.Now(), v, lags)
		look.Silent, look.Retention = shardlag.SilentIn(v, c.beats, c.length), map[string]time.Duration{"orders": c.kept}
		r := lagsOf("app", look, nil, lags)
		if r.State != c.state || !strings.Contains(r.Sentence, c.sentence) || strings.Contains(r.Sentence, "bills") || len(r.Shards) != 2 {
			t.Errorf("%s: %v, %s, of %d shards; want %v, %s", name, r.State, r.Sentence, len(r.Shards), c.state, c.sentence)
		}
	}
}
