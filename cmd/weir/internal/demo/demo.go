// Package demo is weir's demonstration: an embedded Kinesis, real data, worker processes that come,
// die and go while it flows, and a verdict computed from what their handlers wrote.
package demo

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"

	"github.com/weir-go/weir/cmd/weir/internal/judge"
	"github.com/weir-go/weir/cmd/weir/internal/put"
	"github.com/weir-go/weir/cmd/weir/internal/sqlitefile"
	"github.com/weir-go/weir/kinesistest"
	"github.com/weir-go/weir/lease"
)

// Options say what is shown. All fields but FanOut, Keep and the last three are required.
type Options struct {
	Flights  int           // how many are put, at most 20,000
	Shards   int           // of the stream at the start, at least 3
	Workers  int           // at the start, at least 3; one more joins
	Duration time.Duration // how long the flights take if nothing holds the script up
	Leader   bool          // kill the worker that leads, else another one
	FanOut   bool          // the workers read by fan-out instead of polling
	Keep     bool          // leave the directory with the journals behind

	// Command starts a worker process when it is followed by a Worker as JSON.
	Command []string

	Beat, Failover time.Duration // of the workers; 0 is weir's default
	// Page, if any, makes the page that is served while the demo runs.
	Page func(lease.Store, *kinesis.Client) http.Handler
	// Show receives each event; it must not block.
	Show Audience
}

// Audience watches a demo.
type Audience interface {
	Event(at time.Duration, text string)
	Picture(p picture)
}

// Result is the outcome of a demo.
type Result struct {
	judge.Verdict
	Splits, Merges int
	Kill, Stop     judge.Gap
	JoinBalanced   time.Duration
	Airports       int
	Took           time.Duration
	Dir            string // with Options.Keep
}

// Run runs the demo to its end. It returns an error if there is no verdict; a verdict can still be
// a bad one. When Run returns, no process, goroutine or file of the demo is left.
func Run(ctx context.Context, o Options) (result Result, err error) {
	all, err := flights(o.Flights)
	if err != nil {
		return result, err
	}
	dir, err := os.MkdirTemp("", scratchPrefix)
	if err != nil {
		return result, fmt.Errorf("no temporary directory: %w", err)
	}
	if o.Keep {
		result.Dir = dir
	} else {
		defer func() { err = errors.Join(err, removeScratch(dir)) }()
	}
	server, err := kinesistest.Start(kinesistest.Config{})
	if err != nil {
		return result, err
	}
	defer func() { err = errors.Join(err, server.Close()) }()
	client := server.Client()
	if _, err := client.CreateStream(ctx, &kinesis.CreateStreamInput{StreamName: aws.String(stream), ShardCount: aws.Int32(int32(o.Shards))}); err != nil {
		return result, err
	}
	store, err := sqlitefile.Open(ctx, storePath(dir), true)
	if err != nil {
		return result, err
	}
	defer func() { err = errors.Join(err, store.Close()) }()

	page, closePage, err := servePage(ctx, o.Page, store, client)
	if err != nil {
		return result, err
	}
	defer func() { err = errors.Join(err, closePage()) }()

	d := &stage{page: page, options: o, dir: dir, server: server, client: client, flights: all, began: time.Now(),
		watch: newWatch(dir, store, len(all)), put: map[string]int{}, result: result}
	defer d.watch.close()
	err = d.play(ctx)
	d.result.Took = time.Since(d.began)
	return d.result, err
}

// stage is a running demo. Fields without a lock belong to the goroutine of Run.
type stage struct {
	options   Options
	dir       string
	server    *kinesistest.Server
	client    *kinesis.Client
	flights   []flight
	began     time.Time
	page      string // its address, "" without one
	watch     *watch
	processes []*process
	steps     []step
	result    Result

	scriptDone atomic.Bool // the producer may hurry

	mu  sync.Mutex
	put map[string]int // flights that were put, by shard
}

// servePage serves the page of the demo on a free port of this machine, until it is closed.
func servePage(ctx context.Context, page func(lease.Store, *kinesis.Client) http.Handler, store lease.Store, client *kinesis.Client) (url string, end func() error, err error) {
	if page == nil {
		return "", func() error { return nil }, nil
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", nil, fmt.Errorf("no address for the page: %w", err)
	}
	server := &http.Server{Handler: page(store, client), ReadHeaderTimeout: 5 * time.Second, WriteTimeout: 30 * time.Second}
	done := make(chan error, 1)
	go func() { done <- server.Serve(listener) }()
	return "http://" + listener.Addr().String() + "/app?app=" + app, func() error {
		err := server.Close()
		if served := <-done; !errors.Is(served, http.ErrServerClosed) {
			err = errors.Join(err, served)
		}
		return err
	}, nil
}

