package producer

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weir-go/weir/internal/proof/longform"
	"github.com/weir-go/weir/kinesistest"
)

// far delays each call of PutRecords by a round trip.
func far(server *kinesistest.Server, roundTrip time.Duration) {
	server.Control("PutRecords", func(*kinesistest.Call) kinesistest.Fault { return kinesistest.Fault{Delay: roundTrip} })
}

// keep puts records of a size until the time is over.
func keep(t *testing.T, p *Producer, seconds, size, keys int, name string) {
	data := []byte(strings.Repeat("x", size))
	for i, end := 0, time.Now().Add(time.Duration(seconds)*time.Second); time.Now().Before(end); i++ {
		ctx, cancel := context.WithDeadline(context.Background(), end)
		_, err := p.Put(ctx, Record{PartitionKey: fmt.Sprint(name, i%keys), Data: data})
		cancel()
		if err != nil && ctx.Err() == nil {
			t.Error(err)
			return
		}
	}
}

// A producer uses nearly the whole limit of a shard, in order, although each call takes a round
// trip. This holds for one key and for many, and the shard refuses nothing.
func TestOneShardAtItsLimit(t *testing.T) {
	seconds := 8
	if longform.On() {
		seconds = 120
	}
	for _, c := range []struct {
		keys, size int
		roundTrip  time.Duration
	}{{1, 1000, 20 * time.Millisecond}, {10_000, 1000, 20 * time.Millisecond}, {1, 1000, 200 * time.Millisecond}, {10, 60_000, 20 * time.Millisecond}} {
		inBubble(t, 1, Options{MaxRecords: 3000}, func(t *testing.T, server *kinesistest.Server, p *Producer) {
			far(server, c.roundTrip)
			keep(t, p, 4, c.size, c.keys, "k") // the pace finds its share
			before := p.Counts()
			stored := len(server.Records("s"))
			keep(t, p, seconds, c.size, c.keys, "k")
			after := p.Counts()
			bytes := 0
			for _, r := range server.Records("s")[stored:] {
				bytes += len(r.Data) + len(r.PartitionKey)
			}
			used := float64(bytes) / float64(seconds) / shardBytes
			t.Logf("%d keys, %d bytes, %v away: %.1f %% of 1 MiB/s in %d requests, %d records a second, %d refused",
				c.keys, c.size, c.roundTrip, 100*used, after.Requests-before.Requests, (after.Stored-before.Stored)/uint64(seconds), after.Throttled)
			if used < 0.95 || after.Throttled > 0 {
				t.Errorf("%d keys, %d bytes, %v away: %.1f %% of 1 MiB/s, %d records were refused", c.keys, c.size, c.roundTrip, 100*used, after.Throttled)
			}
			server.Control("PutRecords", nil)
			closed(t, p)
		})
	}
}

// Independent producers that share a shard get equal shares of its limit, use nearly all of it, and
// cause few refusals. The model is a shard whose bucket holds the tokens of one second.
func TestProducersShareAShard(t *testing.T) {
	const producers, seconds, container = 8, 600, 25_000
	var spread, refused float64
	seeds := 3
	if longform.On() {
		seeds = 10
	}
	for seed := range uint64(seeds) {
		rnd := rand.New(rand.NewPCG(seed, 7))
		began := time.Date(2026, 11, 26, 0, 0, 0, 0, time.UTC)
		paces := make([]pace, producers)
		free, got := make([]time.Time, producers), make([]float64, producers)
		tokens, last := float64(shardBytes), began
		answers, throttles := 0, 0
		for now := began; now.Sub(began) < seconds*time.Second; now = now.Add(tick) {
			tokens, last = min(shardBytes, tokens+now.Sub(last).Seconds()*shardBytes), now
			for _, i := range rnd.Perm(producers) {
				if now.Before(free[i]) || paces[i].wait(now, container, 1) > 0 {
					continue
				}
				answers++
				paces[i].use(container, 1)
				free[i] = now.Add(20 * time.Millisecond)
				if tokens >= container {
					tokens -= container
					got[i] += container
					continue
				}
				throttles++
				paces[i].throttled(now, now)
				free[i] = now.Add(pauseAfter(throttled, 1))
			}
		}
		total := 0.0
		for _, g := range got {
			total += g
		}
		mean := total / producers
		off := max(slices.Max(got)/mean-1, 1-slices.Min(got)/mean)
		spread += off / float64(seeds)
		refused += float64(throttles) / float64(answers) / float64(seeds)
		if used := total / seconds / shardBytes; used < 0.95 || off > 0.35 {
			t.Errorf("seed %d: %.1f %% of the shard is used, and one producer is %.0f %% off the mean", seed, 100*used, 100*off)
		}
	}
	t.Logf("one producer is up to %.0f %% off the mean, %.2f %% of the answers are refusals", 100*spread, 100*refused)
	if spread > 0.2 || refused > 0.02 {
		t.Errorf("one producer is up to %.0f %% off the mean, %.2f %% of the answers are refusals", 100*spread, 100*refused)
	}
}

