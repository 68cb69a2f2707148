package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"github.com/weir-go/weir/queue"
)

const workerVariable = "WEIR_CHAOS_QUEUE_WORKER"

// worker is the configuration of a process.
type worker struct{ URL, ARN, Journal string }

// work consumes the queue until SIGTERM or the end of the parent process.
func work(text string) error {
	var w worker
	if err := json.Unmarshal([]byte(text), &w); err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	go func() { // ends with the process
		_, _ = io.Copy(io.Discard, os.Stdin)
		stop()
	}()
	file, err := os.OpenFile(w.Journal, os.O_CREATE|os.O_EXCL|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }()
	var mu sync.Mutex
	c, err := queue.New(config(w.URL), queue.Options{
		Queue: w.ARN, Hold: hold, Concurrency: 8, Wait: 2 * time.Second, StopTimeout: 20 * time.Second,
		Logger: slog.New(slog.NewTextHandler(os.Stderr, nil)),
	})
	if err != nil {
		return err
	}
	return c.Run(ctx, queue.RecordFunc(func(_ context.Context, r queue.Record) error {
		began := time.Now()
		takes := time.Duration(rand.IntN(20)) * time.Millisecond
		if rand.IntN(100) == 0 {
			takes = time.Duration(rand.IntN(8)) * time.Second // longer than a hold
		}
		time.Sleep(takes)
		mu.Lock()
		defer mu.Unlock()
		_, err := fmt.Fprintf(file, "%s %d %d\n", r.Data, began.UnixMilli(), time.Now().UnixMilli())
		return err
	}))
}

// process is a place for a process, which has several lives.
type process struct {
	number, lives int
	name          string // of the current life
	cmd           *exec.Cmd
	log           string
	lifeline      io.Closer
}

// start starts the next life of a process.
func (s *stage) start(w *process) error {
	w.lives++
	w.name = fmt.Sprintf("w%d.%d", w.number, w.lives)
	journal := filepath.Join(s.dir, w.name+".journal")
	text, err := json.Marshal(worker{s.proxy.url, s.arn, journal})
	if err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	w.log = filepath.Join(s.dir, w.name+".log")
	log, err := os.Create(w.log)
	if err != nil {
		return err
	}
	defer func() { _ = log.Close() }() // the process has its own descriptor
	w.cmd = exec.CommandContext(context.Background(), self)
	w.cmd.Env = append(os.Environ(), workerVariable+"="+string(text))
	w.cmd.Stderr = log
	if w.lifeline, err = w.cmd.StdinPipe(); err != nil {
		return err
	}
	if err := w.cmd.Start(); err != nil {
		return err
	}
	// Before it has a journal, a signal would end the process at once.
	for until := time.Now().Add(time.Minute); time.Now().Before(until); time.Sleep(20 * time.Millisecond) {
		if _, err := os.Stat(journal); err == nil {
			return nil
		}
	}
	return fmt.Errorf("%s does not start: %s has its log", w.name, w.log)
}

// kill kills the process, like a crash.
func (w *process) kill() {
	_ = w.cmd.Process.Kill()
	_ = w.cmd.Wait()
}

// stop stops the process in order.
func (w *process) stop() error {
	if err := w.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		return fmt.Errorf("%s: %w", w.name, err)
	}
	if err := w.cmd.Wait(); err != nil {
		text, _ := os.ReadFile(w.log)
		return fmt.Errorf("%s stopped with %w: %s", w.name, err, text[max(0, len(text)-500):])
	}
	return nil
}
