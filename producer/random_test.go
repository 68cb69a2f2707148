package producer

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weir-go/weir/aggregate"
	"github.com/weir-go/weir/internal/proof/longform"
	"github.com/weir-go/weir/kinesistest"
	"github.com/weir-go/weir/shard"
)

// rangesOf returns the hash ranges of all shards of the stream, also of closed ones.
func rangesOf(t *testing.T, p *Producer) map[string]shard.HashRange {
	t.Helper()
	listed, err := p.list(true)
	if err != nil {
		t.Fatal(err)
	}
	r := map[string]shard.HashRange{}
	for _, s := range listed {
		r[s.ID] = s.Range
	}
	return r
}

// history returns the records of each key that consumers receive, in the order of the stream: a
// child after its parents. Like the KCL, it omits containers with a record that does not belong in
// their shard.
func history(server *kinesistest.Server, ranges map[string]shard.HashRange) (keys map[string][]string, repeats int) {
	records := server.Records("s")
	slices.SortStableFunc(records, func(a, b kinesistest.Record) int { return strings.Compare(a.Shard, b.Shard) })
	keys = map[string][]string{}
	seen := map[string]bool{}
	take := func(key, data string) {
		if seen[data] {
			repeats++
			return
		}
		seen[data] = true
		keys[key] = append(keys[key], data)
	}
	for _, r := range records {
		var a aggregate.Aggregate
		if packed, _ := a.Parse(r.Data); !packed {
			take(r.PartitionKey, string(r.Data))
			continue
		}
		in := ranges[r.Shard]
		packed := a.Len()
		if a.Keep(aggregate.HashRange{Start: aggregate.HashKey(in.Start), End: aggregate.HashKey(in.End)}) > 0 {
			repeats += packed
			continue
		}
		for sub := range a.All() {
			take(sub.PartitionKey(), string(sub.Data()))
		}
	}
	return keys, repeats
}

// faults returns a function that makes calls of PutRecords fail in many ways until a time.
func faults(seed uint64, until time.Time) func(*kinesistest.Call) kinesistest.Fault {
	var mu sync.Mutex // guards rnd
	rnd := rand.New(rand.NewPCG(seed, 5))
	return func(c *kinesistest.Call) kinesistest.Fault {
		mu.Lock()
		defer mu.Unlock()
		f := kinesistest.Fault{Delay: time.Duration(rnd.IntN(40)) * time.Millisecond}
		if time.Now().After(until) {
			return f
		}
		switch rnd.IntN(12) {
		case 0:
			f.LoseAnswer = true
		case 1:
			f.Cut = true
		case 2:
			f.Err = &kinesistest.Error{Code: "InternalFailure"}
		case 3:
			f.Err = &kinesistest.Error{Code: "ProvisionedThroughputExceededException"}
		case 4:
			f.CutAfter = 1 + rnd.IntN(100)
		case 5:
			f.Err = &kinesistest.Error{Code: "KMSThrottlingException"}
		case 6, 7:
			refused := rnd.Uint64()
			f.PartialFailure = func(i int) string {
				return []string{"", "", "ProvisionedThroughputExceededException", "InternalFailure"}[refused>>(2*(i%32))&3]
			}
		}
		return f
	}
}

// Whole producers write to the embedded Kinesis with its limits, while calls fail and the stream is
// split and merged. Each result is right, no record is lost, and keys keep their order.
func TestProducersUnderFaults(t *testing.T) {
	seeds := uint64(6)
	if longform.On() {
		seeds = 200
	}
	for seed := range seeds {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) { underFaults(t, seed) })
	}
}

