package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/internal/source"
	"github.com/weir-go/weir/store/memstore"
)

type consumeOptions struct {
	aws      awsFlags
	out      format
	streams  []string
	app      string
	store    string
	from     string
	worker   string
	batch    int
	exec     string
	fanOut   fanOutFlag
	newTable bool
	verbose  bool
	health   string
	expired  expired
	stop     time.Duration
	handler  time.Duration
	share    readShare
}

func consumeCommand(t terminal) *cobra.Command {
	var o consumeOptions
	cmd := &cobra.Command{
		Use:   "consume --stream NAME --app NAME --store URL",
		Short: "Work on a stream together with others",
		Long: `Runs one worker of an application. All workers with the same --app and --store share the shards of the stream: start
as many as you like, stop and kill them at will. Every record is handled at least once, those of one key in order.

A record is handled when it was written to standard output, or, with --exec, when the command that got it exits
with 0. Only then does the application's progress pass it. --exec runs the command once for each batch, through
the shell, with the batch's records on its standard input; any other exit code means that the same batch is given
to it again, after a pause that grows to 30 s. The command finds WEIR_STREAM, WEIR_SHARD and WEIR_EPOCH in its
environment; the epoch grows with every change of the shard's owner, so a database can refuse a late writer. The
command is ended when the shard moves to another worker before it is done. Batches of several shards run at the
same time. If the worker is killed (SIGKILL), Linux kills the command too, but not what the command has started; begin the
last command with "exec" so that there is nothing in between. Elsewhere it goes on; compare the epoch where that matters.
The command inherits the worker's environment, AWS credentials included.

Ctrl-C, SIGTERM and a closed standard output (as by "| head") end the worker in order: it finishes its batches,
saves its progress and gives its shards to the others. What is not finished after --stop-timeout is interrupted and named
on standard error; it will be handled again. 20 s after that time at the latest the worker has ended.
A second Ctrl-C or SIGTERM ends it at once.

` + aboutBinary,
		Example: `  weir consume --stream flights --app billing --store sqlite:billing.db
  weir consume --stream flights --app billing --store dynamodb:weir --create-store
  weir consume --stream flights --app loader --store sqlite:loader.db --batch 500 --exec 'psql -c "copy raw from stdin"'
  weir consume --stream flights --app billing --store sqlite:billing.db --fan-out
  weir consume --stream flights --app look --store memory: --from 15m`,
		Args: o.fanOut.args,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := require(cmd, "stream", "app", "store"); err != nil {
				return err
			}
			url, err := parseStore(o.store)
			if err != nil {
				return err
			}
			from, err := parseFrom(o.from, time.Now())
			if err != nil {
				return err
			}
			if o.batch < 1 || o.batch > 10_000 {
				return usagef("--batch %d: want 1 to 10000", o.batch)
			}
			if err := o.share.check(); err != nil {
				return err
			}
			if o.health != "" {
				if o.health, err = healthAddr(o.health); err != nil {
					return err
				}
			}
			return orderly(cmd.Context(), o.run(cmd.Context(), t, url, from))
		},
	}
	cmd.Flags().StringArrayVar(&o.streams, "stream", nil, "stream, by `NAME` or ARN; may be repeated")
	cmd.Flags().StringVar(&o.app, "app", "", "application: the `NAME` under which workers share the progress")
	registerStore(cmd, &o.store)
	cmd.Flags().BoolVar(&o.newTable, "create-store", false, "make the DynamoDB table if it does not exist (SQLite files always are)")
	cmd.Flags().StringVar(&o.from, "from", "oldest", "where a new application starts: "+fromHelp)
	cmd.Flags().StringVar(&o.worker, "worker", "", "name of this worker for people (default host and process)")
	cmd.Flags().IntVar(&o.batch, "batch", 10_000, "at most so many records in a batch, 1 to 10000")
	cmd.Flags().StringVar(&o.exec, "exec", "", "shell `COMMAND` that handles each batch")
	cmd.Flags().DurationVar(&o.stop, "stop-timeout", 30*time.Second, "how long batches may take to finish when the worker is ended")
	cmd.Flags().DurationVar(&o.handler, "handler-timeout", 0, "how long a batch may take before its shard goes to another worker; 0 is no limit")
	cmd.Flags().StringVar(&o.health, "health", "", "answer /livez and /readyz over HTTP on `ADDR`, such as 8080 for this machine or 0.0.0.0:8080 for all")
	o.expired.register(cmd)
	o.fanOut.register(cmd)
	o.share.register(cmd)
	cmd.Flags().BoolVarP(&o.verbose, "verbose", "v", false, "say on standard error which shards are taken and given back")
	mustComplete(cmd, "from", "oldest\twhat the stream still keeps", "latest\tfrom now on", "15m\tthe last quarter of an hour")
	o.out.register(cmd, "text hands on the data, json an object about each record")
	o.aws.register(cmd, true)
	o.registerWait(cmd)
	return cmd
}

