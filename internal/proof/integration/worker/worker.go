// Package worker runs workers of an application as separate processes, by starting the test's own
// program again. The handler of a worker writes handled records to its journal before it returns.
// So the journal is reliable even after a kill.
package worker

import (
	"bufio"
	"cmp"
	"context"
	"database/sql"
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
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/deadletter"
	"github.com/weir-go/weir/event"
	"github.com/weir-go/weir/internal/proof/integration/servers"
	"github.com/weir-go/weir/internal/proof/scenario"
	"github.com/weir-go/weir/sink/sqlsink"
)

// Setup is the configuration of a worker process.
type Setup struct {
	Kinesis           string // URL of the server
	Kind, Place       string // kind and place of the store; see [servers.OpenStore]
	App, Stream, Name string
	Idle              time.Duration // [weir.Options.Polling.IdleInterval]

	// Letters is the path of a file for dead letters. It is "" if there is none. A record ends the
	// process if [Kills] follows its number. It fails if [Rejected] or [FailsOnce] does.
	Letters string `json:",omitempty"`
	// Sink is the driver of the database at Place. sqlsink then also writes effects to that
	// database, and the journal is empty. "" means no sink.
	Sink        string
	SinkDialect int
	// SinkPartitions is the number of partitions of that sink.
	SinkPartitions int
	// Queue is the name of a queue, whose records are applied to the database at Place. "" means
	// that the worker reads Stream.
	Queue string `json:",omitempty"`

	Journal string // path of the journal; Start sets it

	// Program is another program whose TestMain calls Main, for example the same test in an older
	// version. "" means this program. The other fields of a Setup, and a journal, must stay
	// compatible with the older version, which ignores unknown fields.
	Program string `json:"-"`
}

// A word that follows the number of a record changes what the handler does with the record.
const (
	Kills     = "kills"     // it ends the process
	Rejected  = "rejected"  // it dead-letters the record, and does not write it to the journal
	FailsOnce = "failsonce" // it fails the first time in each process
)

const setupVariable = "WEIR_TEST_WORKER"

// Main runs this process as a worker and exits, if the process was started as a worker. TestMain
// must call it.
func Main() {
	told := os.Getenv(setupVariable)
	if told == "" {
		return
	}
	var s Setup
	err := json.Unmarshal([]byte(told), &s)
	if err == nil {
		err = s.work()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// work runs the worker until it is stopped or its parent has died.
func (s Setup) work() error {
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
	if s.Queue != "" {
		return s.applyQueue(ctx)
	}
	store, closer, err := servers.OpenStore(s.Kind, s.Place)
	if err != nil {
		return err
	}
	defer closer.Close()
	opts := weir.Options{
		App: s.App, Streams: []string{s.Stream}, Worker: s.Name, Polling: weir.Polling{IdleInterval: s.Idle},
		Logger: slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn})),
		OnEvent: event.On(func(_ context.Context, e event.Suspected) {
			_ = note(s.Journal+".told", e.Time)
		}),
	}
	if s.Letters != "" {
		opts.OnFailure.Destination = deadletter.File(s.Letters)
	}
	c, err := weir.New((&servers.Server{URL: s.Kinesis}).Kinesis(), store, opts)
	if err != nil {
		return err
	}
	if s.Sink != "" {
		return s.apply(ctx, c)
	}
	var mu sync.Mutex
	failed := map[string]bool{} // sequence numbers of records that have failed once
	return c.Run(ctx, weir.HandlerFunc(func(_ context.Context, b *weir.Batch) error {
		mu.Lock()
		defer mu.Unlock()
		var lines strings.Builder
		for _, r := range b.Records {
			number, rest, _ := strings.Cut(string(r.Data), " ")
			if rest == Kills {
				if err := note(s.Journal+".killed", time.Now()); err != nil {
					return err
				}
				os.Exit(137)
			}
			if err := fail(r, rest, failed); err != nil {
				if _, err := journal.WriteString(lines.String()); err != nil {
					return err
				}
				return err
			}
			fmt.Fprintf(&lines, "%d %s %d %s %s\n", time.Now().UnixNano(), b.Shard, b.Epoch, r.PartitionKey, number)
		}
		_, err := journal.WriteString(lines.String())
		return err
	}))
}

// fail returns the error of a record that the handler must not handle now, or nil.
func fail(r weir.Record, word string, failed map[string]bool) error {
	switch {
	case word == Rejected:
		return weir.RejectAt(r, errors.New("the record is rejected"))
	case word == FailsOnce && !failed[r.SequenceNumber]:
		failed[r.SequenceNumber] = true
		return weir.FailedAt(r, errors.New("the record fails once"))
	}
	return nil
}

