package migrate

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/weir-go/weir/aggregate"
	"github.com/weir-go/weir/cmd/weir/internal/cli"
	"github.com/weir-go/weir/cmd/weir/internal/clitest"
)

const (
	shard0 = "shardId-000000000000"
	shard1 = "shardId-000000000001"
	shard2 = "shardId-000000000002"
	shard3 = "shardId-000000000003"
)

// orders creates a stream with two shards, and splits the first one. It returns the sequence
// numbers of the plain records in shard 1, and of an aggregate of three records there.
func orders(t *testing.T) (endpoint string, plain []string, packed string) {
	t.Helper()
	server, endpoint := clitest.Kinesis(t)
	server.CreateStream("orders", 2)
	server.Split("orders", shard0)
	put := func(data string) string {
		for i := range 1000 { // a key of shard 1
			if id, seq := server.Put("orders", strings.Repeat("k", i+1), []byte(data)); id == shard1 {
				return seq
			}
		}
		t.Fatal("no key of shard 1")
		return ""
	}
	plain = append(plain, put("one"))
	var b aggregate.Builder
	for _, data := range []string{"two", "three", "four"} {
		if err := b.Add("k", "", []byte(data)); err != nil {
			t.Fatal(err)
		}
	}
	packed = put(string(b.AppendContainer(nil)))
	plain = append(plain, put("five"))
	return endpoint, plain, packed
}

func TestThereFromTheKCL(t *testing.T) {
	t.Parallel()
	endpoint, _, packed := orders(t)
	d, dynamo := table(
		t,
		kclLease(
			shard0,
			"SHARD_END",
			0,
			"",
		),
		kclLease(shard1, packed, 1, ""),
		kclLease(shard2, "TRIM_HORIZON", 0, ""),
		kclLease(shard3, "LATEST", 0, ""),
		item{"leaseKey": s("Migration3.0"), "entityType": s("CLIENT_VERSION_MIGRATION")},
	)
	store := "sqlite:" + filepath.Join(t.TempDir(), "weir.db")
	args := []string{
		"migrate",
		"kcl",
		endpoint,
		dynamo,
		"--table=billing",
		"--stream=orders",
		"--to=" + store,
		"--app=billing",
	}

	plan := clitest.MustRun(t, "", args...)
	for _, want := range []string{"Stream orders\nSHARD         KCL", "\n000000000000  SHARD_END", "TRIM_HORIZON     oldest", "/1", "+2", "LATEST: no record was", "Add --yes"} {
		if !strings.Contains(plan, want) {
			t.Errorf("the plan lacks %q:\n%s", want, plan)
		}
	}
	for line := range strings.Lines(plan) {
		if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > columns {
			t.Errorf("%d columns: %s", n, line)
		}
	}
	if list := clitest.MustRun(t, "", "group", "list", "--store="+store); strings.Contains(
		list,
		"billing",
	) {
		t.Errorf("the plan alone has written: %s", list)
	}

	out := clitest.Decode[report](t, clitest.MustRun(t, "", append(args, "--yes", "-o=json")...))
	if !out.Verified || out.count("done") != 4 {
		t.Errorf("%+v", out)
	}
	again := clitest.Decode[report](t, clitest.MustRun(t, "", append(args, "--yes", "-o=json")...))
	if !again.Verified || again.count("unchanged") != 4 {
		t.Errorf("a second run: %+v", again)
	}

	// A worker reads the last user record of the aggregate and everything after it.
	worker := clitest.Start(
		t,
		"",
		"consume",
		endpoint,
		"--stream=orders",
		"--app=billing",
		"--store="+store,
	)
	worker.Out.Await(t, "two records", func(s string) bool { return strings.Count(s, "\n") >= 2 })
	clitest.Stop(t, worker)
	if got := worker.Out.String(); !strings.Contains(got, "four") ||
		!strings.Contains(got, "five") ||
		strings.Contains(got, "three") ||
		strings.Contains(got, "one") {
		t.Errorf("the worker has read %s", got)
	}

	// The command overwrites newer progress only with --replace.
	if _, said := clitest.MustExit(t, cli.ExitFailed, append(args, "--yes")...); !strings.Contains(
		said,
		"the application is ahead in 1 of these shards already",
	) {
		t.Errorf("newer progress: %s", said)
	}
	clitest.MustRun(t, "", append(args, "--yes", "--replace")...)
	d.set(
		shard1,
		"checkpoint",
		s("49590338271490256608559692538361571095921575989136588898000000000000"),
	)
	if _, said := clitest.MustExit(t, cli.ExitFailed, append(args, "--yes", "--replace")...); !strings.Contains(
		said,
		"checkpoint",
	) {
		t.Errorf("an unknown number: %s", said)
	}
}

