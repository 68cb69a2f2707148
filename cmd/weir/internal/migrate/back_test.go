package migrate

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/weir-go/weir/cmd/weir/internal/cli"
	"github.com/weir-go/weir/cmd/weir/internal/clitest"
)

// An application moves from the KCL to weir, continues there, and moves back.
func TestThereAndBack(t *testing.T) {
	t.Parallel()
	endpoint, plain, packed := orders(t)
	d, dynamo := table(
		t,
		kclLease(shard0, "SHARD_END", 0, ""),
		kclLease(shard1, packed, 0, "dead"),
		kclLease(shard2, "TRIM_HORIZON", 0, ""),
		kclLease(shard3, "LATEST", 0, ""),
	)
	d.set(shard1, "leaseOwner", nil)
	d.set(shard1, "throughputKBps", map[string]any{"N": "1.0E-6"})
	store := "sqlite:" + filepath.Join(t.TempDir(), "weir.db")
	args := []string{
		"migrate",
		"kcl",
		endpoint,
		dynamo,
		"--table=billing",
		"--stream=orders",
		"--app=billing",
	}
	clitest.MustRun(t, "", append(args, "--yes", "--to="+store)...)
	worker := clitest.Start(
		t,
		"",
		"consume",
		endpoint,
		"--stream=orders",
		"--app=billing",
		"--store="+store,
	)
	worker.Out.Await(t, "the rest", func(s string) bool { return strings.Contains(s, "five") })

	back := append(args, "--from="+store)
	if _, said := clitest.MustExit(t, cli.ExitFailed, append(back, "--yes")...); !strings.Contains(
		said,
		"workers run: ",
	) {
		t.Errorf("while a worker runs: %s", said)
	}
	clitest.Stop(t, worker)
	if _, said := clitest.MustExit(t, cli.ExitFailed, append(back, "--yes")...); !strings.Contains(
		said,
		"leases of stream orders are times",
	) ||
		!strings.Contains(said, "or give --at oldest") {
		t.Errorf("a lease at a time: %s", said)
	}
	back = append(back, "--at=oldest")
	plan := clitest.MustRun(t, "", back...)
	if !strings.Contains(plan, "would be written; nothing was changed") ||
		!strings.Contains(plan, "SHARD         WEIR") {
		t.Errorf("the plan is %s", plan)
	}
	before := d.items[shard1]["leaseCounter"]["N"]
	out := clitest.Decode[report](t, clitest.MustRun(t, "", append(back, "--yes", "-o=json")...))
	if !out.Verified || out.count("done") != 2 || out.count("unchanged") != 2 {
		t.Errorf("%+v", out)
	}
	got := d.items[shard1]
	if got["checkpoint"]["S"] != plain[1] ||
		got["checkpointSubSequenceNumber"]["N"] != "2147483647" ||
		got["leaseCounter"]["N"] != "13" ||
		before != "12" ||
		got["throughputKBps"]["N"] != "1.0E-6" ||
		got["leaseOwner"] != nil {
		t.Errorf("written as %v", got)
	}
	if got := d.items[shard3]["checkpoint"]["S"]; got != "TRIM_HORIZON" {
		t.Errorf("the lease at a time is at %v", got)
	}
	again := clitest.Decode[report](t, clitest.MustRun(t, "", append(back, "--yes", "-o=json")...))
	if !again.Verified || again.count("unchanged") != 4 {
		t.Errorf("a second run: %+v", again)
	}
	// Move from the table of the KCL to weir again. weir's leases exist already.
	there := clitest.Decode[report](
		t,
		clitest.MustRun(t, "", append(args, "--yes", "--to="+store, "--replace", "-o=json")...),
	)
	if !there.Verified || there.count("unchanged") < 3 {
		t.Errorf("there once more: %+v", there)
	}
}

func TestBackIntoANewTable(t *testing.T) {
	t.Parallel()
	endpoint, _, _ := orders(t)
	store := "sqlite:" + filepath.Join(t.TempDir(), "weir.db")
	clitest.MustRun(t, "", "store", "create", "--store="+store)
	clitest.MustRun(
		t,
		"",
		"group",
		"reset",
		endpoint,
		"--store="+store,
		"--app=a",
		"--stream=orders",
		"--to=oldest",
		"--yes",
		"--dump="+filepath.Join(t.TempDir(), "dump"),
	)
	for name, several := range map[string]bool{"one stream": false, "several streams": true} {
		t.Run(name, func(t *testing.T) {
			d, dynamo := table(t)
			d.absent = true
			args := []string{
				"migrate",
				"kcl",
				endpoint,
				dynamo,
				"--table=billing",
				"--app=a",
				"--from=" + store,
			}
			if several {
				args = append(args, "--multi-stream")
			}
			clitest.MustRun(t, "", args...)
			if !d.absent {
				t.Fatal("the plan alone has made the table")
			}
			clitest.MustRun(t, "", append(args, "--yes")...)
			var keys []string
			for key, it := range d.items {
				keys = append(keys, key)
				if it["startingHashKey"] == nil || it["leaseCounter"]["N"] != "0" ||
					it["entityType"] != nil ||
					(it["streamName"] != nil) != several {
					t.Errorf("%s is written as %v", key, it)
				}
			}
			slices.Sort(keys)
			if len(keys) != 4 || several != strings.HasPrefix(keys[0], "000000000000:orders:") ||
				!strings.HasSuffix(keys[0], shard0) {
				t.Errorf("the keys are %q", keys)
			}
		})
	}
}

func TestBackStopsWhenALeaseChanges(t *testing.T) {
	t.Parallel()
	endpoint, plain, _ := orders(t)
	d, dynamo := table(
		t,
		kclLease(shard1, plain[0], 0, ""),
		kclLease(shard3, "TRIM_HORIZON", 0, ""),
	)
	store := "sqlite:" + filepath.Join(t.TempDir(), "weir.db")
	args := []string{
		"migrate",
		"kcl",
		endpoint,
		dynamo,
		"--table=billing",
		"--stream=orders",
		"--app=a",
		"--yes",
	}
	clitest.MustRun(t, "", append(args, "--to="+store)...)
	d.beforeWrite = func(items map[string]item) { items[shard1]["leaseCounter"] = n(99) }
	_, said := clitest.MustExit(t, cli.ExitFailed, append(args, "--from="+store)...)
	if !strings.Contains(said, "1 changed meanwhile: stop the workers of the KCL") {
		t.Errorf("it says %s", said)
	}
	d.beforeWrite = nil
	clitest.MustRun(t, "", append(args, "--from="+store)...)
	if got := d.items[shard1]["checkpointSubSequenceNumber"]["N"]; got != "2147483647" {
		t.Errorf("the second run has written %v", got)
	}
}