// TestWholeProducersShareAShard repeats the previous test with whole producers and the embedded
// Kinesis.
func TestWholeProducersShareAShard(t *testing.T) {
	longform.Only(t)
	synctest.Test(t, func(t *testing.T) {
		const producers, seconds = 8, 300
		server := kinesistest.NewServer(t, kinesistest.Config{InMemory: true})
		server.CreateStream("s", 1)
		far(server, 20*time.Millisecond)
		var all []*Producer
		var wg sync.WaitGroup
		for i := range producers {
			p := newProducer(t, server, Options{MaxRecords: 2000})
			all = append(all, p)
			wg.Go(func() { keep(t, p, seconds, 4000, 100, fmt.Sprint(i, "-")) })
		}
		wg.Wait()
		var stored []float64
		entries, good := uint64(0), uint64(0)
		for _, p := range all {
			c := p.Counts()
			stored = append(stored, float64(c.Stored))
			entries, good = entries+c.Entries, good+c.StoredEntries
			ctx, cancel := context.WithCancel(context.Background())
			cancel()
			_ = p.Close(ctx)
		}
		total := 0.0
		for _, n := range stored {
			total += n
		}
		used := total * 4000 / seconds / shardBytes
		off := max(slices.Max(stored), 2*total/producers-slices.Min(stored))/(total/producers) - 1
		refused := 1 - float64(good)/float64(entries)
		t.Logf("%.1f %% of the shard is used, one producer is %.0f %% off the mean, %.2f %% of the answers are refusals", 100*used, 100*off, 100*refused)
		if used < 0.95 || off > 0.35 || refused > 0.02 {
			t.Errorf("%.1f %%, %.0f %%, %.2f %%", 100*used, 100*off, 100*refused)
		}
	})
}

// While a stream refuses records for a minute, the producer holds no more than its limit. Then it
// continues.
func TestMemoryWhileAStreamStandsStill(t *testing.T) {
	inBubble(t, 1, Options{MaxBytes: 16 << 20}, func(t *testing.T, server *kinesistest.Server, p *Producer) {
		still := time.Now().Add(time.Minute)
		server.Control("PutRecords", func(c *kinesistest.Call) kinesistest.Fault {
			if time.Now().Before(still) {
				return kinesistest.Fault{Err: &kinesistest.Error{Code: "InternalFailure"}}
			}
			return kinesistest.Fault{}
		})
		data := make([]byte, 10_000)
		var most runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&most)
		before := most.HeapAlloc
		for i := 0; time.Now().Before(still); i++ {
			ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
			_, _ = p.Put(ctx, Record{PartitionKey: fmt.Sprint(i), Data: data})
			cancel()
		}
		c := p.Counts()
		runtime.GC()
		runtime.ReadMemStats(&most)
		if c.BufferedBytes > 16<<20 || c.BufferedBytes < 15<<20 {
			t.Errorf("%d bytes are held", c.BufferedBytes)
		}
		if grown := float64(most.HeapAlloc) - float64(before); grown > 8<<20 { // the data are one slice
			t.Errorf("the heap grew by %.1f MiB", grown/math.Pow(2, 20))
		}
		closed(t, p)
		if c := p.Counts(); c.Failed != 0 || c.BufferedRecords != 0 {
			t.Errorf("%+v", c)
		}
	})
}

// The stream is split or merged each second. No record is lost, and consumers see the records of
// each key in order.
func TestReshardingStorm(t *testing.T) {
	count, times := 3000, 8
	if longform.On() {
		count, times = 100_000, 60
	}
	inBubble(t, 4, Options{}, func(t *testing.T, server *kinesistest.Server, p *Producer) {
		far(server, 20*time.Millisecond)
		rnd := rand.New(rand.NewPCG(1, 8))
		done := make(chan struct{})
		go func() {
			defer close(done)
			for range times {
				time.Sleep(time.Second)
				if open := server.OpenShards("s"); rnd.IntN(2) == 0 && len(open) < 12 {
					server.Split("s", open[rnd.IntN(len(open))])
				} else {
					mergeNeighbours(t, server, p, rnd.IntN(len(open)))
				}
			}
		}()
		for i := range count {
			put(t, p, fmt.Sprint("key", i%1000), fmt.Sprintf("%06d", i))
			if pause := time.Duration(times) * time.Second / time.Duration(count); i%10 == 9 {
				time.Sleep(10 * pause)
			}
		}
		<-done
		closed(t, p)
		got, repeats := history(server, rangesOf(t, lister(t, server)))
		total := 0
		for key, records := range got {
			total += len(records)
			if !slices.IsSorted(records) {
				t.Errorf("consumers get %s in the wrong order", key)
			}
		}
		c := p.Counts()
		t.Logf("%d records, %d listings, %d misplaced, %d came twice", total, c.Listings, c.Misplaced, repeats)
		if total != count || c.Failed != 0 {
			t.Errorf("consumers get %d of %d records: %+v", total, count, c)
		}
	})
}
