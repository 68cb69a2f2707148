package consume

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/cmd/weir/internal/cli"
	"github.com/weir-go/weir/cmd/weir/internal/clitest"
	"github.com/weir-go/weir/cmd/weir/internal/explain"
	"github.com/weir-go/weir/kinesistest"
	"github.com/weir-go/weir/lease"
	"github.com/weir-go/weir/store/memstore"
)

// job is an application whose workers end by themselves.
type job struct {
	t     *testing.T
	srv   *kinesistest.Server
	store lease.Store
	slow  time.Duration // time per record

	mu      sync.Mutex // guards the fields below
	handled map[string]int
}

// untilBubble runs a test in virtual time, with a stream of two shards.
func untilBubble(t *testing.T, f func(j *job)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		srv, err := kinesistest.Start(kinesistest.Config{InMemory: true})
		if err != nil {
			t.Fatal(err)
		}
		defer srv.Close()
		srv.CreateStream("s", 2)
		f(&job{t: t, srv: srv, store: memstore.New(), handled: map[string]int{}})
	})
}

// put writes records with different keys.
func (j *job) put(from, to int) {
	for n := from; n < to; n++ {
		j.srv.Put("s", fmt.Sprint(n), fmt.Appendf(nil, "record %d", n))
	}
}

func (j *job) handle(ctx context.Context, b *weir.Batch) error {
	for _, r := range b.Records {
		if j.slow > 0 {
			select {
			case <-time.After(j.slow):
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		}
		j.mu.Lock()
		j.handled[string(r.Data)]++
		j.mu.Unlock()
	}
	return nil
}

// missing returns how many of the first n records were not handled.
func (j *job) missing(n int) (missing int) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for i := range n {
		if j.handled[fmt.Sprintf("record %d", i)] == 0 {
			missing++
		}
	}
	return missing
}

// worker is one running worker of a job.
type worker struct {
	stop  context.CancelCauseFunc
	said  *clitest.Output
	ended chan struct{}
	err   error
}

// start starts a worker. change may change its options.
func (j *job) start(name string, flags untilFlags, change func(*weir.Options)) *worker {
	j.t.Helper()
	opts := weir.Options{App: "a", Streams: []string{"s"}, Worker: name, Logger: slog.New(slog.DiscardHandler), NoHistory: true}
	opts.Batching.MaxRecords = 10
	if change != nil {
		change(&opts)
	}
	client := j.srv.Client()
	c, err := weir.New(client, j.store, opts)
	if err != nil {
		j.t.Fatal(err)
	}
	ctx, cancel := context.WithCancelCause(context.Background())
	w := &worker{stop: cancel, said: clitest.NewOutput(), ended: make(chan struct{})}
	e := ending{
		untilFlags: flags, t: cli.NewTerminal(nil, io.Discard, w.said), client: client, consumer: c, store: j.store,
		app: "a", worker: name, streams: []string{"s"},
	}
	go func() {
		defer close(w.ended)
		w.err = e.run(ctx, func(ctx context.Context) error { return c.Run(ctx, weir.HandlerFunc(j.handle)) })
	}()
	return w
}

// wait waits for the end of the worker, and checks its exit code.
func (w *worker) wait(t *testing.T, code int) {
	t.Helper()
	select {
	case <-w.ended:
	case <-time.After(time.Hour):
		w.stop(explain.ErrInterrupted)
		<-w.ended
		t.Fatalf("the worker did not end by itself within an hour; it said %q", w.said)
	}
	got := cli.ExitDone
	var said cli.ExitCode
	switch {
	case errors.As(w.err, &said):
		got = int(said)
	case w.err != nil:
		t.Fatal(w.err)
	}
	if got != code {
		t.Errorf("exit code %d, want %d; it said %q", got, code, w.said)
	}
}

var untilTip = untilFlags{tip: true}

func TestOneWorkerEndsAtTheTip(t *testing.T) {
	untilBubble(t, func(j *job) {
		j.put(0, 100)
		j.start("A", untilTip, nil).wait(j.t, cli.ExitDone)
		if n := j.missing(100); n > 0 {
			j.t.Errorf("%d records were not handled", n)
		}
		// The next run continues at the checkpoints.
		j.put(100, 150)
		j.start("A", untilTip, nil).wait(j.t, cli.ExitDone)
		if n := j.missing(150); n > 0 {
			j.t.Errorf("%d records were not handled", n)
		}
		for what, n := range j.handled {
			if n != 1 {
				j.t.Errorf("%s was handled %d times", what, n)
			}
		}
	})
}

func TestAnEmptyStreamEndsTheWorker(t *testing.T) {
	untilBubble(t, func(j *job) {
		begin := time.Now()
		w := j.start("A", untilTip, nil)
		w.wait(j.t, cli.ExitDone)
		if took := time.Since(begin); took > 10*time.Second {
			j.t.Errorf("took %v", took)
		}
		if !strings.Contains(w.said.String(), "the application has handled all records that were in the stream at the start") {
			j.t.Errorf("said %q", w.said)
		}
	})
}

