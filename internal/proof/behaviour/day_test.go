package behaviour

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/kinesis"
	"github.com/aws/aws-sdk-go-v2/service/kinesis/types"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/internal/proof/longform"
	"github.com/weir-go/weir/kinesistest"
	"github.com/weir-go/weir/lease"
	"github.com/weir-go/weir/store/memstore"
)

var (
	daySeed     = flag.Uint64("day.seed", 0, "seed of the day of faults, 0 for a new one")
	dayHours    = flag.Int("day.hours", 0, "virtual hours of the day of faults, 0 for 24 in the long form and 5 otherwise")
	fanOutHours = flag.Int("day.fanout", 4, "virtual hours of the day of faults by fan-out")
)

// TestADayOfFaults runs three workers with many faults. By default it lasts five virtual hours, and
// 24 in the long form. Workers crash and restart. They hang for up to 40 s in the middle of a
// batch. They lose the connection to the store, or answers of the store. Sometimes the store fails
// for all workers. Kinesis throttles, fails and cuts connections. Shards are split and merged. The
// sink checks that no record is lost, that order is kept, that a shard has one owner, and that
// parents come first.
func TestADayOfFaults(t *testing.T) {
	hours := *dayHours
	switch {
	case hours > 0:
	case longform.On():
		hours = 24
	default:
		hours = 5
	}
	aDayOfFaults(t, weir.FanOutOff, hours)
}

// TestADayOfFaultsByFanOut runs the test of TestADayOfFaults with fan-out. Subscriptions also
// break, end and go silent. The test lasts four virtual hours, unless a flag sets another number.
func TestADayOfFaultsByFanOut(t *testing.T) { aDayOfFaults(t, weir.FanOutRegister, *fanOutHours) }

func aDayOfFaults(t *testing.T, reading weir.FanOutMode, hours int) {
	if testing.Short() {
		hours = min(hours, 2)
	}
	seed := *daySeed
	if seed == 0 {
		seed = rand.Uint64()
	}
	t.Logf("-day.seed=%d, %d hours", seed, hours)
	bubbleWith(t, kinesistest.Config{NoLimits: true}, 3, func(t *testing.T, srv *kinesistest.Server) {
		d := &day{t: t, srv: srv, sink: newSink(t), reading: reading, store: memstore.New(), rnd: rand.New(rand.NewPCG(seed, 1))}
		d.run(time.Duration(hours) * time.Hour)
	})
}

type day struct {
	t       *testing.T
	srv     *kinesistest.Server
	sink    *sink
	store   lease.Store
	reading weir.FanOutMode
	rnd     *rand.Rand // used only by the script; faults of single calls use the global one

	mu      sync.Mutex
	trouble float64 // fraction of the Kinesis calls that fail
	workers []*process
	counts  map[string]int
	gone    sync.WaitGroup // counts crashed workers
}

// process is one run of a worker.
type process struct {
	*faultyStore
	stop func() error
}

func (d *day) run(length time.Duration) {
	d.counts = map[string]int{}
	d.srv.Control("", d.kinesisFault)
	for range 3 {
		d.workers = append(d.workers, d.start())
	}
	end := time.Now().Add(length)
	d.learn()
	for next := 0; time.Now().Before(end); next++ {
		for range d.rnd.IntN(8) {
			key := fmt.Sprintf("key-%d", d.rnd.IntN(40))
			d.srv.Put("s", key, d.sink.next(key))
		}
		if next%20 == 0 {
			d.act()
		}
		time.Sleep(time.Duration(3+d.rnd.IntN(5)) * time.Second)
	}
	// The faults stop, and everything must be handled within a time limit.
	d.mu.Lock()
	d.trouble = 0
	d.mu.Unlock()
	for _, w := range d.workers {
		w.set(false, 0)
		w.resume()
	}
	defer d.explain()
	// Workers may have died at the same position while Kinesis failed. The next owner then handles
	// records one at a time for up to ten minutes. Otherwise five minutes are enough.
	limit := 5 * time.Minute
	took := until(d.t, "everything handled after the faults stopped", limit+10*time.Minute, func() bool {
		if limit == 5*time.Minute && d.suspects() {
			limit += 10 * time.Minute
		}
		return d.sink.missing() == 0
	})
	if took > limit {
		d.t.Errorf("everything was handled only after %v, and no record was suspected", took)
	}
	for _, w := range d.workers {
		if err := w.stop(); err != nil {
			d.t.Errorf("Run: %v", err)
		}
	}
	d.gone.Wait()
	d.sink.judge()
	d.afterwards()
	d.t.Logf("%d handled, %d of them again, %d writes of old epochs refused, %d shards; caught up %v after the faults stopped; %v",
		d.sink.handled, d.sink.again, d.sink.refused, len(d.sink.shards), took, d.counts)
	d.t.Logf("%d subscriptions, %d polls", d.srv.Requests("SubscribeToShard"), d.srv.Requests("GetRecords"))
	if subscriptions := d.srv.Requests("SubscribeToShard"); (subscriptions > 0) != (d.reading == weir.FanOutRegister) {
		d.t.Errorf("%d subscriptions, read by %s", subscriptions, d.reading)
	}
	for _, kind := range []string{"crash", "hang", "worker offline", "store outage", "lost answers", "trouble", "split", "merge"} {
		if length >= 12*time.Hour && d.counts[kind] == 0 {
			d.t.Errorf("the day had no %s: it proves less than it says", kind)
		}
	}
	if length >= 12*time.Hour && (d.sink.again == 0 || d.sink.refused == 0) {
		d.t.Error("no record was handled twice or no old write refused: the faults did not bite")
	}
}