// note writes a time to a file, unless the file exists already.
func note(path string, at time.Time) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		if os.IsExist(err) {
			return nil
		}
		return err
	}
	_, err = fmt.Fprintln(f, at.UnixNano())
	return errors.Join(err, f.Close())
}

// noted reads the time that note wrote. It returns zero if note was not called.
func noted(path string) time.Time {
	text, err := os.ReadFile(path)
	if err != nil || !strings.HasSuffix(string(text), "\n") {
		return time.Time{}
	}
	n, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
	if err != nil {
		return time.Time{}
	}
	return time.Unix(0, n)
}

// Killed returns the time at which a record ended the process. It returns zero if no record has
// ended it.
func (w *Worker) Killed() time.Time { return noted(w.journal + ".killed") }

// Told returns the time of the first [event.Suspected]. It returns zero if there was no such event.
func (w *Worker) Told() time.Time { return noted(w.journal + ".told") }

// apply inserts each record once, as a row of the table effects.
func (s Setup) apply(ctx context.Context, c *weir.Consumer) error {
	db, err := sql.Open(s.Sink, s.Place)
	if err != nil {
		return err
	}
	defer db.Close()
	sink, err := sqlsink.New(db, sqlsink.Options{Dialect: sqlsink.Dialect(s.SinkDialect), App: s.App, Partitions: s.SinkPartitions})
	if err != nil {
		return err
	}
	if err := sink.Migrate(ctx); err != nil {
		return err
	}
	return c.RunShards(ctx, sink.Handlers(func(ctx context.Context, tx *sql.Tx, b *weir.Batch) error {
		for _, r := range b.Records { // one by one, so that some are done when the process is killed
			if _, err := tx.ExecContext(ctx, fmt.Sprintf("INSERT INTO effects (shard, what) VALUES ('%s', '%s')", b.Shard, r.Data)); err != nil {
				return err
			}
		}
		return nil
	}))
}

// Worker is a running worker process. Only one goroutine at a time may call its methods.
type Worker struct {
	Name string

	cmd     *exec.Cmd
	journal string
	said    strings.Builder
	read    int64 // bytes read from the journal
}

// Start starts a worker process, which ends with the test at the latest. Its journal is in dir.
// Records must begin with their number.
func Start(t *testing.T, s Setup, dir string) *Worker {
	t.Helper()
	w := &Worker{Name: s.Name, journal: filepath.Join(dir, s.Name)}
	s.Journal = w.journal
	told, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	w.cmd = exec.Command(cmp.Or(s.Program, os.Args[0]))
	w.cmd.Env = append(os.Environ(), setupVariable+"="+string(told))
	w.cmd.Stderr = &w.said
	if _, err := w.cmd.StdinPipe(); err != nil { // closed when this process dies
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
			t.Logf("%s said:\n%.4000s", w.Name, w.said.String())
		}
	})
	return w
}

// Kill kills the process.
func (w *Worker) Kill(t *testing.T) {
	t.Helper()
	if err := w.cmd.Process.Kill(); err != nil {
		t.Error(err)
	}
	_ = w.cmd.Wait()
}

// Stop stops the process like a deployment. It waits until the process has ended, and checks the
// exit status. It returns how long that took.
func (w *Worker) Stop(t *testing.T) time.Duration {
	t.Helper()
	began := time.Now()
	if err := w.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatalf("%s: %v", w.Name, err)
	}
	if err := w.cmd.Wait(); err != nil {
		t.Errorf("%s: %v", w.Name, err)
	}
	return time.Since(began)
}

// More returns the entries of the journal since the last call. It uses only complete lines.
func (w *Worker) More() (all []scenario.Handled, err error) {
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
			return all, nil // the rest is an incomplete line, or was cut off by a kill
		}
		w.read += int64(len(line))
		f := strings.Fields(line)
		if len(f) != 5 {
			return nil, fmt.Errorf("%s wrote %q", w.Name, line)
		}
		h := scenario.Handled{Worker: w.Name, Shard: f[1], Key: f[3]}
		var errs [3]error
		h.At, errs[0] = strconv.ParseInt(f[0], 10, 64)
		h.Epoch, errs[1] = strconv.ParseUint(f[2], 10, 64)
		h.N, errs[2] = strconv.Atoi(f[4])
		if err := errors.Join(errs[:]...); err != nil {
			return nil, fmt.Errorf("%s wrote %q: %w", w.Name, line, err)
		}
		all = append(all, h)
	}
}
