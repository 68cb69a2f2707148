package guide

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/event"
	"github.com/weir-go/weir/health"
	"github.com/weir-go/weir/kinesistest"
	"github.com/weir-go/weir/store/memstore"
	"github.com/weir-go/weir/weirtest"
)

var errNoOrder = errors.New("that is no order")

// till charges orders with two functions of your program.
type till struct {
	charge func(ctx context.Context, r weir.Record) error // returns errNoOrder for an invalid order
	reject func(ctx context.Context, r weir.Record, reason error) error
}

// bank charges orders in tests.
type bank struct {
	mu      sync.Mutex
	orders  []string                                   // that were charged, by ID
	fails   func(ctx context.Context, id string) error // nil: charging succeeds
	rejects []string
}

func (b *bank) till() *till { return &till{charge: b.charge, reject: b.reject} }

// charge returns errNoOrder for an invalid order. Other errors are temporary.
func (b *bank) charge(ctx context.Context, r weir.Record) error {
	var order struct{ ID string }
	if err := json.Unmarshal(r.Data, &order); err != nil {
		return errNoOrder
	}
	if b.fails != nil {
		if err := b.fails(ctx, order.ID); err != nil {
			return err
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.orders = append(b.orders, order.ID)
	return nil
}

func (b *bank) reject(_ context.Context, r weir.Record, reason error) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.rejects = append(b.rejects, fmt.Sprintf("%s: %v", r.Data, reason))
	return nil
}

func (b *bank) charged() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.orders)
}

// shop returns an embedded Kinesis with a stream of orders, in memory for a bubble.
func shop(t *testing.T, shards int, orders ...string) *kinesistest.Server {
	srv := kinesistest.NewServer(t, kinesistest.Config{InMemory: true})
	srv.CreateStream("orders", shards)
	for _, id := range orders {
		data := fmt.Appendf(nil, `{"ID": %q}`, id)
		if id == "???" {
			data = []byte(id)
		}
		srv.Put("orders", "customer-7", data)
	}
	return srv
}

var billing = weir.Options{Streams: []string{"orders"}, App: "billing"}

// Handle charges each order. It sets aside an order that can never be charged. After any other
// failure the remaining records are handled again.
func (t *till) Handle(ctx context.Context, b *weir.Batch) error {
	for _, r := range b.Records {
		err := t.charge(ctx, r)
		if errors.Is(err, errNoOrder) {
			err = t.reject(ctx, r, err)
		}
		if err != nil {
			return err
		}
		if err := b.Done(r); err != nil { // a failure further on does not charge it again
			return err
		}
	}
	return nil
}

func TestHandlersGoOnWhereTheyWere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := shop(t, 1, "o-1", "???", "o-2", "o-3")
		tries := 0
		bank := &bank{fails: func(_ context.Context, id string) error {
			if tries++; id == "o-2" && tries < 5 {
				return errors.New("the bank does not answer")
			}
			return nil
		}}
		worker := weirtest.Start(t, srv.Client(), memstore.New(), billing, bank.till())
		worker.Until(weirtest.AtTip(srv, "orders", worker))
		worker.Stop()
		if got := bank.charged(); !slices.Equal(got, []string{"o-1", "o-2", "o-3"}) {
			t.Errorf("charged %q", got)
		}
		if want := []string{"???: that is no order"}; !slices.Equal(bank.rejects, want) {
			t.Errorf("put aside %q", bank.rejects)
		}
		if n := worker.Consumer.Counts().HandlerFailures; n != 3 {
			t.Errorf("the handler failed %d times, want 3", n)
		}
	})
}

// byKey handles the keys of a batch concurrently, and the records of each key in order.
func byKey(handle func(context.Context, weir.Record) error) weir.HandlerFunc {
	return func(ctx context.Context, b *weir.Batch) error {
		keys := map[string][]weir.Record{}
		for _, r := range b.Records {
			keys[r.PartitionKey] = append(keys[r.PartitionKey], r)
		}
		var all sync.WaitGroup
		errs := make(chan error, len(keys))
		for _, records := range keys {
			all.Go(func() {
				for _, r := range records {
					if err := handle(ctx, r); err != nil {
						errs <- err // the batch is handled again, as a whole
						return
					}
				}
			})
		}
		all.Wait()
		close(errs)
		return <-errs // nil if there is none
	}
}

