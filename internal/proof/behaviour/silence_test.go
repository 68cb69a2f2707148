package behaviour

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/kinesis"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/internal/proof/longform"
	"github.com/weir-go/weir/kinesistest"
	"github.com/weir-go/weir/store/memstore"
)

// deadLines contains the connections of a network. A connection can die without an error. After
// that, written bytes are lost, so no answer arrives.
type deadLines struct {
	dial func(ctx context.Context, network, addr string) (net.Conn, error)

	mu  sync.Mutex
	all []*deadLine
}

type deadLine struct {
	net.Conn
	dead atomic.Bool
	ends atomic.Bool  // die after a number of bytes
	left atomic.Int64 // bytes that still arrive
}

func (l *deadLine) Read(b []byte) (int, error) {
	for {
		if l.ends.Load() {
			b = b[:min(int64(len(b)), max(l.left.Load(), 0))]
		}
		if len(b) > 0 {
			n, err := l.Conn.Read(b)
			if l.ends.Load() && l.left.Add(-int64(n)) < 0 {
				n += int(l.left.Load())
			}
			if n > 0 || err != nil {
				return max(n, 0), err
			}
			continue
		}
		if _, err := l.Conn.Read(make([]byte, 1024)); err != nil {
			return 0, err
		}
	}
}

func (l *deadLine) Write(b []byte) (int, error) {
	if l.dead.Load() {
		return len(b), nil
	}
	return l.Conn.Write(b)
}

func (d *deadLines) DialContext(ctx context.Context, network, addr string) (net.Conn, error) {
	c, err := d.dial(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	l := &deadLine{Conn: c}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.all = append(d.all, l)
	return l, nil
}

// stopAnswers lets each open connection deliver a number of bytes, and no more.
func (d *deadLines) stopAnswers(after int64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, l := range d.all {
		l.left.Store(after)
		l.ends.Store(true)
	}
	d.all = nil
}

// kill makes all open connections die.
func (d *deadLines) kill() {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, l := range d.all {
		l.dead.Store(true)
	}
	d.all = nil
}

// foreign is a transport of a type that weir does not know, so net/http makes all calls.
type foreign struct{ *http.Transport }

// rungs contains the ways in which weir makes calls.
var rungs = []struct {
	name   string
	client func(*http.Transport) *http.Client
	opts   weir.Options
}{
	{"own HTTP client", func(t *http.Transport) *http.Client { return &http.Client{Transport: t} }, weir.Options{}},
	{"net/http", func(t *http.Transport) *http.Client { return &http.Client{Transport: foreign{t}} }, weir.Options{}},
	{"under the SDK", func(t *http.Transport) *http.Client { return &http.Client{Transport: t} }, weir.Options{Transport: weir.SDKTransport}},
}

// overRungs runs a test in a bubble for each element of rungs, with a client whose connections can
// die.
func overRungs(t *testing.T, shards int, f func(t *testing.T, srv *kinesistest.Server, client *kinesis.Client, d *deadLines, opts weir.Options)) {
	for _, rung := range rungs {
		t.Run(rung.name, func(t *testing.T) {
			bubble(t, shards, func(t *testing.T, srv *kinesistest.Server) {
				transport := srv.Transport()
				d := &deadLines{dial: transport.DialContext}
				transport.DialContext = d.DialContext
				f(t, srv, srv.Client(func(o *kinesis.Options) { o.HTTPClient = rung.client(transport) }), d, rung.opts)
			})
		})
	}
}

// waits is a handler that records how long records have waited.
type waits struct {
	mu  sync.Mutex
	all []time.Duration
}

func (w *waits) handle(_ context.Context, b *weir.Batch) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, r := range b.Records {
		put, err := time.Parse(time.RFC3339Nano, string(r.Data))
		if err != nil {
			return err
		}
		w.all = append(w.all, time.Since(put))
	}
	return nil
}

func (w *waits) take() (n int, longest time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	all := w.all
	w.all = nil
	if len(all) == 0 {
		return 0, 0
	}
	return len(all), slices.Max(all)
}

// putEach puts a record into every shard each 100 ms, for the given time.
func putEach(srv *kinesistest.Server, lasts time.Duration) (n int) {
	for began := time.Now(); time.Since(began) < lasts; time.Sleep(100 * time.Millisecond) {
		for key := range 32 {
			srv.Put("s", fmt.Sprint("key-", key), []byte(time.Now().Format(time.RFC3339Nano)))
			n++
		}
	}
	return n
}

