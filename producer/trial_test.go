package producer

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weir-go/weir/aggregate"
	"github.com/weir-go/weir/internal/proof/longform"
	"github.com/weir-go/weir/kinesistest"
)

// trial is a run of producers that write to one stream while it reshards and fails. The seed sets
// options, records, faults and times. The jitter of pauses and the scheduling of goroutines still
// differ between runs of a seed.
type trial struct {
	*testing.T
	seed    uint64
	server  *kinesistest.Server
	writers []*writer
	numbers map[aggregate.Number]string // of stored records, with their data
}

// writer is a producer with the goroutines that put records. Each goroutine has its own keys.
type writer struct {
	name    string
	options Options
	p       *Producer
	closed  error // result of Close

	mu      sync.Mutex // guards the fields below
	records []*written
	calls   map[string][]*written // of callbacks, by key
}

// written is a record that was passed to Put.
type written struct {
	key, data string
	tag       string   // the value of its tag; "" if it has none
	pending   *Pending // nil if Put returned an error
	calls     int      // of its callback
	result    Result
	err       error
}

// failf reports a failure with the seed.
func (tr *trial) failf(format string, args ...any) {
	tr.Helper()
	tr.Fatalf("seed %d: "+format, append([]any{tr.seed}, args...)...)
}

// The trials have splits, merges, throttling, lost answers, refused records, slow calls, canceled
// contexts and producers that end early. Every record has one correct outcome, and keys keep their
// order.
func TestTrials(t *testing.T) {
	seeds := uint64(12)
	if longform.On() {
		seeds = 600
	}
	for seed := range seeds {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { runTrial(t, seed) })
		})
	}
}

func runTrial(t *testing.T, seed uint64) {
	rnd := rand.New(rand.NewPCG(seed, 7))
	server := kinesistest.NewServer(t, kinesistest.Config{InMemory: true})
	tr := &trial{T: t, seed: seed, server: server, numbers: map[aggregate.Number]string{}}
	tr.server.CreateStream("s", 1+rnd.IntN(4))
	until := time.Now().Add(time.Duration(rnd.IntN(60)) * time.Second)
	tr.server.Control("PutRecords", trialFaults(seed, rnd.IntN(3) == 0, until))
	tr.server.Control("ListShards", func(c *kinesistest.Call) kinesistest.Fault {
		f := kinesistest.Fault{Delay: time.Duration(c.N*37%200) * time.Millisecond}
		if time.Now().Before(until) && c.N%3 == 1 {
			f.Err = &kinesistest.Error{Code: "LimitExceededException"}
		}
		return f
	})
	for i := range 1 + rnd.IntN(3) {
		w := &writer{name: fmt.Sprint("w", i), options: trialOptions(rnd)}
		w.calls = map[string][]*written{}
		w.p = newProducer(t, tr.server, w.options)
		tr.writers = append(tr.writers, w)
	}
	var all sync.WaitGroup
	all.Go(func() { tr.reshard(rand.New(rand.NewPCG(seed, 8)), rnd.IntN(10)) })
	for i, w := range tr.writers {
		random := func(n uint64) *rand.Rand {
			return rand.New(rand.NewPCG(seed, 100*uint64(i+1)+n))
		}
		all.Go(func() {
			var puts sync.WaitGroup
			for n := range uint64(1 + random(0).IntN(3)) {
				puts.Go(func() { w.write(random(n+1), fmt.Sprint(w.name, "-", n)) })
			}
			if until := random(50); until.IntN(3) > 0 {
				puts.Wait()
			} else {
				time.Sleep(time.Duration(until.IntN(8000)) * time.Millisecond)
			}
			w.close(random(51))
			puts.Wait()
		})
	}
	all.Wait()
	tr.judge()
}

// trialOptions returns random options of a producer.
func trialOptions(rnd *rand.Rand) Options {
	o := Options{
		NoAggregation: rnd.IntN(3) == 0, Unordered: rnd.IntN(4) == 0,
		StopOnFailure: rnd.IntN(4) == 0,
		MaxRecords:    5 + rnd.IntN(800), MaxRequests: 1 + rnd.IntN(8),
		Linger: time.Duration(1+rnd.IntN(80)) * time.Millisecond,
	}
	o.Numbered = !o.NoAggregation && !o.Unordered && rnd.IntN(2) == 0
	if rnd.IntN(4) == 0 {
		o.MaxAge = time.Duration(200+rnd.IntN(9000)) * time.Millisecond
	}
	if rnd.IntN(2) == 0 {
		o.FirstShare = 0.01 + 0.99*rnd.Float64()
	}
	return o
}

