package main

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/cmd/weir/internal/clitest"
	"github.com/weir-go/weir/cmd/weir/internal/demo"
	"github.com/weir-go/weir/cmd/weir/internal/explain"
)

func smallDemo(t *testing.T) (demo.Options, *clitest.Output) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	out := clitest.NewOutput()
	return demo.Options{
		Flights: 2000, Shards: 4, Workers: 3, Duration: 5 * time.Second, Leader: true,
		Command: []string{self, demo.WorkerName}, Beat: 200 * time.Millisecond, Failover: 1500 * time.Millisecond,
		Show: &demo.Plain{Out: out},
	}, out
}

// ownTemp gives the demo its own directory for temporary files. leftovers looks there for files
// that the demo left behind.
func ownTemp(t *testing.T) {
	t.Helper()
	t.Setenv("TMPDIR", t.TempDir())
}

func leftovers(t *testing.T) []string {
	t.Helper()
	left, err := filepath.Glob(filepath.Join(os.Getenv("TMPDIR"), "*"))
	if err != nil {
		t.Fatal(err)
	}
	return left
}

// Run the demo with few flights and short times: real processes, a split, a merge, a kill and a
// stop.
func TestDemo(t *testing.T) {
	ownTemp(t)
	o, said := smallDemo(t)
	r, err := demo.Run(t.Context(), o)
	if err != nil {
		t.Fatalf("%v\n%s", err, said)
	}
	if !r.Clean() || r.Put != 2000 || r.Distinct != 2000 || r.Handled != r.Distinct+r.Duplicates {
		t.Errorf("verdict %+v\n%s", r.Verdict, said)
	}
	if r.Splits != 1 || r.Merges != 1 || !r.Kill.Over() || r.Kill.Longest <= 0 || !r.Stop.Over() || r.Stop.Longest <= 0 || r.JoinBalanced <= 0 {
		t.Errorf("result %+v\n%s", r, said)
	}
	if left := leftovers(t); len(left) > 0 {
		t.Errorf("it left %v behind", left)
	}
	out := clitest.NewOutput()
	if err := r.WriteJSON(out); err != nil {
		t.Fatal(err)
	}
	var keys map[string]int
	if err := json.Unmarshal([]byte(out.String()), &keys); err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"put", "handled", "distinct", "lost", "duplicates", "order_violations", "splits", "merges",
		"kill_gap_ms", "stop_gap_ms", "join_balanced_ms"} {
		if _, there := keys[key]; !there {
			t.Errorf("the verdict lacks %s: %s", key, out)
		}
		delete(keys, key)
	}
	if len(keys) > 0 {
		t.Errorf("the verdict also has %v", keys)
	}
}

func TestDemoThatIsInterruptedLeavesNothing(t *testing.T) {
	ownTemp(t)
	o, said := smallDemo(t)
	ctx, cancel := context.WithCancelCause(t.Context())
	ended := make(chan error, 1)
	go func() {
		_, err := demo.Run(ctx, o)
		ended <- err
	}()
	said.Await(t, "the split", func(s string) bool { return strings.Contains(s, "is split") })
	cancel(explain.ErrInterrupted)
	if err := <-ended; !errors.Is(err, explain.ErrInterrupted) {
		t.Errorf("the demo ended with %v", err)
	}
	if left := leftovers(t); len(left) > 0 {
		t.Errorf("it left %v behind", left)
	}
}

func TestDemoWhoseWorkersDieSaysWhy(t *testing.T) {
	ownTemp(t)
	o, _ := smallDemo(t)
	o.Command = append(o.Command, "--no-such-flag")
	_, err := demo.Run(t.Context(), o)
	if err == nil || !strings.Contains(err.Error(), "ended by itself") || !strings.Contains(err.Error(), "--help") {
		t.Errorf("the demo ended with %v", err)
	}
	if left := leftovers(t); len(left) > 0 {
		t.Errorf("it left %v behind", left)
	}
}

// If the parent of a worker disappears for any reason, the worker ends immediately and cleans up.
func TestDemoWorkerDiesWithItsParent(t *testing.T) {
	ownTemp(t)
	o, _ := smallDemo(t)
	dir := filepath.Join(os.Getenv("TMPDIR"), "weir-demo-test")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	clitest.MustRun(t, "", "store", "create", "--store=sqlite:"+filepath.Join(dir, "leases.db"))
	told, err := json.Marshal(demo.Worker{Name: "orphan", Endpoint: clitest.UnusedAddr(t), Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), o.Command[0], demo.WorkerName, string(told))
	lifeline, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if err := lifeline.Close(); err != nil {
		t.Fatal(err)
	}
	var exit *exec.ExitError
	if err := cmd.Wait(); !errors.As(err, &exit) || exit.ExitCode() != 1 {
		t.Errorf("the worker ended with %v", err)
	}
	if left := leftovers(t); len(left) > 0 {
		t.Errorf("it left %v behind", left)
	}
}

// The demo gives the same verdict with fan-out.
func TestDemoByFanOut(t *testing.T) {
	t.Parallel()
	o, said := smallDemo(t)
	o.FanOut = weir.FanOutRegister
	r, err := demo.Run(t.Context(), o)
	if err != nil {
		t.Fatalf("%v\n%s", err, said)
	}
	if !r.Clean() || r.Put != 2000 || r.Distinct != 2000 {
		t.Errorf("verdict %+v\n%s", r.Verdict, said)
	}
}