// suspects reports whether a shard has a record that may have killed its workers.
func (d *day) suspects() bool {
	v, err := d.store.View(d.t.Context(), "app", "")
	if err != nil {
		d.t.Fatal(err)
	}
	return slices.ContainsFunc(v.Leases, func(l lease.Lease) bool {
		deaths := l.DeathsHere()
		return !l.Finished() && (deaths.Count >= 2 || !deaths.Record.IsZero()) // the default of SuspectAfter
	})
}

// explain logs, if the test has failed, the state of the application and of the workers' shards.
func (d *day) explain() {
	if !d.t.Failed() {
		return
	}
	d.t.Logf("%d records are missing; %v", d.sink.missing(), d.counts)
	v, err := d.store.View(d.t.Context(), "app", "")
	if err != nil {
		d.t.Error(err)
	}
	for _, w := range v.Workers {
		d.t.Logf("%+v", w)
	}
	for _, l := range v.Leases {
		if !l.Finished() {
			d.t.Logf("%+v", l)
		}
	}
}

// act causes one fault, or splits or merges shards.
func (d *day) act() {
	w := d.workers[d.rnd.IntN(len(d.workers))]
	lasts := time.Duration(1+d.rnd.IntN(40)) * time.Second
	switch d.rnd.IntN(10) {
	case 0:
		d.counts["crash"]++
		w.crash(&d.gone)
		time.Sleep(lasts)
		d.workers[slices.Index(d.workers, w)] = d.start()
	case 1:
		d.counts["orderly restart"]++
		if err := w.stop(); err != nil {
			d.t.Errorf("Run: %v", err)
		}
		d.workers[slices.Index(d.workers, w)] = d.start()
	case 2:
		d.counts["hang"]++
		w.suspend()
		time.Sleep(lasts)
		w.resume()
	case 3:
		d.counts["worker offline"]++
		w.set(true, 0)
		time.Sleep(lasts)
		w.set(false, 0)
	case 4:
		d.counts["store outage"]++
		for _, w := range d.workers {
			w.set(true, 0)
		}
		time.Sleep(lasts)
		for _, w := range d.workers {
			w.set(false, 0)
		}
	case 5:
		d.counts["lost answers"]++
		for _, w := range d.workers {
			w.set(false, 0.3)
		}
		time.Sleep(lasts)
		for _, w := range d.workers {
			w.set(false, 0)
		}
	case 6:
		d.counts["trouble"]++
		d.mu.Lock()
		d.trouble = d.rnd.Float64()
		d.mu.Unlock()
	case 7:
		d.mu.Lock()
		d.trouble = 0
		d.mu.Unlock()
	case 8:
		if open := d.srv.OpenShards("s"); len(open) < 8 {
			d.counts["split"]++
			d.srv.Split("s", open[d.rnd.IntN(len(open))])
			d.learn()
		}
	case 9:
		d.merge()
	}
}

// merge merges two neighbouring shards.
func (d *day) merge() {
	open := d.listed()
	open = slices.DeleteFunc(open, func(s types.Shard) bool { return s.SequenceNumberRange.EndingSequenceNumber != nil })
	if len(open) <= 2 {
		return
	}
	slices.SortFunc(open, func(a, b types.Shard) int {
		x, y := *a.HashKeyRange.StartingHashKey, *b.HashKeyRange.StartingHashKey
		if len(x) != len(y) {
			return len(x) - len(y)
		}
		return strings.Compare(x, y)
	})
	i := d.rnd.IntN(len(open) - 1)
	d.counts["merge"]++
	d.srv.Merge("s", *open[i].ShardId, *open[i+1].ShardId)
	d.learn()
}