func TestKeysSideBySide(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := shop(t, 1)
		want := map[string][]string{}
		for i := range 100 {
			key := fmt.Sprintf("customer-%d", i%10)
			srv.Put("orders", key, fmt.Appendf(nil, "%03d", i))
			want[key] = append(want[key], fmt.Sprintf("%03d", i))
		}
		var mu sync.Mutex
		got := map[string][]string{}
		began := time.Now()
		worker := weirtest.Start(t, srv.Client(), memstore.New(), billing, byKey(func(_ context.Context, r weir.Record) error {
			time.Sleep(time.Second)
			mu.Lock()
			defer mu.Unlock()
			got[r.PartitionKey] = append(got[r.PartitionKey], string(r.Data))
			return nil
		}))
		worker.Until(weirtest.Handled(100, worker))
		worker.Stop()
		for key := range want {
			if !slices.Equal(got[key], want[key]) {
				t.Errorf("%s: %q", key, got[key])
			}
		}
		if took := time.Since(began); took > 20*time.Second {
			t.Errorf("100 records of a second each took %v", took)
		}
	})
}

// nightly charges orders until the record "closing time", and then stops the worker.
func (t *till) nightly(ctx context.Context, b *weir.Batch) error {
	for _, r := range b.Records {
		if string(r.Data) == "closing time" {
			if err := b.Checkpoint(ctx, r); err != nil {
				return err
			}
			return weir.Stop(nil)
		}
		if err := t.charge(ctx, r); err != nil {
			return err
		}
	}
	return nil
}

func TestStopEndsRunWithItsError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := shop(t, 1, "o-1")
		srv.Put("orders", "customer-7", []byte("closing time"))
		store := memstore.New()
		for range 2 {
			bank := &bank{}
			c, err := weir.New(srv.Client(), store, billing)
			if err != nil {
				t.Fatal(err)
			}
			if err := c.Run(t.Context(), weir.HandlerFunc(bank.till().nightly)); err != nil {
				t.Errorf("Run returned %v", err)
			}
			if len(bank.orders) != 1 {
				t.Errorf("charged %q", bank.orders)
			}
			// The second night begins after the first.
			srv.Put("orders", "customer-7", []byte(`{"ID": "o-2"}`))
			srv.Put("orders", "customer-7", []byte("closing time"))
		}
	})
}

// total counts the records of one shard, and reports them when the worker stops reading it.
type total struct {
	term  weir.Term
	count int
	tell  func(weir.Term, int, event.EndReason)
}

func (s *total) Handle(_ context.Context, b *weir.Batch) error {
	s.count += len(b.Records)
	return nil
}

func (s *total) Close(_ context.Context, why event.EndReason) { s.tell(s.term, s.count, why) }

// totals creates a handler for each shard that the worker reads.
func totals(tell func(weir.Term, int, event.EndReason)) weir.ShardHandlers {
	return weir.ShardHandlers{Open: func(_ context.Context, t weir.Term) (weir.ShardHandler, error) {
		return &total{term: t, tell: tell}, nil
	}}
}

func TestAHandlerForEachShard(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := shop(t, 1, "o-1", "o-2")
		first := srv.OpenShards("orders")[0]
		var mu sync.Mutex
		told := map[string]string{}
		c, err := weir.New(srv.Client(), memstore.New(), billing)
		if err != nil {
			t.Fatal(err)
		}
		app := weirtest.Go(t, func(ctx context.Context) error {
			return c.RunShards(ctx, totals(func(term weir.Term, count int, why event.EndReason) {
				mu.Lock()
				defer mu.Unlock()
				told[term.Shard] = fmt.Sprint(count, " ", why)
			}))
		})
		app.Until(weirtest.When("two records are handled", func() bool { return c.Counts().RecordsHandled == 2 }))
		srv.Split("orders", first)
		app.Until(weirtest.When("both children are read", func() bool { return len(c.Shards()) == 2 }))
		app.Stop()
		if len(told) != 3 || told[first] != "2 finished" {
			t.Errorf("reported %v", told)
		}
	})
}