// If all connections die silently at the same time, a read is delayed by at most 5 s, including the
// interval between reads. This holds at any time: right after the start, when the latency of the
// service is not known yet, and later.
func TestSilentConnectionsCostFiveSeconds(t *testing.T) {
	overRungs(t, 16, func(t *testing.T, srv *kinesistest.Server, client *kinesis.Client, d *deadLines, opts weir.Options) {
		srv.Control("GetRecords", func(*kinesistest.Call) kinesistest.Fault { return kinesistest.Fault{Delay: 20 * time.Millisecond} })
		var w waits
		c, err := weir.New(client, memstore.New(), weir.Options{App: "app", Streams: []string{"s"}, Logger: quiet, Transport: opts.Transport})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- c.Run(ctx, weir.HandlerFunc(w.handle)) }()
		putEach(srv, 2*time.Second)
		time.Sleep(2 * time.Second)
		w.take()
		afters := []time.Duration{0, 17*time.Second + 300*time.Millisecond}
		if longform.On() {
			afters = append(afters, time.Minute, 5*time.Minute)
		}
		for _, before := range afters {
			putEach(srv, before)
			time.Sleep(6 * time.Second)
			w.take()
			d.kill()
			n := putEach(srv, 10*time.Second)
			time.Sleep(15 * time.Second)
			got, longest := w.take()
			retried, failed := 0, 0
			for _, s := range c.Shards() {
				retried += s.Retried
				failed += s.Failed
			}
			t.Logf("after %v: the longest wait is %v, %d second tries, %d failures", before, longest, retried, failed)
			if got != n || longest > 5*time.Second {
				t.Errorf("after %v: %d of %d records were handled, the longest wait is %v", before, got, n, longest)
			}
			if retried == 0 || failed > 0 {
				t.Errorf("%d second tries, %d failures", retried, failed)
			}
		}
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

// A service that always takes two seconds receives each call only once: weir makes no second try
// and abandons no call.
func TestASlowServiceIsAskedOnce(t *testing.T) {
	overRungs(t, 4, func(t *testing.T, srv *kinesistest.Server, client *kinesis.Client, _ *deadLines, opts weir.Options) {
		var given atomic.Int32
		srv.Control("GetRecords", func(c *kinesistest.Call) kinesistest.Fault {
			context.AfterFunc(c.Context, func() { given.Add(1) })
			return kinesistest.Fault{Delay: 2 * time.Second}
		})
		var w waits
		c, err := weir.New(client, memstore.New(), weir.Options{App: "app", Streams: []string{"s"}, Logger: quiet, Transport: opts.Transport})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- c.Run(ctx, weir.HandlerFunc(w.handle)) }()
		time.Sleep(5 * time.Minute)
		calls := srv.Requests("GetRecords")
		for _, s := range c.Shards() {
			if s.Retried > 0 || s.Failed > 0 {
				t.Errorf("%s: %d second tries, %d failures", s.Shard, s.Retried, s.Failed)
			}
		}
		if calls < 300 {
			t.Errorf("only %d calls", calls)
		}
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

// After the first 2,000 calls, half of all calls are never answered. At most one call in twenty is
// made a second time, except for a few at the start. Each shard is read at most five times a
// second, including second tries.
func TestSecondTriesAreFew(t *testing.T) {
	const shards = 8
	overRungs(t, shards, func(t *testing.T, srv *kinesistest.Server, client *kinesis.Client, _ *deadLines, opts weir.Options) {
		var mu sync.Mutex
		calls := map[string][]time.Time{}
		n := 0
		var retried atomic.Int32 // calls that were abandoned long before their time limit
		var over atomic.Bool
		srv.Control("GetRecords", func(c *kinesistest.Call) (f kinesistest.Fault) {
			mu.Lock()
			defer mu.Unlock()
			calls[c.Shard] = append(calls[c.Shard], time.Now())
			if n++; n > 2000 && n%2 == 0 {
				f.Delay = time.Hour
				began := time.Now()
				context.AfterFunc(c.Context, func() {
					if time.Since(began) < 10*time.Second && !over.Load() {
						retried.Add(1)
					}
				})
			}
			return f
		})
		var w waits
		c, err := weir.New(client, memstore.New(), weir.Options{App: "app", Streams: []string{"s"}, Logger: quiet, Transport: opts.Transport})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- c.Run(ctx, weir.HandlerFunc(w.handle)) }()
		time.Sleep(time.Hour)
		over.Store(true)
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
		mu.Lock()
		defer mu.Unlock()
		t.Logf("%d calls, %d second tries", n, retried.Load())
		if again := int(retried.Load()); again < 100 || again > n/20+10 {
			t.Errorf("%d of %d calls were made a second time", again, n)
		}
		for id, at := range calls {
			for i := 5; i < len(at); i++ {
				if at[i].Sub(at[i-5]) < 990*time.Millisecond {
					t.Fatalf("%s was read six times within %v", id, at[i].Sub(at[i-5]))
				}
			}
		}
	})
}

// Second tries count toward a small Options.Polling.Share. A shard never gets two calls within the
// time that the share allows for one call.
func TestSecondTriesKeepToTheReadShare(t *testing.T) {
	overRungs(t, 2, func(t *testing.T, srv *kinesistest.Server, client *kinesis.Client, _ *deadLines, opts weir.Options) {
		const share, apart = 0.08, 2500 * time.Millisecond
		var mu sync.Mutex
		last := map[string]time.Time{}
		least := time.Hour
		srv.Control("GetRecords", func(c *kinesistest.Call) kinesistest.Fault {
			mu.Lock()
			defer mu.Unlock()
			if at, ok := last[c.Shard]; ok {
				least = min(least, time.Since(at))
			}
			last[c.Shard] = time.Now()
			if c.N%30 == 0 { // few enough that each is repeated
				return kinesistest.Fault{Delay: time.Hour}
			}
			return kinesistest.Fault{}
		})
		var w waits
		stop := start(t, client, memstore.New(), weir.Options{Polling: weir.Polling{Share: share}, Transport: opts.Transport}, w.handle)
		putEach(srv, 5*time.Minute)
		if err := stop(); err != nil {
			t.Error(err)
		}
		if least < apart-50*time.Millisecond {
			t.Errorf("two reads of a shard were %v apart", least)
		}
	})
}

// An answer that stops in the middle is abandoned after the same time as an answer that never
// begins.
func TestAnAnswerThatStopsCostsFiveSeconds(t *testing.T) {
	overRungs(t, 1, func(t *testing.T, srv *kinesistest.Server, client *kinesis.Client, d *deadLines, opts weir.Options) {
		var w waits
		stop := start(t, client, memstore.New(), weir.Options{Transport: opts.Transport}, w.handle)
		putEach(srv, 30*time.Second)
		time.Sleep(3 * time.Second)
		w.take()
		// From now on, each connection delivers only the beginning of an answer.
		d.stopAnswers(200)
		n := putEach(srv, 3*time.Second)
		time.Sleep(15 * time.Second)
		got, longest := w.take()
		t.Logf("the longest wait is %v", longest)
		if got != n || longest > 5*time.Second {
			t.Errorf("%d of %d records were handled, the longest wait is %v", got, n, longest)
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}

// The very first calls are repeated too, although no latency has been measured yet. It does not
// matter which of them gets no answer.
func TestASilentStartCostsFiveSeconds(t *testing.T) {
	for _, action := range []string{"GetShardIterator", "GetRecords"} {
		overRungs(t, 1, func(t *testing.T, srv *kinesistest.Server, client *kinesis.Client, _ *deadLines, opts weir.Options) {
			asked := make(chan time.Time, 1)
			var handled time.Time
			srv.Control(action, func(c *kinesistest.Call) kinesistest.Fault {
				if c.N > 1 {
					return kinesistest.Fault{}
				}
				asked <- time.Now()
				return kinesistest.Fault{Delay: time.Hour}
			})
			srv.Put("s", "key", []byte("data"))
			done := make(chan struct{})
			stop := start(t, client, memstore.New(), weir.Options{Transport: opts.Transport}, func(context.Context, *weir.Batch) error {
				handled = time.Now()
				close(done)
				return nil
			})
			<-done
			if took := handled.Sub(<-asked); took < leastCold || took > 5*time.Second || srv.Requests(action) < 2 {
				t.Errorf("%s: it took %v and %d calls", action, took, srv.Requests(action))
			}
			if err := stop(); err != nil {
				t.Error(err)
			}
		})
	}
}

// leastCold is how long weir waits for an answer before it makes a call a second time, as long as
// the service has not answered any call yet.
const leastCold = 4 * time.Second
