package scenario_test

import (
	"context"
	"crypto/md5"
	"encoding/binary"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"math/bits"
	"math/rand/v2"
	"net/http"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/kinesis"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/event"
	"github.com/weir-go/weir/internal/proof/leaktest"
	"github.com/weir-go/weir/internal/proof/scenario"
	"github.com/weir-go/weir/kinesistest"
	"github.com/weir-go/weir/lease"
	"github.com/weir-go/weir/store/memstore"
)

var (
	full  = flag.Bool("full", false, "the sizes and numbers of runs of the documentation, which take minutes")
	table scenario.Table
)

func TestMain(m *testing.M) {
	flag.Parse()
	code := leaktest.Run(m)
	if testing.Verbose() {
		table.Write(os.Stdout)
	}
	os.Exit(code)
}

// size returns short in an ordinary run of the tests. With -full it returns long.
func size(short, long int) int {
	if *full {
		return long
	}
	return short
}

// The default values of the options.
const (
	beat     = time.Second
	failover = 5 * time.Second
)

// A fleet contains the workers of one application in a bubble. Each worker has its own connections
// to an embedded Kinesis and to a store. Calls to Kinesis take 5 to 15 ms, and calls to the store 1
// to 10 ms.
type fleet struct {
	t       *testing.T
	srv     *kinesistest.Server
	store   lease.Store
	streams []string
	idle    time.Duration // weir.Options.Polling.IdleInterval
	workers []*worker

	mu      sync.Mutex
	handled []scenario.Handled
	put     map[string]int
	putAt   map[string][]int64 // times in Unix nanoseconds
	ends    map[string]int64   // by shard: when its last batch had been handled
	takes   atomic.Int64       // number of leases that workers began to read
	calls   int                // number of early heartbeats and of writes by the leader
}

// run creates a fleet without workers and calls f. The streams "s0", "s1", … have the given number
// of shards each. After f, run cleans up.
func run(t *testing.T, streams, shards int, f func(*fleet)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		srv, err := kinesistest.Start(kinesistest.Config{InMemory: true, NoLimits: true})
		if err != nil {
			t.Fatal(err)
		}
		defer srv.Close()
		srv.Control("", func(*kinesistest.Call) kinesistest.Fault {
			return kinesistest.Fault{Delay: 5*time.Millisecond + rand.N(10*time.Millisecond)}
		})
		o := &fleet{t: t, srv: srv, store: memstore.New(), put: map[string]int{}, putAt: map[string][]int64{}, ends: map[string]int64{}, idle: 200 * time.Millisecond}
		for i := range streams {
			name := fmt.Sprintf("s%d", i)
			srv.CreateStream(name, shards)
			o.streams = append(o.streams, name)
		}
		f(o)
		for _, w := range o.workers {
			w.cancel()
		}
		for _, w := range o.workers {
			w.wait()
		}
	})
}

type worker struct {
	*fleet
	name   string
	link   *link
	cancel context.CancelFunc
	done   chan error
	once   sync.Once
}

// start starts a worker.
func (f *fleet) start() *worker {
	f.t.Helper()
	w := &worker{fleet: f, name: fmt.Sprintf("w%d", len(f.workers)), link: &link{Store: f.store, of: f}, done: make(chan error, 1)}
	f.workers = append(f.workers, w)
	client := f.srv.Client(func(o *kinesis.Options) { o.HTTPClient = &http.Client{Transport: f.srv.Transport()} })
	c, err := weir.New(client, w.link, weir.Options{
		App: "app", Streams: f.streams, Worker: w.name, Polling: weir.Polling{IdleInterval: f.idle}, Logger: slog.New(slog.NewTextHandler(io.Discard, nil)),
		OnEvent: event.On(func(context.Context, event.LeaseTaken) {
			f.takes.Add(1)
		}),
	})
	if err != nil {
		f.t.Fatal(err)
	}
	var ctx context.Context
	ctx, w.cancel = context.WithCancel(f.t.Context())
	go func() { w.done <- c.Run(ctx, weir.HandlerFunc(w.handle)) }()
	return w
}