func (o *consumeOptions) run(ctx context.Context, t terminal, url storeURL, from weir.Position) (err error) {
	o.aws.http2, o.aws.reads = o.fanOut.on, true
	client, err := o.aws.kinesis(ctx, t)
	if err != nil {
		return err
	}
	level := slog.LevelError // what mends itself is told by reports
	if o.verbose {
		level = slog.LevelInfo
	}
	options := weir.Options{
		App: o.app, Streams: o.streams, Worker: o.worker, Start: from, Batch: o.batch,
		Reading: o.fanOut.reading(), FanOutName: o.fanOut.name, StopTimeout: o.stop, HandlerTimeout: o.handler,
		ReadShare: float64(o.share),
		Expired:   o.expired.policy(),
		Logger:    slog.New(untold{slog.NewTextHandler(noteWriter{t.err}, &slog.HandlerOptions{Level: level})}),
		Events:    reports(t, o.expired.policy()),
	}
	trial, err := weir.New(client, memstore.New(), options) // before a store is made for nothing
	if err != nil {
		return usageError{flagged(err)}
	}
	var handler weir.Handler = printer{newOutlet(t), o.out}
	if o.exec != "" {
		handler = executor{t, o.exec, o.out}
	}

	var healthy atomic.Pointer[weir.Consumer]
	healthy.Store(trial) // alive and not ready, however long the store takes
	if o.health != "" {
		stop, failed := serveHealth(ctx, t, o.health, &healthy)
		if failed != nil {
			return failed
		}
		defer func() { err = errors.Join(err, stop()) }()
	}
	store, err := o.begin(ctx, t, client, url)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	if url.kind == storeMemory {
		t.note("the store is memory: no other worker shares it, and the progress is forgotten at the end")
	}
	consumer, err := weir.New(client, store.Store, options)
	if err != nil {
		return err
	}
	healthy.Store(consumer)
	err = store.trouble(consumer.Run(ctx, handler))
	if errors.Is(err, syscall.EPIPE) {
		t.note("standard output was closed: stopped; what was not read from it will be handled again")
		return nil
	}
	return err
}

