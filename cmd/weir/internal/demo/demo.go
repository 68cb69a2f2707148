// Package demo implements weir's demonstration. It puts real data into an embedded Kinesis while
// worker processes start, die and stop. It then computes a verdict from what the handlers of the
// workers wrote.
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

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/cmd/weir/internal/judge"
	"github.com/weir-go/weir/cmd/weir/internal/put"
	"github.com/weir-go/weir/cmd/weir/internal/sqlitefile"
	"github.com/weir-go/weir/kinesistest"
	"github.com/weir-go/weir/lease"
)

// Options configures the demo. Leader, FanOut, Keep, Beat, Failover and Page are optional. All
// other fields are required.
type Options struct {
	Flights  int             // number of records to put, at most 20,000
	Shards   int             // shards of the stream at the start, at least 3
	Workers  int             // workers at the start, at least 3; one more joins later
	Duration time.Duration   // time for putting all flights, if nothing delays the script
	Leader   bool            // kill the leader; otherwise another worker
	FanOut   weir.FanOutMode // how the workers read
	Keep     bool            // keep the directory with the journals

	// Command is the command line of a worker process. The demo appends an argument: a Worker as
	// JSON.
	Command []string

	Beat, Failover time.Duration // times of the workers; 0 means weir's default
	// Page returns a page to serve while the demo runs. It may be nil.
	Page func(lease.Store, *kinesis.Client) http.Handler
	// Show receives the events. It must not block.
	Show Audience
}

// Audience shows a demo to the user.
type Audience interface {
	Event(at time.Duration, text string)
	Picture(p picture)
}

// Result is the result of a demo.
type Result struct {
	judge.Verdict
	Splits, Merges int
	Kill, Stop     judge.Gap
	JoinBalanced   time.Duration
	Airports       int
	Took           time.Duration
	Dir            string // set with Options.Keep
}

// Run runs the demo to its end. It returns an error if it cannot reach a verdict. A negative
// verdict is not an error. After Run, no process or goroutine of the demo is left, and no file
// unless Keep is set.
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
	page      string // address of the page; "" if there is none
	watch     *watch
	processes []*process
	steps     []step
	result    Result

	scriptDone atomic.Bool // the producer may put the rest faster

	mu  sync.Mutex
	put map[string]int // number of flights in each shard
}

// servePage serves the page of the demo on a free port of this machine until end is called.
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

// play runs the producer and the script, and stops the workers. If both succeeded, it computes the
// verdict.
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
		err = cause // report the cause, not that the script was cancelled
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

// producer is the state of the goroutine that puts the flights.
type producer struct {
	done chan struct{} // closed at the end of the goroutine, after err was set
	err  error
}

// dismiss stops all worker processes. It kills a process that does not stop within the given time.
func (d *stage) dismiss(bound time.Duration) error {
	ctx := context.Background()
	var errs []error
	for _, p := range d.processes { // stop all before waiting
		if p.alive() && !p.wasAsked() {
			errs = append(errs, p.stop())
		}
	}
	for _, p := range d.processes {
		errs = append(errs, p.finish(ctx, bound))
	}
	return errors.Join(errs...)
}

// produce puts the flights at an even rate until all are in the stream.
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

// judge reads the journals of all workers to their ends, and computes the verdict. The workers have
// ended.
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

// hire starts another worker.
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

// rate returns the number of flights to put per second: the remaining flights divided by the
// remaining time. Until the script is done, at least 8 seconds count as remaining. On a slow
// machine the traffic then gets thinner, but it does not end before the last event.
func rate(left int, untilEnd time.Duration, scriptDone bool) float64 {
	horizon := max(untilEnd, 8*time.Second)
	if scriptDone {
		horizon = max(untilEnd, 100*time.Millisecond)
	}
	return float64(left) / horizon.Seconds()
}

// hurry returns the time at which the last flight should be put once the script is done. It is the
// planned time, limited to the range from 1 to 3 seconds from now.
func hurry(planned, now time.Duration) time.Duration {
	return max(min(planned, now+3*time.Second), now+time.Second)
}