// listed lists the shards without faults.
func (d *day) listed() []types.Shard {
	d.mu.Lock()
	trouble := d.trouble
	d.trouble = 0
	d.mu.Unlock()
	defer func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.trouble = trouble
	}()
	name := "s"
	out, err := d.srv.Client().ListShards(d.t.Context(), &kinesis.ListShardsInput{StreamName: &name})
	if err != nil {
		d.t.Fatal(err)
	}
	return out.Shards
}

// learn passes the shards and their parents to the sink.
func (d *day) learn() {
	listed := d.listed()
	here := map[string]bool{}
	for _, s := range listed {
		here[*s.ShardId] = true
	}
	for _, s := range listed {
		var parents []string
		for _, p := range []*string{s.ParentShardId, s.AdjacentParentShardId} {
			if p != nil && here[*p] {
				parents = append(parents, *p)
			}
		}
		d.sink.born(*s.ShardId, parents...)
	}
}

func (d *day) kinesisFault(call *kinesistest.Call) kinesistest.Fault {
	d.mu.Lock()
	trouble := d.trouble
	d.mu.Unlock()
	if rand.Float64() >= trouble {
		return kinesistest.Fault{}
	}
	if call.Action == "SubscribeToShard" && rand.IntN(2) == 0 {
		f := kinesistest.SubscriptionFault{Events: rand.IntN(3)}
		switch rand.IntN(5) {
		case 0:
			f.HalfOpen = true
		case 1:
			f.CutEvent = true
		case 2:
			f.End = true
		case 3:
			f.Corrupt = true
		default:
			f.Exception = &kinesistest.Error{Code: []string{"InternalFailureException", "KMSThrottlingException", "ResourceInUseException"}[rand.IntN(3)]}
		}
		return kinesistest.Fault{Subscription: f}
	}
	switch rand.IntN(6) {
	case 0:
		return kinesistest.Fault{Err: &kinesistest.Error{Code: "ProvisionedThroughputExceededException"}}
	case 1:
		return kinesistest.Fault{Err: &kinesistest.Error{Code: "InternalFailure"}}
	case 2:
		return kinesistest.Fault{Err: &kinesistest.Error{Code: "ExpiredIteratorException"}}
	case 3:
		return kinesistest.Fault{Delay: time.Duration(rand.IntN(30)) * time.Second}
	case 4:
		return kinesistest.Fault{LoseAnswer: true}
	default:
		return kinesistest.Fault{CutAfter: 1 + rand.IntN(300)}
	}
}

// start starts a worker with its own connections.
func (d *day) start() *process {
	p := &process{faultyStore: &faultyStore{Store: d.store}}
	transport := d.srv.Transport()
	client := d.srv.Client(func(o *kinesis.Options) { o.HTTPClient = &http.Client{Transport: transport} })
	p.stop = start(d.t, client, p, weir.Options{FanOut: weir.FanOut{Mode: d.reading}, ReuseBuffers: d.rnd.IntN(2) == 0, Polling: weir.Polling{IdleInterval: 10 * time.Second}, Worker: fmt.Sprintf("worker-%d", d.rnd.IntN(1000))},
		func(ctx context.Context, b *weir.Batch) error {
			defer d.sink.enter(ctx, b)()
			// The handler takes some time. While its process hangs, the handler ignores its
			// context. After the process resumes, the handler still writes, because it does not
			// know how late it is.
			select {
			case <-time.After(time.Duration(rand.IntN(5000)) * time.Millisecond):
			case <-ctx.Done():
				return context.Cause(ctx)
			}
			p.suspended()
			if p.crashed() {
				<-ctx.Done()
				return context.Cause(ctx)
			}
			if rand.IntN(50) == 0 {
				return errors.New("the database refused the write")
			}
			return d.sink.write(b)
		})
	stop := p.stop
	p.stop = func() error {
		defer transport.CloseIdleConnections()
		return stop()
	}
	return p
}

// afterwards checks the content of the store after all workers have left.
func (d *day) afterwards() {
	view, err := d.store.View(context.Background(), "app", "")
	if err != nil {
		d.t.Fatal(err)
	}
	for _, l := range view.Leases {
		// If the owner has no row, the lease was released to a worker that left at the same moment.
		// Such a lease counts as free.
		if slices.ContainsFunc(view.Workers, func(w lease.Worker) bool { return w.Session == l.Owner && !w.Ended }) {
			d.t.Errorf("%s is owned although everybody has left", l)
		}
		if !l.Finished() && d.sink.ended[l.Shard] {
			d.t.Errorf("%s was handled to its end and is not finished", l)
		}
	}
}