// handle notes the records of its batch, unless the process of the worker is dead.
func (w *worker) handle(ctx context.Context, b *weir.Batch) error {
	if w.link.isDead() {
		<-ctx.Done()
		return context.Cause(ctx)
	}
	now := time.Now().UnixNano()
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, r := range b.Records {
		n, err := strconv.Atoi(string(r.Data))
		if err != nil {
			return weir.Stop(fmt.Errorf("a record that nobody put: %q", r.Data))
		}
		w.handled = append(w.handled, scenario.Handled{
			At: now, Worker: w.name, Shard: b.Stream + "/" + b.Shard, Epoch: b.Epoch, Key: b.Stream + "/" + r.PartitionKey, N: n,
		})
	}
	if b.End {
		w.ends[b.Stream+"/"+b.Shard] = now
	}
	return nil
}

// stop ends the worker gracefully.
func (w *worker) stop() {
	w.cancel()
	w.wait()
}

func (w *worker) wait() {
	w.once.Do(func() {
		if err := <-w.done; err != nil && !w.link.isDead() {
			w.t.Errorf("Run of %s: %v", w.name, err)
		}
	})
}

// kill ends the worker like a crash. Its later calls have no effect.
func (w *worker) kill() {
	w.link.mu.Lock()
	w.link.dead = true
	w.link.mu.Unlock()
	w.cancel()
}

// link is the connection of a worker to the store.
type link struct {
	lease.Store
	of     *fleet
	mu     sync.Mutex
	dead   bool
	beaten time.Time
}

var errDead = errors.New("the process is dead")

func (l *link) isDead() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.dead
}

func over[T any](ctx context.Context, l *link, call func() (T, error)) (none T, err error) {
	time.Sleep(time.Millisecond + rand.N(9*time.Millisecond))
	if l.isDead() {
		<-ctx.Done()
		return none, errDead
	}
	return call()
}

func (l *link) Heartbeat(ctx context.Context, app string, r lease.Report) (lease.Orders, error) {
	l.mu.Lock()
	early := time.Since(l.beaten) < beat/2
	l.beaten = time.Now()
	l.mu.Unlock()
	if early {
		l.of.called()
	}
	return over(ctx, l, func() (lease.Orders, error) { return l.Store.Heartbeat(ctx, app, r) })
}

func (l *link) View(ctx context.Context, app, since string) (lease.View, error) {
	return over(ctx, l, func() (lease.View, error) { return l.Store.View(ctx, app, since) })
}

func (l *link) Apply(ctx context.Context, app string, a []lease.Action) ([]bool, error) {
	l.of.called()
	return over(ctx, l, func() ([]bool, error) { return l.Store.Apply(ctx, app, a) })
}

func (l *link) Lead(ctx context.Context, app, session string, term uint64) (bool, error) {
	return over(ctx, l, func() (bool, error) { return l.Store.Lead(ctx, app, session, term) })
}

func (l *link) Leave(ctx context.Context, app string, r lease.Report) error {
	_, err := over(ctx, l, func() (struct{}, error) { return struct{}{}, l.Store.Leave(ctx, app, r) })
	return err
}

func (f *fleet) called() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.calls++
}

// quick returns f.calls.
func (f *fleet) quick() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.calls
}

// keys returns a partition key for each of n equal shards. The index is that of the shard.
func keys(n int) []string {
	found := make([]string, n)
	for i, left := 0, n; left > 0; i++ {
		key := fmt.Sprintf("key-%d", i)
		sum := md5.Sum([]byte(key))
		shard, _ := bits.Mul64(binary.BigEndian.Uint64(sum[:8]), uint64(n))
		if found[shard] == "" {
			found[shard] = key
			left--
		}
	}
	return found
}

