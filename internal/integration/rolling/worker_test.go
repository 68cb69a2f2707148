package rolling_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/internal/integration/servers"
	"github.com/weir-go/weir/internal/leaktest"
	"github.com/weir-go/weir/internal/scenario"
)

// setup is what a worker process is told.
type setup struct {
	Kinesis, Kind, Place, Worker, Journal string
}

const (
	setupVariable = "WEIR_ROLLING_WORKER"
	stream        = "orders"
)

var (
	full  = flag.Bool("full", false, "a million records, as in the documentation")
	table scenario.Table
)

// TestMain makes the test binary a worker when it was started as one.
func TestMain(m *testing.M) {
	if told := os.Getenv(setupVariable); told != "" {
		var s setup
		err := json.Unmarshal([]byte(told), &s)
		if err == nil {
			err = s.work()
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	flag.Parse()
	code := leaktest.Run(m)
	table.Write(os.Stdout)
	os.Exit(code)
}

// work takes part in the application until it is told to stop, or its parent is gone. What its handler has handled is in
// its journal, a line for each record, before the handler returns.
func (s setup) work() error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		stop()
	}()
	journal, err := os.OpenFile(s.Journal, os.O_CREATE|os.O_EXCL|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	defer journal.Close()
	store, closer, err := servers.OpenStore(s.Kind, s.Place)
	if err != nil {
		return err
	}
	defer closer.Close()
	c, err := weir.New((&servers.Server{URL: s.Kinesis}).Kinesis(), store, weir.Options{
		App: "rolling", Stream: stream, Worker: s.Worker, IdleInterval: 200 * time.Millisecond,
		Logger: slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn})),
	})
	if err != nil {
		return err
	}
	var mu sync.Mutex
	return c.Run(ctx, weir.HandlerFunc(func(_ context.Context, b *weir.Batch) error {
		mu.Lock()
		defer mu.Unlock()
		var lines strings.Builder
		for _, r := range b.Records {
			fmt.Fprintf(&lines, "%d %s %d %s %s\n", time.Now().UnixNano(), b.Shard, b.Epoch, r.PartitionKey, r.Data)
		}
		_, err := journal.WriteString(lines.String())
		return err
	}))
}

// worker is a running worker process.
type worker struct {
	name    string
	cmd     *exec.Cmd
	journal string
	said    strings.Builder
	read    int64 // bytes of the journal
}

func startWorker(t *testing.T, s setup, dir string) *worker {
	t.Helper()
	w := &worker{name: s.Worker, journal: filepath.Join(dir, s.Worker)}
	s.Journal = w.journal
	told, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	w.cmd = exec.Command(os.Args[0])
	w.cmd.Env = append(os.Environ(), setupVariable+"="+string(told))
	w.cmd.Stderr = &w.said
	if _, err := w.cmd.StdinPipe(); err != nil { // closes when this process dies
		t.Fatal(err)
	}
	if err := w.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if w.cmd.ProcessState == nil {
			_ = w.cmd.Process.Kill()
			_ = w.cmd.Wait()
		}
		if t.Failed() {
			t.Logf("%s said:\n%.2000s", w.name, w.said.String())
		}
	})
	return w
}

// stop asks the process to stop, as a deployment does, waits until it has ended, and checks that it did so in order.
func (w *worker) stop(t *testing.T) time.Duration {
	t.Helper()
	began := time.Now()
	if err := w.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatalf("%s: %v", w.name, err)
	}
	if err := w.cmd.Wait(); err != nil {
		t.Errorf("%s: %v", w.name, err)
	}
	return time.Since(began)
}

// more returns what has been written since the last call, whole lines only.
func (w *worker) more() (all []scenario.Handled, err error) {
	f, err := os.Open(w.journal)
	if os.IsNotExist(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if _, err := f.Seek(w.read, io.SeekStart); err != nil {
		return nil, err
	}
	for r := bufio.NewReaderSize(f, 1<<20); ; {
		line, err := r.ReadString('\n')
		if err != nil {
			return all, nil // the rest of a line is still being written
		}
		w.read += int64(len(line))
		f := strings.Fields(line)
		if len(f) != 5 {
			return nil, fmt.Errorf("%s wrote %q", w.name, line)
		}
		h := scenario.Handled{Worker: w.name, Shard: f[1], Key: f[3]}
		var errs [3]error
		h.At, errs[0] = strconv.ParseInt(f[0], 10, 64)
		h.Epoch, errs[1] = strconv.ParseUint(f[2], 10, 64)
		h.N, errs[2] = strconv.Atoi(f[4])
		if err := errors.Join(errs[:]...); err != nil {
			return nil, fmt.Errorf("%s wrote %q: %w", w.name, line, err)
		}
		all = append(all, h)
	}
}