// Records arrive all the time, and the handler is never at the tip.
func TestTheTipIsThatOfTheStart(t *testing.T) {
	untilBubble(t, func(j *job) {
		j.slow = 45 * time.Millisecond
		j.put(0, 200)
		ctx, cancel := context.WithCancel(context.Background())
		var puts sync.WaitGroup
		puts.Go(func() {
			for n := 200; ctx.Err() == nil; n++ {
				j.put(n, n+1)
				time.Sleep(25 * time.Millisecond)
			}
		})
		j.start("A", untilTip, nil).wait(j.t, cli.ExitDone)
		cancel()
		puts.Wait()
		if n := j.missing(200); n > 0 {
			j.t.Errorf("%d records were not handled", n)
		}
	})
}

func TestTwoWorkersEndAtTheTip(t *testing.T) {
	untilBubble(t, func(j *job) {
		j.slow = 100 * time.Millisecond
		j.put(0, 500)
		a, b := j.start("A", untilTip, nil), j.start("B", untilTip, nil)
		for _, w := range []*worker{a, b} {
			select {
			case <-w.ended:
			case <-time.After(time.Hour):
				j.t.Fatal("a worker did not end")
			}
		}
		// The worker that ends last has checked that no shard has records left.
		if n := j.missing(500); n > 0 {
			j.t.Errorf("%d records were not handled; they said %q and %q", n, a.said, b.said)
		}
		if a.err != nil && b.err != nil {
			j.t.Errorf("no worker says that the application is complete: %q, %q", a.said, b.said)
		}
	})
}

// One of the two shards has records that take long. The worker with the other shard ends first, and
// says that records are left.
func TestAWorkerTellsThatOthersHaveRecords(t *testing.T) {
	untilBubble(t, func(j *job) {
		j.slow = time.Second
		for n := range 100 { // one key, one shard
			j.srv.Put("s", "k", fmt.Appendf(nil, "record %d", n))
		}
		b := j.start("B", untilTip, nil)
		time.Sleep(5 * time.Second) // B has both shards, and handles records of one
		a := j.start("A", untilTip, nil)
		var first, last *worker
		select {
		case <-a.ended:
			first, last = a, b
		case <-b.ended:
			first, last = b, a
		}
		first.wait(j.t, cli.ExitIncomplete)
		if !strings.Contains(first.said.String(), "other workers still have records in 1 shard (s/shardId-") {
			j.t.Errorf("said %q", first.said)
		}
		last.wait(j.t, cli.ExitDone)
		if n := j.missing(100); n > 0 {
			j.t.Errorf("%d records were not handled", n)
		}
	})
}

// B dies before A starts. A waits for B's shards.
func TestShardsOfADeadWorkerAreHandled(t *testing.T) {
	untilBubble(t, func(j *job) {
		whole := j.store
		dying := &forgetful{Store: whole}
		j.store, j.slow = dying, time.Second
		j.put(0, 100)
		b := j.start("B", untilTip, nil)
		time.Sleep(3 * time.Second)
		dying.die()
		b.stop(explain.ErrInterrupted)
		<-b.ended
		j.store = whole
		j.start("A", untilTip, nil).wait(j.t, cli.ExitDone)
		if n := j.missing(100); n > 0 {
			j.t.Errorf("%d records were not handled", n)
		}
	})
}

// forgetful is a store that a worker can no longer reach after die.
type forgetful struct {
	lease.Store
	mu   sync.Mutex // guards dead
	dead bool
}

var errUnreachable = errors.New("the store cannot be reached")

func (f *forgetful) die() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.dead = true
}

func (f *forgetful) lost() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.dead {
		return errUnreachable
	}
	return nil
}

func (f *forgetful) Heartbeat(ctx context.Context, app string, r lease.Report) (lease.Orders, error) {
	if err := f.lost(); err != nil {
		return lease.Orders{}, err
	}
	return f.Store.Heartbeat(ctx, app, r)
}

func (f *forgetful) Leave(ctx context.Context, app string, r lease.Report) error {
	if err := f.lost(); err != nil {
		return err
	}
	return f.Store.Leave(ctx, app, r)
}

func TestASplitDuringTheRun(t *testing.T) {
	untilBubble(t, func(j *job) {
		j.slow = 100 * time.Millisecond
		j.put(0, 100)
		split := j.srv.OpenShards("s")[0]
		low, _ := j.srv.Split("s", split) // before the start: the children have records that count
		j.put(100, 200)
		w := j.start("A", untilTip, nil)
		time.Sleep(2 * time.Second)
		j.srv.Split("s", low) // after the start
		j.put(200, 210)
		w.wait(j.t, cli.ExitDone)
		if n := j.missing(200); n > 0 {
			j.t.Errorf("%d records were not handled; it said %q", n, w.said)
		}
	})
}

