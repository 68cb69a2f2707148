//go:build unix

package multilang

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/cmd/weir/internal/cli"
	"github.com/weir-go/weir/cmd/weir/internal/clitest"
	"github.com/weir-go/weir/kinesistest"
	"github.com/weir-go/weir/store/memstore"
)

// rig runs the program of the tests in a mode, for a stream with some records.
type rig struct {
	srv      *kinesistest.Server
	out, log *clitest.Output
	d        *daemon
	store    *memstore.Store
	stop     context.CancelFunc
	ended    chan error
}

func start(t *testing.T, mode string, change func(*rig)) *rig {
	t.Helper()
	srv := kinesistest.NewServer(t)
	srv.CreateStream("flights", 1)
	for i := range 5 {
		srv.Put("flights", fmt.Sprint(i), fmt.Appendf(nil, "%d", i))
	}
	r := &rig{srv: srv, out: clitest.NewOutput(), log: clitest.NewOutput(), store: memstore.New(), ended: make(chan error, 1)}
	log := slog.New(slog.NewTextHandler(r.log, nil))
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	r.d = &daemon{
		program: &program{
			args: []string{self}, env: append(os.Environ(), "MULTILANG_PROGRAM="+mode, "MULTILANG_ONCE="+filepath.Join(t.TempDir(), "once")),
			out: newShared(r.out), err: newShared(clitest.NewOutput()), grace: graces{time.Minute, time.Minute},
			warn: func(shard, text string) { log.Warn(text, "shard", shard) },
		},
		protocol: kcl2, log: log,
	}
	if change != nil {
		change(r)
	}
	r.run(t)
	return r
}

// run runs a worker until stop is called, or the test ends.
func (r *rig) run(t *testing.T) {
	t.Helper()
	c, err := weir.New(r.srv.Client(), r.store, weir.Options{
		App: "app", Streams: []string{"flights"}, ReuseBuffers: true, Retry: weir.Retry{MinBackoff: time.Millisecond},
		Timing: weir.Timing{HeartbeatInterval: 100 * time.Millisecond, StopTimeout: 5 * time.Second}, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	r.stop, r.ended = stop, ended
	handler := r.d.handler(&settings{})
	handler.Idle = 100 * time.Millisecond
	go func() { ended <- c.RunPull(ctx, handler) }()
	t.Cleanup(func() {
		stop()
		select {
		case <-ended: //nolint:errcheck // some tests make the worker fail
		case <-time.After(time.Minute):
			t.Error("the worker has not stopped")
		}
	})
}

// await waits for a line of output.
func (r *rig) await(t *testing.T, line string) {
	t.Helper()
	r.out.Await(t, line, func(s string) bool { return strings.Contains(s, line) })
}

// awaitLog waits for a text in the log.
func (r *rig) awaitLog(t *testing.T, text string) {
	t.Helper()
	r.log.Await(t, text, func(s string) bool { return strings.Contains(s, text) })
}

// finish stops the worker and returns its error.
func (r *rig) finish() error {
	r.stop()
	err := <-r.ended
	r.ended <- err
	return err
}

// records returns the records in the output.
func (r *rig) records() (all []string) {
	for line := range strings.Lines(r.out.String()) {
		if record, ok := strings.CutPrefix(strings.TrimSpace(line), "record "); ok {
			all = append(all, record)
		}
	}
	return all
}

func (r *rig) checkpoint(t *testing.T) weir.Position {
	t.Helper()
	v, err := r.store.View(t.Context(), "app", "")
	if err != nil || len(v.Leases) == 0 {
		t.Fatal(v.Leases, err)
	}
	return v.Leases[0].Position
}

var five = []string{"0", "1", "2", "3", "4"}

// A program that behaves gets each record once, and is asked before its shard is given up.
func TestAProgramHandlesRecordsAndStopsInOrder(t *testing.T) {
	r := start(t, "good", nil)
	r.await(t, "record 4")
	if err := r.finish(); err != nil {
		t.Error(err)
	}
	text := r.out.String()
	if got := r.records(); !slices.Equal(got, five) {
		t.Errorf("records: %q", got)
	}
	asked, lost := strings.Index(text, "shutdownRequested"), strings.Index(text, "leaseLost")
	if asked < 0 || lost < asked || strings.Contains(text, "checkpoint:") {
		t.Errorf("the output:\n%s", text)
	}
	if at := r.checkpoint(t); at.SequenceNumber() == "" {
		t.Errorf("the checkpoint is %v", at)
	}
}

// A program that misbehaves once is reported and started again, and loses nothing.
func TestAProgramThatMisbehavesIsStartedAgain(t *testing.T) {
	for mode, want := range map[string]string{
		"dies":      "the program failed: its process ended during processRecords (exit status 3; the end of its standard error: the disk is full)",
		"early":     "the program failed: its process ended during initialize (exit status 4)",
		"nonsense":  `the program failed: it answered \"leaseLost\" while processRecords was outstanding`,
		"hangs":     "weir has killed it: it sent no message within timeoutInSeconds",
		"impatient": "weir has killed it: it sent 64 requests without waiting for answers",
	} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			r := start(t, mode, func(r *rig) {
				if mode == "hangs" {
					r.d.program.timeout = 2 * time.Second
				}
			})
			r.awaitLog(t, want)
			r.await(t, "record 4")
			if err := r.finish(); err != nil {
				t.Error(err)
			}
			got := r.records()
			if repeated := slices.Compact(slices.Sorted(slices.Values(got))); !slices.Equal(repeated, five) {
				t.Errorf("records: %q", got)
			}
		})
	}
}