// write puts the next record of a key into a stream.
func (f *fleet) write(stream, key string) {
	f.mu.Lock()
	f.put[stream+"/"+key]++
	n := f.put[stream+"/"+key]
	f.putAt[stream+"/"+key] = append(f.putAt[stream+"/"+key], time.Now().UnixNano())
	f.mu.Unlock()
	f.srv.Put(stream, key, strconv.AppendInt(nil, int64(n), 10))
}

// flow repeatedly puts records for each key into each stream, until the returned function is
// called. The keys take turns at different times.
func (f *fleet) flow(keys []string, every time.Duration) (stop func()) {
	ctx, cancel := context.WithCancel(f.t.Context())
	var flowing sync.WaitGroup
	flowing.Go(func() {
		parts := min(10, len(keys)) // number of keys per turn
		timer := time.NewTicker(every / time.Duration(parts))
		defer timer.Stop()
		for part := 0; ; part = (part + 1) % parts {
			select {
			case <-timer.C:
			case <-ctx.Done():
				return
			}
			for _, s := range f.streams {
				for i := part; i < len(keys); i += parts {
					f.write(s, keys[i])
				}
			}
		}
	})
	return func() {
		cancel()
		flowing.Wait()
	}
}

// until waits for a condition and returns how long that took.
func (f *fleet) until(what string, bound time.Duration, is func() bool) time.Duration {
	f.t.Helper()
	began := time.Now()
	for !is() {
		if time.Since(began) > bound {
			f.t.Fatalf("%s: not within %v", what, bound)
		}
		time.Sleep(10 * time.Millisecond)
	}
	return time.Since(began)
}

// holdings returns the number of unfinished leases that each worker holds, and the number of leases
// that are moving. The key "" counts leases without an owner.
func (f *fleet) holdings() (held map[string]int, moving int) {
	v := f.view()
	names := map[string]string{}
	for _, w := range v.Workers {
		names[w.Session] = w.Name
	}
	held = map[string]int{}
	for _, l := range v.Leases {
		if !l.Finished() {
			held[names[l.Owner]]++
			if l.Heir != "" {
				moving++
			}
		}
	}
	return held, moving
}

func (f *fleet) view() lease.View {
	v, err := f.store.View(f.t.Context(), "app", "")
	if err != nil {
		f.t.Fatal(err)
	}
	return v
}

// even reports whether the given number of workers hold all leases, with counts that differ by at
// most one.
func (f *fleet) even(leases, workers int) bool {
	held, moving := f.holdings()
	low := leases / workers
	for _, n := range held {
		if n < low || n > low+min(leases%workers, 1) {
			return false
		}
	}
	total := 0
	for _, n := range held {
		total += n
	}
	return moving == 0 && held[""] == 0 && len(held) == workers && total == leases
}

// leader returns the worker that leads.
func (f *fleet) leader() *worker {
	v := f.view()
	for _, s := range v.Workers {
		for _, w := range f.workers {
			if s.Session == v.Leader.Session && w.name == s.Name {
				return w
			}
		}
	}
	f.t.Fatal("no worker leads")
	return nil
}

// notes returns the records handled so far.
func (f *fleet) notes() []scenario.Handled {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]scenario.Handled(nil), f.handled...)
}

// caughtUp reports whether as many records were handled as were put.
func (f *fleet) caughtUp() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	total := 0
	for _, n := range f.put {
		total += n
	}
	return len(f.handled) >= total
}

// judge waits until as many records were handled as were put. Then it stops all workers and returns
// the verdict, which must be clean.
func (f *fleet) judge() scenario.Verdict {
	f.t.Helper()
	f.until("everything handled", time.Minute, f.caughtUp)
	for _, w := range f.workers {
		w.cancel()
	}
	for _, w := range f.workers {
		w.wait()
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	v, err := scenario.Judge(f.put, f.handled)
	if err != nil {
		f.t.Fatal(err)
	}
	if !v.Clean() {
		f.t.Errorf("%s: %q", v, v.Complaints)
	}
	return v
}