func TestAStopInTheMiddleIsIncomplete(t *testing.T) {
	untilBubble(t, func(j *job) {
		j.slow = time.Second
		j.put(0, 100)
		w := j.start("A", untilTip, nil)
		time.Sleep(10 * time.Second)
		w.stop(explain.ErrInterrupted)
		w.wait(j.t, cli.ExitIncomplete)
		if !strings.Contains(w.said.String(), "the worker was stopped before it had handled all records that were in the stream at the start") {
			j.t.Errorf("said %q", w.said)
		}
		if n := j.missing(100); n == 0 || n == 100 {
			j.t.Errorf("%d records were not handled", n)
		}
	})
}

func TestUntilATime(t *testing.T) {
	untilBubble(t, func(j *job) {
		j.put(0, 100)
		time.Sleep(time.Hour)
		at := time.Now()
		time.Sleep(time.Hour)
		j.put(100, 1000)
		flags := untilFlags{at: at.Format(time.RFC3339)}
		if err := flags.parse(time.Now()); err != nil {
			j.t.Fatal(err)
		}
		// Handling the records after the time takes minutes. The worker does not wait for them.
		j.slow = time.Second
		w := j.start("A", flags, nil)
		w.wait(j.t, cli.ExitDone)
		if n := j.missing(1000); n < 800 {
			j.t.Errorf("%d of 1000 records were not handled, so the worker ended late", n)
		}
		if n := j.missing(100); n > 0 {
			j.t.Errorf("%d records were not handled", n)
		}
		if !strings.Contains(w.said.String(), "all records that arrived before 20") {
			j.t.Errorf("said %q", w.said)
		}
	})
}

// The worker waits for a paused stream, and says so.
func TestAPausedStreamIsNotAnEnd(t *testing.T) {
	untilBubble(t, func(j *job) {
		j.put(0, 10)
		pause := func(on bool) {
			if _, err := j.store.Apply(context.Background(), "a", []lease.Action{{Kind: lease.Pause, Stream: "s", On: on}}); err != nil {
				j.t.Fatal(err)
			}
		}
		pause(true)
		w := j.start("A", untilTip, nil)
		time.Sleep(10 * time.Minute)
		select {
		case <-w.ended:
			j.t.Fatalf("ended with %v", w.err)
		default:
		}
		// At the start, and after 1, 3 and 7 minutes.
		if n := strings.Count(w.said.String(), "the worker waits: stream s is paused"); n != 4 {
			j.t.Errorf("said %d times: %q", n, w.said)
		}
		pause(false)
		w.wait(j.t, cli.ExitDone)
		if n := j.missing(10); n > 0 {
			j.t.Errorf("%d records were not handled", n)
		}
	})
}

// With a limit of leases below the number of shards, the worker says what it waits for, and so does
// its last line.
func TestALimitOfLeasesIsSaid(t *testing.T) {
	untilBubble(t, func(j *job) {
		j.put(0, 10)
		w := j.start("A", untilTip, func(o *weir.Options) { o.MaxLeases = 1 })
		time.Sleep(5 * time.Minute)
		const why = "shard s/shardId-000000000001 has no owner yet: every worker has as many shards as its --max-leases allows"
		if n := strings.Count(w.said.String(), "the worker waits: "); n < 2 || n > 4 || !strings.Contains(w.said.String(), why) {
			j.t.Errorf("said %d times: %q", n, w.said)
		}
		w.stop(explain.ErrInterrupted)
		w.wait(j.t, cli.ExitIncomplete)
		if !strings.Contains(w.said.String(), "; it waited for 5 min: shard s") {
			j.t.Errorf("at the end it said %q", w.said)
		}
	})
}

// For a stream that was deleted, a job says what it waits for, whether or not it holds shards.
func TestADeletedStreamIsSaid(t *testing.T) {
	for name, before := range map[string]bool{"before the start": true, "during the run": false} {
		t.Run(name, func(t *testing.T) {
			untilBubble(t, func(j *job) {
				j.put(0, 10)
				w := j.start("A", untilTip, nil)
				if before {
					w.wait(j.t, cli.ExitDone)
				} else {
					j.slow = 10 * time.Second
				}
				time.Sleep(5 * time.Second)
				j.srv.DeleteStream("s")
				if before {
					w = j.start("A", untilTip, nil)
				}
				time.Sleep(5 * time.Minute)
				if n := strings.Count(w.said.String(), "the worker waits: "); n < 1 || n > 4 || !strings.Contains(w.said.String(), "cannot go on") {
					j.t.Errorf("said %d times: %q", n, w.said)
				}
				w.stop(explain.ErrInterrupted)
				w.wait(j.t, cli.ExitIncomplete)
			})
		})
	}
}