// With --on-failure exit, the failure of a program ends the worker.
func TestAFailureEndsTheWorkerOnRequest(t *testing.T) {
	t.Parallel()
	r := start(t, "dies", func(r *rig) { r.d.onFailure = failureExit })
	err := <-r.ended
	r.ended <- err
	if !errors.Is(err, errProgram) || !strings.Contains(err.Error(), "exit status 3") {
		t.Error(err)
	}
}

// Output of any size and form is passed on, and does not disturb the messages.
func TestAProgramMayFloodItsOutput(t *testing.T) {
	t.Parallel()
	r := start(t, "floods", nil)
	r.await(t, "record 4")
	if err := r.finish(); err != nil {
		t.Error(err)
	}
	if got := r.records(); !slices.Equal(got, five) || strings.Count(r.out.String(), "x") != 5<<20 {
		t.Errorf("records: %q, %d bytes", got, len(r.out.String()))
	}
}

// A second status for the same action is ignored.
func TestASecondStatusIsIgnored(t *testing.T) {
	t.Parallel()
	r := start(t, "twice", nil)
	r.await(t, "record 4")
	r.awaitLog(t, "a status that nothing waits for")
	if err := r.finish(); err != nil {
		t.Error(err)
	}
	if got := r.records(); !slices.Equal(got, five) {
		t.Errorf("records: %q", got)
	}
}

// A program has to confirm the end of its shard. Its children wait for that.
func TestAProgramConfirmsTheEndOfItsShard(t *testing.T) {
	for _, mode := range []string{"good", "forgets"} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			r := start(t, mode, nil)
			r.await(t, "record 4")
			r.srv.Split("flights", "shardId-000000000000")
			if mode == "forgets" {
				r.awaitLog(t, "it did not checkpoint the end of the shard")
			}
			r.await(t, "shardEnded")
			r.log.Await(t, "the children", func(s string) bool {
				return strings.Contains(s, "shardId-000000000001") && strings.Contains(s, "shardId-000000000002")
			})
			if err := r.finish(); err != nil {
				t.Error(err)
			}
			if got := r.records(); !slices.Equal(got, five) {
				t.Errorf("records: %q", got)
			}
			if at := r.checkpoint(t); !at.IsEnd() {
				t.Errorf("the checkpoint is %v", at)
			}
		})
	}
}

// A program that ignores the end of its input and SIGTERM is killed.
func TestAProgramThatStaysIsKilled(t *testing.T) {
	t.Parallel()
	r := start(t, "stays", func(r *rig) { r.d.program.grace = graces{100 * time.Millisecond, 100 * time.Millisecond} })
	r.await(t, "record 4")
	if err := r.finish(); err != nil {
		t.Error(err)
	}
	r.awaitLog(t, "it is killed")
}

func TestCommandsOfPrograms(t *testing.T) {
	script := filepath.Join(t.TempDir(), "script")
	if err := os.WriteFile(script, []byte("echo \"$1\" >&2; exit 7"), 0o700); err != nil {
		t.Fatal(err)
	}
	args, err := findProgram(script + "   first second")
	if err != nil || !slices.Equal(args, []string{script, "first", "second"}) {
		t.Fatal(args, err)
	}
	p := &program{args: args, out: clitest.NewOutput(), err: clitest.NewOutput(), warn: func(string, string) {}, grace: graces{time.Minute, time.Minute}}
	c, err := p.start("shard") // it has no "#!"
	if err != nil {
		t.Fatal(err)
	}
	if err := c.end(t.Context()); err == nil || err.Error() != "exit status 7; the end of its standard error: first" {
		t.Error(err)
	}
	for command, want := range map[string]string{
		"  ":              "executableName is empty",
		"no-such-program": "is it executable (chmod +x), and in PATH",
	} {
		if _, err := findProgram(command); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", command, err)
		}
	}
}

// A mistake in the properties file ends the command with one sentence, before a stream is read.
func TestMistakesAreExplained(t *testing.T) {
	dir := t.TempDir()
	file := func(text string) string {
		path := filepath.Join(dir, "app.properties")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	for _, c := range []struct{ text, want string }{
		{"applicationName = a\nstreamName = s", "executableName is missing in the properties file"},
		{"executableName = no-such-program\napplicationName = a\nstreamName = s", `the program "no-such-program" cannot be run`},
		{"executableName = cat\napplicationName = a b\nstreamName = s", `applicationName "a b" must be`},
		{"executableName = cat\napplicationName = a\nstreamName = s\nkinesisEndpoint = nonsense", `--endpoint "nonsense" is not the URL of a server`},
		{"executableName = cat\napplicationName = a\nstreamName = s\ntableNam = t", "did you mean tableName?"},
	} {
		out := clitest.NewOutput()
		args := []string{"multilang", "--strict", "--properties", file(c.text), "--store", "memory:", "--region", "eu-west-1"}
		if !strings.Contains(c.text, "kinesisEndpoint") {
			args = append(args, "--endpoint", "http://127.0.0.1:1")
		}
		code := cli.Run(t.Context(), args, cli.Terminal{Out: out, Err: out}, clitest.Weir(Command))
		if code == cli.ExitDone || !strings.Contains(out.String(), c.want) {
			t.Errorf("%q: %d, %s", c.text, code, out)
		}
	}
}
