package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/internal/proof/integration/chaos/verdict"
	"github.com/weir-go/weir/internal/proof/integration/servers"
)

const (
	workerVariable = "WEIR_CHAOS_WORKER"
	stream         = "orders"
	app            = "chaos"
	idle           = 250 * time.Millisecond

	// work is how long the handler takes for a record. It is short, so that a backlog after a fault
	// is soon handled, even in a shard that has most of the keys. One in slowOne calls pauses in
	// the middle for up to the time slow. So faults happen, and heartbeats are sent, in the middle
	// of calls.
	work    = time.Millisecond
	slowOne = 3
	slow    = 600 * time.Millisecond
	// saveOne means that one in this many calls requests a checkpoint and waits for it.
	saveOne = 6
)

// worker is the configuration of a worker process.
type worker struct {
	Life, Kinesis, CA, Kind, Place, Journal string
	Reading                                 weir.FanOutMode
	Beat, Failover                          time.Duration
	Sink, Bucket                            string
	Failing                                 bool
	Metrics                                 string // address of the metrics
}

// run runs a worker process until it is stopped or its parent has died.
func (w worker) run() error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	go func() { // ends with the process, because a read from standard input cannot be interrupted
		_, _ = io.Copy(io.Discard, os.Stdin)
		stop()
	}()
	file, err := os.OpenFile(w.Journal, os.O_CREATE|os.O_EXCL|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	defer file.Close()
	store, closer, err := servers.OpenStore(w.Kind, w.Place)
	if err != nil {
		return err
	}
	defer closer.Close()
	kinesis, err := client(w.Kinesis, w.CA)
	if err != nil {
		return err
	}
	o := weir.Options{
		App: app, Streams: []string{stream}, Worker: w.Life, FanOut: weir.FanOut{Mode: w.Reading}, Polling: weir.Polling{IdleInterval: idle}, Timing: weir.Timing{HeartbeatInterval: w.Beat, FailoverAfter: w.Failover},
		Logger: slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelDebug})),
	}
	j := &journal{file: file, slowed: map[string]time.Time{}, saved: map[string]time.Time{}}
	if w.Failing {
		o.Retry.MaxBackoff = retryMax
		o.OnFailure = giveUp(j, filepath.Join(filepath.Dir(w.Journal), lettersPrefix+w.Life), w.Life)
	}
	watch, stopTelling := tell(w.Metrics, &o)
	c, err := weir.New(kinesis, store, o)
	if err != nil {
		return err
	}
	if err := watch(c); err != nil {
		return err
	}
	defer stopTelling()
	switch {
	case w.Sink == sqlSink:
		return w.apply(ctx, c)
	case w.Sink == s3Sink:
		return w.write(ctx, c)
	case w.Failing:
		return c.Run(ctx, &failingHandler{journal: j, away: filepath.Join(filepath.Dir(w.Journal), awayFile), luck: rand.N[int64](1 << 60)})
	}
	return c.Run(ctx, j)
}

// journal is the handler. It writes a line for each record immediately, and a line for each call.
type journal struct {
	mu   sync.Mutex
	file io.Writer
	line []byte
	// The time when a call for a shard was last slow, or last requested a checkpoint.
	slowed, saved map[string]time.Time
}

// sometimes returns true with probability 1/n, where n is the argument one. With fan-out, there are
// as many calls as records. So it also returns true for a shard at most once in n idle intervals.
func (j *journal) sometimes(last map[string]time.Time, shard string, one int) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	if rand.IntN(one) != 0 || time.Since(last[shard]) < time.Duration(one)*idle {
		return false
	}
	last[shard] = time.Now()
	return true
}

// note appends a line with one write, so that a kill can damage only its end.
func (j *journal) note(line func([]byte) []byte) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.line = line(j.line[:0])
	if _, err := j.file.Write(j.line); err != nil {
		return weir.Stop(fmt.Errorf("the journal cannot be written: %w", err))
	}
	return nil
}

func (j *journal) Handle(ctx context.Context, b *weir.Batch) error {
	call := verdict.Call{Shard: b.Shard, Epoch: b.Epoch, Start: now()}
	err := j.records(ctx, b, call.Start)
	call.End, call.Failed = now(), err != nil
	return errors.Join(err, j.note(func(line []byte) []byte { return verdict.AppendCall(line, call) }))
}

func (j *journal) records(ctx context.Context, b *weir.Batch, start int64) error {
	pauseAt := -1 // do not pause
	if j.sometimes(j.slowed, b.Shard, slowOne) {
		pauseAt = rand.IntN(len(b.Records) + 1)
	}
	for i, r := range b.Records {
		put, err := parseRecord(r.PartitionKey, r.Data)
		if err != nil {
			return weir.Stop(err)
		}
		takes := work
		if i == pauseAt {
			takes += rand.N(slow)
		}
		timer := time.NewTimer(takes)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return context.Cause(ctx)
		}
		end := now()
		err = j.note(func(line []byte) []byte {
			return verdict.AppendHandling(line, put, b.Shard, r.SequenceNumber, b.Epoch, start, end)
		})
		if err != nil {
			return err
		}
	}
	if len(b.Records) == 0 || !j.sometimes(j.saved, b.Shard, saveOne) {
		return nil
	}
	last := b.Records[len(b.Records)-1]
	began := now()
	if err := b.Checkpoint(ctx, last); err != nil {
		return err
	}
	return j.note(func(line []byte) []byte {
		return verdict.AppendSave(line, b.Shard, last.SequenceNumber, b.Epoch, began, now())
	})
}

// The data of a record is its number within its key, and the time of its put.
func recordData(p verdict.Put) []byte { return fmt.Appendf(nil, "%d %d", p.Number, p.At) }

func parseRecord(key string, data []byte) (verdict.Put, error) {
	number, at, _ := strings.Cut(string(data), " ")
	p := verdict.Put{Key: key}
	var errs [2]error
	p.Number, errs[0] = strconv.Atoi(number)
	p.At, errs[1] = strconv.ParseInt(at, 10, 64)
	if err := errors.Join(errs[:]...); err != nil {
		return p, fmt.Errorf("the record %.100q of key %s is not ours: %w", data, key, err)
	}
	return p, nil
}
