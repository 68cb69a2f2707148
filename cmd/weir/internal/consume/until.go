package consume

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/kinesis"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/cmd/weir/internal/cli"
	"github.com/weir-go/weir/cmd/weir/internal/explain"
	"github.com/weir-go/weir/cmd/weir/internal/figures"
	"github.com/weir-go/weir/cmd/weir/internal/records"
	"github.com/weir-go/weir/cmd/weir/internal/shardlag"
	"github.com/weir-go/weir/internal/streams"
	"github.com/weir-go/weir/lease"
)

const aboutUntil = `--until-tip and --until TIME end the worker when all records up to the tip at its
start, or from before TIME, are handled and saved. The exit code is 6 if other
workers have such records left, or if a signal ended the worker before.`

// untilFlags contains the flags that end the worker when its work is done.
type untilFlags struct {
	tip bool
	at  string

	time time.Time // parsed from at
}

// parse parses the value of --until.
func (f *untilFlags) parse(now time.Time) (err error) {
	at, err := records.ParseUntil(f.at, now, "start the worker after that time, or use --until-tip")
	if err == nil {
		f.time = at
	}
	return err
}

// on reports whether the worker ends by itself.
func (f *untilFlags) on() bool { return f.tip || !f.time.IsZero() }

// goal returns what the worker handles, for messages.
func (f *untilFlags) goal() string {
	if f.tip {
		return "all records that were in the stream at the start"
	}
	return "all records that arrived before " + f.time.UTC().Format(time.RFC3339)
}

// ending ends a worker when its work is done.
type ending struct {
	untilFlags
	t        cli.Terminal
	client   *kinesis.Client
	consumer *weir.Consumer
	store    lease.Store
	app      string
	worker   string
	streams  []string // names and ARNs

	waiting waiting // why the worker waits; only watch uses it until it has returned
}

// errGoal is the cause with which an ending stops its worker.
var errGoal = errors.New("all records are handled")

const (
	// stepEvery is the pause between two looks at the shards of this worker.
	stepEvery = 500 * time.Millisecond
	// storeEvery is the pause between two looks at the store. The heartbeats of workers arrive
	// there once a second.
	storeEvery = time.Second
	// listEvery is the pause between two listings of the streams. If a listed shard leaves its
	// stream before it has a lease, the worker waits for it until the next listing.
	listEvery = time.Minute
	// checkTime limits the last look at the shards of other workers.
	checkTime = 30 * time.Second
)

// run calls work, which runs the worker, and ends it when its part is done. It returns a
// [cli.ExitCode] if records may be left.
func (e *ending) run(ctx context.Context, work func(context.Context) error) error {
	if e.tip {
		e.time = time.Now()
	}
	e.t.Note("the worker ends after it has handled %s", e.goal())
	inner, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	var others []lease.Key
	watched := make(chan struct{})
	go func() { // ends when the work is done, or with inner
		defer close(watched)
		var done bool
		if others, done = e.watch(inner); done {
			stop(errGoal)
		}
	}()
	err := work(inner)
	stop(nil)
	<-watched
	switch {
	case err != nil:
		return err
	case !errors.Is(context.Cause(inner), errGoal):
		waited := ""
		if w := e.waiting; w.why != "" {
			waited = fmt.Sprintf("; it waited for %s: %s", figures.Duration(time.Since(w.since)), w.why)
		}
		e.t.Say(slog.LevelWarn, "the worker was stopped before it had handled %s%s; exit code %d", e.goal(), waited, cli.ExitIncomplete)
		return cli.ExitCode(cli.ExitIncomplete)
	}
	left, err := e.left(ctx, others)
	switch {
	case err != nil:
		e.t.Say(slog.LevelWarn, "this worker has handled its shards, but whether other workers have handled theirs could not be checked: %s; exit code %d",
			explain.Error(err), cli.ExitIncomplete)
		return cli.ExitCode(cli.ExitIncomplete)
	case len(left) > 0:
		e.t.Say(slog.LevelWarn, "this worker has handled its shards; other workers still have records in %s; exit code %d", shardNames(left), cli.ExitIncomplete)
		return cli.ExitCode(cli.ExitIncomplete)
	}
	e.t.Note("the application has handled %s", e.goal())
	return nil
}