// trialFaults returns faults of PutRecords: those of the function faults, and calls that take
// longer than the producer waits. If permanent is set, a few records fail for good.
func trialFaults(
	seed uint64, permanent bool, until time.Time,
) func(*kinesistest.Call) kinesistest.Fault {
	usual := faults(seed, until)
	var mu sync.Mutex // guards rnd
	rnd := rand.New(rand.NewPCG(seed, 9))
	return func(c *kinesistest.Call) kinesistest.Fault {
		f := usual(c)
		mu.Lock()
		defer mu.Unlock()
		if time.Now().After(until) {
			return f
		}
		switch n := rnd.IntN(100); {
		case n < 4:
			f = kinesistest.Fault{Delay: 20 * time.Second} // it is not carried out
		case n < 8:
			f = kinesistest.Fault{After: func() { time.Sleep(20 * time.Second) }}
		case n < 11 && permanent:
			refused := rnd.IntN(10)
			f = kinesistest.Fault{PartialFailure: func(i int) string {
				return map[bool]string{true: "KMSDisabledException"}[i == refused]
			}}
		case n < 12 && permanent:
			f.Err = &kinesistest.Error{Code: "AccessDeniedException"}
		}
		return f
	}
}

// reshard splits and merges shards a number of times.
func (tr *trial) reshard(rnd *rand.Rand, times int) {
	for range times {
		time.Sleep(time.Duration(rnd.IntN(4000)) * time.Millisecond)
		open := tr.server.OpenShards("s")
		if i := rnd.IntN(len(open)); rnd.IntN(2) == 0 || len(open) == 1 {
			tr.server.Split("s", open[i])
		} else if i+1 < len(open) {
			mergeNeighbours(tr.T, tr.server, tr.writers[0].p, i)
		}
	}
}

// write puts records with random keys that begin with a prefix. Some calls have a short context.
func (w *writer) write(rnd *rand.Rand, prefix string) {
	keys, pause := 1+rnd.IntN(20), 1+rnd.IntN(100)
	for i := range 100 + rnd.IntN(500) {
		r := &written{
			key:  fmt.Sprint(prefix, "-", rnd.IntN(keys)),
			data: fmt.Sprintf("%s-%06d|%s", prefix, i, strings.Repeat("x", rnd.IntN(400))),
		}
		record := Record{PartitionKey: r.key, Data: []byte(r.data)}
		if i%3 == 0 {
			r.tag = fmt.Sprint("tag", i)
			record.Tags = record.Tags.With("n", r.tag)
		}
		record.Done = func(result Result, err error) {
			w.mu.Lock()
			defer w.mu.Unlock()
			r.calls++
			r.result, r.err = result, err
			w.calls[r.key] = append(w.calls[r.key], r)
		}
		var pending *Pending
		var err error
		switch rnd.IntN(20) {
		case 0:
			pending, err = w.p.TryPut(record)
		case 1, 2:
			short := time.Duration(rnd.IntN(50)) * time.Millisecond
			ctx, cancel := context.WithTimeout(context.Background(), short)
			pending, err = w.p.Put(ctx, record)
			cancel()
		default:
			pending, err = w.p.Put(context.Background(), record)
		}
		w.mu.Lock()
		r.pending = pending
		w.records = append(w.records, r)
		w.mu.Unlock()
		if errors.Is(err, ErrClosed) || errors.Is(err, ErrStopped) {
			return
		}
		if rnd.IntN(5) == 0 {
			time.Sleep(time.Duration(rnd.IntN(pause)) * time.Millisecond)
		}
	}
}

// close ends the producer at once, after a while or without a limit. It may flush the producer
// first.
func (w *writer) close(rnd *rand.Rand) {
	ctx := context.Background()
	if rnd.IntN(2) == 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, time.Duration(rnd.IntN(6000))*time.Millisecond)
		defer cancel()
	}
	if rnd.IntN(3) == 0 {
		_ = w.p.Flush(ctx) // the outcomes are judged
	}
	w.closed = w.p.Close(ctx)
}