func TestThereRefusesWhileTheKCLRuns(t *testing.T) {
	t.Parallel()
	endpoint, plain, _ := orders(t)
	d, dynamo := table(
		t,
		kclLease(shard0, "SHARD_END", 0, ""),
		kclLease(shard1, plain[0], 0, "worker-7"),
	)
	stop := make(chan struct{})
	done := make(chan struct{})
	go func() {
		defer close(done)
		for i := int64(13); ; i++ {
			select {
			case <-stop:
				return
			case <-time.After(20 * time.Millisecond):
				d.set(shard1, "leaseCounter", n(i))
			}
		}
	}()
	store := "--to=sqlite:" + filepath.Join(t.TempDir(), "weir.db")
	args := []string{
		"migrate",
		"kcl",
		endpoint,
		dynamo,
		"--table=billing",
		"--stream=orders",
		store,
		"--app=billing",
		"--yes",
		"--failover=1s",
	}
	if _, said := clitest.MustExit(t, cli.ExitFailed, args...); !strings.Contains(
		said,
		"workers of the KCL run: worker-7 (has lease "+shard1+"); stop them first",
	) {
		t.Errorf("it says %s", said)
	}

	// With --watch the application waits until no lease of the KCL changes any more, and then
	// begins.
	watcher := clitest.Start(t, "", append(args, "--watch")...)
	watcher.Err.Await(
		t,
		"waits",
		func(s string) bool { return strings.Contains(s, "waiting for the end of worker-7") },
	)
	worker := clitest.Start(
		t,
		"",
		"consume",
		endpoint,
		"--stream=orders",
		"--app=billing",
		strings.Replace(store, "--to", "--store", 1),
	)
	close(stop)
	<-done
	began := time.Now()
	if code := watcher.Wait(t); code != cli.ExitDone {
		t.Fatalf("--watch ends with %d: %s", code, watcher.Err)
	}
	stopped := time.Since(began) // includes the failover time and the margin, 2 s
	worker.Out.Await(
		t,
		"the records after the checkpoint",
		func(s string) bool { return strings.Contains(s, "five") },
	)
	if took := time.Since(began); took-stopped > 10*time.Second {
		t.Errorf("the worker began %s after the proof", took-stopped)
	}
	clitest.Stop(t, worker)
	if lines := worker.Out.Lines(); slices.ContainsFunc(
		lines,
		func(l string) bool { return strings.Contains(l, "one") },
	) {
		t.Errorf("a record before the checkpoint came: %q", lines)
	}
}

