package foreign_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/internal/integration/servers"
	"github.com/weir-go/weir/internal/leaktest"
	"github.com/weir-go/weir/store/dynamostore"
)

// setup is what a worker process is told.
type setup struct {
	Kinesis, DynamoDB, Table, Stream, Worker, Journal string
}

const setupVariable = "WEIR_FOREIGN_WORKER"

// TestMain makes the test binary a worker when it was started as one.
func TestMain(m *testing.M) {
	told := os.Getenv(setupVariable)
	if told == "" {
		os.Exit(leaktest.Run(m))
	}
	var s setup
	err := json.Unmarshal([]byte(told), &s)
	if err == nil {
		err = work(s)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// work takes part in the application until it is told to stop, or its parent is gone. What its handler has handled is in
// its journal, a line for each record, before the handler returns.
func work(s setup) error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		stop()
	}()
	journal, err := os.OpenFile(s.Journal, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	defer journal.Close()
	store := dynamostore.New((&servers.Server{URL: s.DynamoDB}).DynamoDB(), dynamostore.Options{Table: s.Table})
	c, err := weir.New((&servers.Server{URL: s.Kinesis}).Kinesis(), store, weir.Options{
		App: "foreign", Stream: s.Stream, Worker: s.Worker,
		Logger: slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn})),
	})
	if err != nil {
		return err
	}
	return c.Run(ctx, weir.HandlerFunc(func(_ context.Context, b *weir.Batch) error {
		var lines strings.Builder
		for _, r := range b.Records {
			index, _, _ := strings.Cut(string(r.Data), " ")
			fmt.Fprintf(&lines, "%d %s %d %s %s\n", time.Now().UnixNano(), b.Shard, b.Epoch, r.PartitionKey, index)
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
	said    *strings.Builder
}

func startWorker(t *testing.T, s setup) *worker {
	t.Helper()
	w := &worker{name: s.Worker, journal: filepath.Join(t.TempDir(), s.Worker), said: &strings.Builder{}}
	s.Journal = w.journal
	told, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	w.cmd = exec.Command(os.Args[0])
	w.cmd.Env = append(os.Environ(), setupVariable+"="+string(told))
	w.cmd.Stderr = w.said
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
			t.Logf("%s said:\n%.4000s", w.name, w.said)
		}
	})
	return w
}

// kill kills the process with SIGKILL.
func (w *worker) kill(t *testing.T) {
	t.Helper()
	if err := w.cmd.Process.Kill(); err != nil {
		t.Error(err)
	}
	_ = w.cmd.Wait()
}

// stop asks the process to stop, and checks that it did in order.
func (w *worker) stop(t *testing.T) {
	t.Helper()
	if err := w.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := w.cmd.Wait(); err != nil {
		t.Errorf("%s: %v", w.name, err)
	}
}

// handling is a line of a journal.
type handling struct {
	at    int64
	shard string
	epoch uint64
	key   string
	index int
}

// read returns the whole lines of the journal.
func (w *worker) read(t *testing.T) []handling {
	t.Helper()
	all, err := w.journalled()
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func (w *worker) journalled() (all []handling, err error) {
	f, err := os.Open(w.journal)
	if os.IsNotExist(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	r := bufio.NewReader(f)
	for {
		line, err := r.ReadString('\n')
		if err != nil {
			return all, nil // the rest of a line is one that a kill cut short
		}
		f := strings.Fields(line)
		if len(f) != 5 {
			return nil, fmt.Errorf("%s wrote %q", w.name, line)
		}
		h := handling{shard: f[1], key: f[3]}
		var errs [3]error
		h.at, errs[0] = strconv.ParseInt(f[0], 10, 64)
		h.epoch, errs[1] = strconv.ParseUint(f[2], 10, 64)
		h.index, errs[2] = strconv.Atoi(f[4])
		if err := errors.Join(errs[:]...); err != nil {
			return nil, fmt.Errorf("%s wrote %q: %w", w.name, line, err)
		}
		all = append(all, h)
	}
}