// orderly is the error of a command that is meant to be interrupted: being interrupted, at whatever moment, is none.
func orderly(ctx context.Context, err error) error {
	if ctx.Err() != nil && errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

// untold leaves out of a log what reports tells.
type untold struct{ slog.Handler }

var toldByReports = []string{"reading failed; trying again", "a shard makes no progress; its lease is given up",
	"a handler goes on although its context has ended; its lease is given up without it, and only the epoch fences what it writes",
	"records have left the stream, or may have, that were not handled"}

func (h untold) Handle(ctx context.Context, r slog.Record) error {
	if slices.Contains(toldByReports, r.Message) {
		return nil
	}
	return h.Handler.Handle(ctx, r)
}

func (h untold) WithAttrs(attrs []slog.Attr) slog.Handler { return untold{h.Handler.WithAttrs(attrs)} }
func (h untold) WithGroup(name string) slog.Handler       { return untold{h.Handler.WithGroup(name)} }

// reports says what a person has to know although retrying may mend it: once when it begins, not each time.
func reports(t terminal, policy weir.ExpiredPolicy) weir.Events {
	var mu sync.Mutex
	last := map[string]time.Time{}
	var throttled throttles
	again := func(what string) bool { // at most every ten seconds
		mu.Lock()
		defer mu.Unlock()
		now := time.Now()
		if now.Sub(last[what]) < 10*time.Second {
			return false
		}
		last[what] = now
		return true
	}
	return weir.Events{
		ReadFailed: func(_ context.Context, e weir.ReadFailed) {
			switch {
			case e.Throttled && errors.Is(e.Err, source.ErrSubscribed): // the one before it ends soon
			case e.Throttled:
				if throttled.add(time.Now()) {
					t.note("reads are throttled again and again, now of %s: more is read from the stream than it allows; see --read-share", e.Shard)
				}
			case !again("read " + e.Shard):
			case errors.Is(e.Err, source.ErrNoPosition) && policy != weir.FailExpired: // PositionExpired tells of it
			case errors.Is(e.Err, source.ErrNoPosition):
				t.note("%s cannot be read where its checkpoint is; move that with \"weir group reset --shard\", or start workers with --expired oldest or latest: %s", e.Shard, explain(e.Err))
			default:
				t.note("%s cannot be read; trying again: %s", e.Shard, explain(e.Err))
			}
		},
		PositionExpired: func(_ context.Context, e weir.PositionExpired) {
			if e.Next != e.Position { // else it stays, which ReadFailed is about
				t.note("records of %s after its checkpoint %s have left the stream, or may have, without being handled; it goes on at %s", e.Shard, e.Position, e.Next)
			}
		},
		ReadingChanged: func(_ context.Context, e weir.ReadingChanged) {
			if e.Err != nil {
				t.note("%s is polled for now, because there is no fan-out: %s", e.Shard, explain(e.Err))
			} else {
				t.note("%s is read by fan-out again", e.Shard)
			}
		},
		Stalled: func(_ context.Context, e weir.Stalled) {
			took := time.Since(e.Since).Round(time.Second)
			switch {
			case e.Abandoned:
				t.note("the handler of %s does not end although it was told to %v ago: its shard is given up without it", e.Shard, took)
			case errors.Is(e.Err, weir.ErrStopping):
				t.note("%s was interrupted: its batch was not finished after %v, and will be handled again", e.Shard, took)
			default:
				t.note("%s is given up, because it has been %s for %v without progress", e.Shard, e.Stage, took)
			}
		},
		StoreFailed: func(_ context.Context, e weir.StoreFailed) {
			if !again(string(e.Op)) {
				return
			}
			what := "the store does not answer"
			if e.Op == "list" {
				what = "the shards cannot be listed"
			}
			t.note("%s; trying again: %s", what, explain(e.Err))
		},
	}
}

// printer is the handler that writes records to standard output.
type printer struct {
	outlet *outlet
	out    format
}

func (p printer) Handle(ctx context.Context, b *weir.Batch) error {
	var buf []byte
	var err error
	for _, r := range b.Records {
		if buf, err = appendRecord(buf, p.out, b.Shard, r); err != nil {
			return weir.Stop(err)
		}
	}
	if len(buf) == 0 {
		return nil
	}
	return p.outlet.write(ctx, buf)
}

// outlet writes to standard output for many handlers, a batch at a time, so that lines of two shards never mix. A
// reader that is slow holds the handlers up; it does not keep one that has to stop.
type outlet struct {
	t    terminal
	turn chan struct{}
}

func newOutlet(t terminal) *outlet { return &outlet{t, make(chan struct{}, 1)} }

func (o *outlet) write(ctx context.Context, buf []byte) error {
	select {
	case o.turn <- struct{}{}:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	written := make(chan error, 1)
	go func() { // ends with the write; should nobody ever read, with the process
		_, err := o.t.out.Write(buf)
		<-o.turn
		written <- err
	}()
	select {
	case err := <-written:
		if err != nil { // it will not open again: the batch stays as it is, for another worker
			return weir.Stop(fmt.Errorf("standard output cannot be written: %w", err))
		}
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