func TestThereRefusesWrongInput(t *testing.T) {
	t.Parallel()
	endpoint, plain, _ := orders(t)
	_, dynamo := table(
		t,
		kclLease(shard1, plain[0], 0, ""),
		kclLease(shard3, "AT_TIMESTAMP", 0, ""),
	)
	_, odd := table(t, item{"leaseKey": s(shard1), "leaseCounter": n(1)})
	_, empty := table(t)
	_, several := table(t, kclLease("123456789012:orders:1690000000:"+shard1, plain[0], 0, ""))
	store := "--to=sqlite:" + filepath.Join(t.TempDir(), "weir.db")
	base := []string{"migrate", "kcl", endpoint, "--app=a", store}
	for name, c := range map[string]struct {
		args []string
		code int
		want string
	}{
		"no table":           {[]string{dynamo, "--stream=orders"}, cli.ExitUsage, "needs --table"},
		"a wrong table":      {[]string{dynamo, "--table=a b", "--stream=orders"}, cli.ExitUsage, `--table "a b"`},
		"a missing table":    {[]string{dynamo, "--table=other", "--stream=orders"}, cli.ExitFailed, "there is no DynamoDB table other"},
		"no stream":          {[]string{dynamo, "--table=billing"}, cli.ExitUsage, "does not name its stream"},
		"two streams":        {[]string{dynamo, "--table=billing", "--stream=a", "--stream=b"}, cli.ExitUsage, "give one --stream"},
		"an unknown stream":  {[]string{dynamo, "--table=billing", "--stream=nothing"}, cli.ExitFailed, "there is no such stream"},
		"watch without yes":  {[]string{dynamo, "--table=billing", "--stream=orders", "--watch"}, cli.ExitUsage, "add --yes"},
		"a time that is not": {[]string{dynamo, "--table=billing", "--stream=orders", "--at=yesterday"}, cli.ExitUsage, `--at "yesterday"`},
		"a future time":      {[]string{dynamo, "--table=billing", "--stream=orders", "--latest=2200-01-01T00:00:00Z"}, cli.ExitUsage, "future"},
		"no time":            {[]string{dynamo, "--table=billing", "--stream=orders"}, cli.ExitFailed, "give it with --at"},
		"a short failover":   {[]string{dynamo, "--table=billing", "--stream=orders", "--failover=1ms"}, cli.ExitUsage, "--failover 1ms"},
		"an odd item":        {[]string{odd, "--table=billing", "--stream=orders"}, cli.ExitFailed, `item "` + shard1 + `" of the table: ownerSwitchesSinceCheckpoint is missing`},
		"an empty table":     {[]string{empty, "--table=billing", "--stream=orders"}, cli.ExitFailed, "no leases of the KCL"},
		"a stream elsewhere": {[]string{several, "--table=billing", "--stream=clicks"}, cli.ExitFailed, "clicks"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, said := clitest.MustExit(t, c.code, slices.Concat(base, c.args)...); !strings.Contains(
				said,
				c.want,
			) {
				t.Errorf("it says %s, want %q", said, c.want)
			}
		})
	}
	t.Run("several streams need no name", func(t *testing.T) {
		out := clitest.Decode[report](
			t,
			clitest.MustRun(
				t,
				"",
				slices.Concat(base, []string{several, "--table=billing", "-o=json"})...),
		)
		if len(out.Steps) != 4 || out.Steps[0].Stream != "orders" {
			t.Errorf("%+v", out)
		}
	})
	t.Run("with a time", func(t *testing.T) {
		out := clitest.MustRun(
			t,
			"",
			slices.Concat(
				base,
				[]string{dynamo, "--table=billing", "--stream=orders", "--at=oldest"},
			)...)
		if !strings.Contains(out, "AT_TIMESTAMP   oldest") {
			t.Errorf("the plan is %s", out)
		}
	})
}

// The command reads the counters of the KCL's leases again right before it writes, and once after
// it has written.
func TestThereLooksAgainAtTheCounters(t *testing.T) {
	t.Parallel()
	endpoint, plain, _ := orders(t)
	for name, c := range map[string]struct {
		scan    int // before which a worker takes a lease
		want    string
		written bool
	}{
		"before the write": {1, "nothing was changed: a worker of the KCL has started: lease " +
			shard1 + " of worker late has changed", false},
		"after the write": {2, "the leases were written, but a worker of the KCL has started", true},
	} {
		t.Run(name, func(t *testing.T) {
			d, dynamo := table(t, kclLease(shard1, plain[0], 0, ""), kclLease(shard3, "LATEST", 0, ""))
			d.onScan = func(scans int, items map[string]item) {
				if scans == c.scan {
					items[shard1]["leaseCounter"], items[shard1]["leaseOwner"] = n(13), s("late")
				}
			}
			store := "sqlite:" + filepath.Join(t.TempDir(), "weir.db")
			_, said := clitest.MustExit(t, cli.ExitFailed, "migrate", "kcl", endpoint, dynamo,
				"--table=billing", "--stream=orders", "--app=billing", "--to="+store, "--yes")
			if !strings.Contains(said, c.want) {
				t.Errorf("it says %s, want %q", said, c.want)
			}
			list := clitest.MustRun(t, "", "group", "list", "--store="+store)
			if strings.Contains(list, "billing") != c.written {
				t.Errorf("the store has %s", list)
			}
		})
	}
}