// watch looks at the worker and the store until the work of this worker is done. It returns the
// shards that other workers read. done is false if ctx ended first.
func (e *ending) watch(ctx context.Context) (others []lease.Key, done bool) {
	p := progress{since: e.time, now: time.Now, worker: e.worker, streams: map[string]bool{}}
	of, _ := streams.ParseAll(streams.RegionOf(e.client), e.streams) // weir.New has checked them
	for _, s := range of {
		p.streams[s.Name] = true
	}
	ticker := time.NewTicker(stepEvery)
	defer ticker.Stop()
	var listed, looked time.Time
	for {
		select {
		case <-ctx.Done():
			return nil, false
		case <-ticker.C:
		}
		shards := e.consumer.Shards()
		if behind := p.see(shards); behind > 0 {
			e.wait(hindrance(shards, p.own), false)
			continue
		}
		if time.Since(looked) < storeEvery {
			continue
		}
		looked = time.Now()
		if listed.IsZero() || time.Since(listed) >= listEvery {
			keys, err := e.list(ctx, of)
			if err != nil {
				e.wait("the shards cannot be listed: "+explain.Error(err), false)
				continue
			}
			p.listed, listed = keys, time.Now()
		}
		call, cancel := context.WithTimeout(ctx, 5*time.Second)
		view, err := e.store.View(call, e.app, "")
		cancel()
		if err != nil {
			e.wait("the store cannot be read: "+explain.Error(err), false)
			continue
		}
		d := p.decide(view)
		if d.wait == "" {
			return d.others, true
		}
		e.wait(d.wait, d.tell)
	}
}

// wait notes why the worker waits, and logs it if that is due. why is "" if the worker has work.
func (e *ending) wait(why string, atOnce bool) {
	if e.waiting.see(why, atOnce, time.Now()) {
		e.t.Note("the worker waits: %s", why)
	}
}

// list returns the shards of the streams.
func (e *ending) list(ctx context.Context, of []streams.Stream) (keys []lease.Key, err error) {
	call, cancel := context.WithTimeout(ctx, checkTime)
	defer cancel()
	for _, s := range of {
		shards, _, err := streams.List(call, e.client, s)
		if err != nil {
			return nil, err
		}
		for _, sh := range shards {
			keys = append(keys, lease.Key{Stream: s.Name, Shard: sh.ID})
		}
	}
	return keys, nil
}

// left returns the shards of other workers that still have records, from the checkpoints in the
// store.
func (e *ending) left(ctx context.Context, others []lease.Key) (left []lease.Key, err error) {
	if len(others) == 0 {
		return nil, nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), checkTime)
	defer cancel()
	view, err := e.store.View(ctx, e.app, "")
	if err != nil {
		return nil, err
	}
	of := map[lease.Key]bool{}
	for _, k := range others {
		of[k] = true
	}
	var asked []lease.Lease
	for _, l := range view.Leases {
		if of[l.Key] && !l.Finished() {
			asked = append(asked, l)
		}
	}
	lags := shardlag.Ask(ctx, cli.Silent, e.client, asked, "")
	if n, err := shardlag.FirstError(lags); n > 0 {
		return nil, err
	}
	now := time.Now()
	for _, l := range asked {
		if at := lags[l.Key]; at.Waits && !now.Add(-at.Age).After(e.time.Add(clockDifference)) {
			left = append(left, l.Key)
		}
	}
	return left, nil
}

// shardNames returns a list of shards for a sentence.
func shardNames(keys []lease.Key) string {
	names := make([]string, len(keys))
	for i, k := range keys {
		names[i] = k.String()
	}
	return fmt.Sprintf("%s (%s)", cli.Count(len(keys), "shard"), cli.List(names))
}