// play runs producer and script, ends the workers, and judges if both came through.
func (d *stage) play(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	producer := &producer{done: make(chan struct{})}
	go func() {
		defer close(producer.done)
		if producer.err = d.produce(ctx); producer.err != nil {
			cancel(producer.err)
		}
	}()
	err := d.script(ctx, producer)
	if cause := context.Cause(ctx); err != nil && cause != nil {
		err = cause // why the script was cut off, rather than that it was
	}
	cancel(nil)
	<-producer.done
	bound := 20 * time.Second
	if err != nil {
		bound = 3 * time.Second
	}
	if err = errors.Join(err, d.dismiss(bound)); err != nil {
		return err
	}
	return d.judge()
}

// producer is the goroutine that puts the flights.
type producer struct {
	done chan struct{} // closed at its end, after err was set
	err  error
}

// dismiss ends all worker processes.
func (d *stage) dismiss(bound time.Duration) error {
	ctx := context.Background()
	var errs []error
	for _, p := range d.processes { // all at once, then wait
		if p.alive() && !p.wasAsked() {
			errs = append(errs, p.stop())
		}
	}
	for _, p := range d.processes {
		errs = append(errs, p.finish(ctx, bound))
	}
	return errors.Join(errs...)
}

// produce puts the flights, evenly over the time, until all are in the stream.
func (d *stage) produce(ctx context.Context) error {
	taken := func(shard string) {
		d.mu.Lock()
		d.put[shard]++
		d.mu.Unlock()
	}
	sender, err := put.NewSender(put.Options{Client: d.client, Stream: stream, Taken: taken})
	if err != nil {
		return err
	}
	paced := d.pace(ctx, sender)
	if _, err := sender.Close(ctx); err != nil {
		return err
	}
	return paced
}

// pace puts the flights, evenly over the time.
func (d *stage) pace(ctx context.Context, to *put.Sender) error {
	const tick = 50 * time.Millisecond
	ticker := time.NewTicker(tick)
	defer ticker.Stop()
	due, end, hurried := 0.0, d.options.Duration, false
	for i := 0; i < len(d.flights); {
		now := time.Since(d.began)
		if d.scriptDone.Load() && !hurried {
			end, hurried = hurry(end, now), true
		}
		due += rate(len(d.flights)-i, end-now, hurried) * tick.Seconds()
		for ; due >= 1 && i < len(d.flights); due-- {
			f := d.flights[i]
			i++
			e := put.Entry{Data: f.data, Key: f.origin, Line: int64(i)}
			if err := to.Put(ctx, e); err != nil {
				return err
			}
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// judge reads the journals of all workers, which have ended by now, to their ends.
func (d *stage) judge() error {
	if err := d.watch.look(context.Background(), d.names()); err != nil {
		return err
	}
	keys := make([]string, len(d.flights))
	airports := map[string]bool{}
	for i, f := range d.flights {
		keys[i] = f.origin
		airports[f.origin] = true
	}
	verdict, err := judge.Judge(keys, d.watch.journals)
	d.result.Verdict, d.result.Airports = verdict, len(airports)
	return err
}

func (d *stage) names() []string {
	var names []string
	for _, p := range d.processes {
		names = append(names, p.name)
	}
	return names
}

// hire starts the next worker.
func (d *stage) hire() (*process, error) {
	w := Worker{Name: fmt.Sprintf("w%d", len(d.processes)+1), Endpoint: d.server.URL(), Dir: d.dir,
		Beat: d.options.Beat, Failover: d.options.Failover, FanOut: d.options.FanOut, Keep: d.options.Keep}
	told, err := json.Marshal(w)
	if err != nil {
		return nil, err
	}
	p, err := startProcess(append(slices.Clone(d.options.Command), string(told)), d.dir, w.Name)
	if err != nil {
		return nil, err
	}
	d.processes = append(d.processes, p)
	return p, nil
}

func (d *stage) process(name string) *process {
	for _, p := range d.processes {
		if p.name == name {
			return p
		}
	}
	return nil
}

// rate returns how many flights a second to put: the remaining flights divided by the remaining
// time. While the script still has events to show, the time is extended, so that on a slow machine
// traffic gets thinner but does not end before the last event.
func rate(left int, untilEnd time.Duration, scriptDone bool) float64 {
	horizon := max(untilEnd, 8*time.Second)
	if scriptDone {
		horizon = max(untilEnd, 100*time.Millisecond)
	}
	return float64(left) / horizon.Seconds()
}

// hurry is when the flights should end once the script is done: as planned, but neither at once nor
// late.
func hurry(planned, now time.Duration) time.Duration {
	return max(min(planned, now+3*time.Second), now+time.Second)
}