func underFaults(t *testing.T, seed uint64) {
	rnd := rand.New(rand.NewPCG(seed, 4))
	o := Options{NoAggregation: seed%3 == 1, Unordered: seed%5 == 4, MaxRecords: 200 + rnd.IntN(2000), Linger: time.Duration(1+rnd.IntN(60)) * time.Millisecond}
	inBubble(t, 1+rnd.IntN(3), o, func(t *testing.T, server *kinesistest.Server, p *Producer) {
		server.Control("PutRecords", faults(seed, time.Now().Add(15*time.Second)))
		server.Control("ListShards", func(c *kinesistest.Call) kinesistest.Fault {
			f := kinesistest.Fault{Delay: time.Duration(c.N*37%200) * time.Millisecond}
			if c.N%4 == 2 {
				f.Err = &kinesistest.Error{Code: "LimitExceededException"}
			}
			return f
		})
		done := make(chan struct{})
		go func() { // reshards
			defer close(done)
			for range 8 {
				time.Sleep(2 * time.Second)
				open := server.OpenShards("s")
				if i := rnd.IntN(len(open)); rnd.IntN(2) == 0 || len(open) == 1 {
					server.Split("s", open[i])
				} else if i+1 < len(open) {
					mergeNeighbours(t, server, p, i)
				}
			}
		}()
		keys, count := 1+rnd.IntN(40), 3000
		pending := make([]*Pending, 0, count)
		want := map[string][]string{}
		puts := rand.New(rand.NewPCG(seed, 6))
		for i := range count {
			key := fmt.Sprint("key", puts.IntN(keys))
			data := fmt.Sprintf("%06d%s", i, strings.Repeat("x", puts.IntN(300)))
			want[key] = append(want[key], data)
			pending = append(pending, put(t, p, key, data))
			if i%10 == 0 {
				time.Sleep(time.Duration(puts.IntN(100)) * time.Millisecond)
			}
		}
		<-done
		closed(t, p)
		got, repeats := history(server, rangesOf(t, lister(t, server)))
		for key, all := range want {
			have := got[key]
			if o.Unordered {
				slices.Sort(have)
			}
			if !slices.Equal(have, all) {
				t.Fatalf("consumers get %d of %d records of %s, in order: %v", len(have), len(all), key, slices.IsSorted(have))
			}
		}
		at := map[[2]string][]byte{}
		for _, r := range server.Records("s") {
			at[[2]string{r.Shard, r.SequenceNumber}] = r.Data
		}
		retried := 0
		for i, pending := range pending {
			r, err := pending.Wait(t.Context())
			if err != nil {
				t.Fatalf("record %d: %v", i, err)
			}
			data := at[[2]string{r.Shard, r.SequenceNumber}]
			var a aggregate.Aggregate
			if packed, _ := a.Parse(data); packed != r.Packed {
				t.Fatalf("record %d: %+v is packed: %v", i, r, packed)
			} else if packed {
				data = a.Record(r.SubSequenceNumber).Data()
			}
			if !strings.HasPrefix(string(data), fmt.Sprintf("%06d", i)) {
				t.Fatalf("record %d: at %+v is %.6q", i, r, data)
			}
			if r.Attempts > 1 {
				retried++
			}
		}
		c := p.Counts()
		t.Logf("%d of %d records were sent again, %d came twice: %+v", retried, count, repeats, c)
		if c.Stored != uint64(count) || c.BufferedRecords != 0 || c.BufferedBytes != 0 || c.InFlight != 0 {
			t.Errorf("%+v", c)
		}
	})
}

// mergeNeighbours merges shard number i, in the order of hash ranges, with the next shard.
func mergeNeighbours(t *testing.T, server *kinesistest.Server, p *Producer, i int) {
	listed, err := p.list(false)
	if err != nil {
		return // the listing is one that fails
	}
	m, err := newShardMap(listed)
	if err != nil || i+1 >= len(m.shards) {
		return
	}
	server.Merge("s", m.shards[i].ID, m.shards[i+1].ID)
}

// lister makes a producer that only lists.
func lister(t *testing.T, server *kinesistest.Server) *Producer {
	server.Control("ListShards", nil)
	return newProducer(t, server, Options{})
}