// inParts pulls records and writes them a hundred at a time, across batches. Written records are
// done. If the worker dies, the others are delivered again.
func inParts(write func(context.Context, []weir.Record) error) weir.PullHandler {
	return weir.PullHandler{KeepsRecords: true, Pull: func(ctx context.Context, p *weir.Puller) error {
		var part []weir.Record
		for b, err := range p.Batches() {
			if err != nil {
				return err // the lease has ended, and another worker reads the shard
			}
			for _, r := range b.Records {
				if part = append(part, r); len(part) < 100 {
					continue
				}
				if err := write(ctx, part); err != nil {
					return err
				}
				if err := b.Done(r); err != nil {
					return err
				}
				part = part[:0]
			}
		}
		return write(ctx, part) // the shard has ended; returning nil marks all of it as done
	}}
}

func TestPulledPartsCrossBatches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := shop(t, 1)
		for range 250 {
			srv.Put("orders", "customer-7", []byte("x"))
		}
		options := billing
		options.Batching.MaxRecords = 30
		c, err := weir.New(srv.Client(), memstore.New(), options)
		if err != nil {
			t.Fatal(err)
		}
		var mu sync.Mutex
		var sizes []int
		app := weirtest.Go(t, func(ctx context.Context) error {
			return c.RunPull(ctx, inParts(func(_ context.Context, part []weir.Record) error {
				mu.Lock()
				defer mu.Unlock()
				if len(part) > 0 {
					sizes = append(sizes, len(part))
				}
				return nil
			}))
		})
		app.Until(weirtest.When("200 records are written", func() bool {
			mu.Lock()
			defer mu.Unlock()
			return len(sizes) == 2
		}))
		srv.Split("orders", srv.OpenShards("orders")[0])
		app.Until(weirtest.When("both children are read", func() bool { return len(c.Shards()) == 2 }))
		app.Stop()
		if !slices.Equal(sizes, []int{100, 100, 50}) {
			t.Errorf("written %v", sizes)
		}
	})
}

// patient stops when its context ends, and returns the cause.
func patient(work func(weir.Record) <-chan error) weir.RecordFunc {
	return func(ctx context.Context, r weir.Record) error {
		select {
		case err := <-work(r):
			return err
		case <-ctx.Done():
			return context.Cause(ctx) // weir.ErrLeaseLost, ErrStopping or ErrStalled
		}
	}
}

func TestAHandlerThatTakesTooLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := shop(t, 1, "o-1")
		options := billing
		options.Timing.HandlerTimeout = 10 * time.Second
		stalled := make(chan event.Stalled, 10)
		options.OnEvent = event.Join(options.OnEvent, event.On(func(_ context.Context, s event.Stalled) { stalled <- s }))
		calls := 0
		worker := weirtest.Start(t, srv.Client(), memstore.New(), options, patient(func(weir.Record) <-chan error {
			if calls++; calls == 1 {
				return nil // never
			}
			well := make(chan error, 1)
			well <- nil
			return well
		}))
		worker.Until(weirtest.Handled(1, worker))
		worker.Stop()
		if s := <-stalled; s.Reason != health.InHandler || calls != 2 {
			t.Errorf("%+v, after %d calls", s, calls)
		}
	})
}

func TestAPanicIsAFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := shop(t, 1, "o-1")
		options := billing
		failed := make(chan event.HandlerFailed, 10)
		options.OnEvent = event.Join(options.OnEvent, event.On(func(_ context.Context, f event.HandlerFailed) { failed <- f }))
		bank := &bank{}
		worker := weirtest.Start(t, srv.Client(), memstore.New(), options, weir.RecordFunc(func(ctx context.Context, r weir.Record) error {
			if len(failed) == 0 {
				panic("out of paper")
			}
			return bank.charge(ctx, r)
		}))
		worker.Until(weirtest.AtTip(srv, "orders", worker))
		worker.Stop()
		var panicked *weir.PanicError
		if f := <-failed; !errors.As(f.Err, &panicked) || panicked.Value != "out of paper" {
			t.Errorf("%+v", f)
		}
	})
}
