package kinesistest_test

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"
	"github.com/aws/aws-sdk-go-v2/service/kinesis/types"

	"github.com/weir-go/weir/kinesistest"
)

// follower reads a whole stream like a consumer. It reads a child shard after all of its parents,
// and finds child shards only through ChildShards.
type follower struct {
	r       reader
	mu      sync.Mutex
	parents map[string]map[string]bool // unfinished parents of each shard that waits for them
	begun   map[string]bool
	perKey  map[string][]int
	wg      sync.WaitGroup
	stop    chan struct{}
}

func (f *follower) begin(shard string) {
	f.begun[shard] = true
	f.wg.Go(func() { f.read(shard) })
}

func (f *follower) read(shard string) {
	it := f.r.iterator(shard, types.ShardIteratorTypeTrimHorizon)
	for {
		page := f.r.page(it, 7)
		f.mu.Lock()
		for _, rec := range page.Records {
			n, err := strconv.Atoi(string(rec.Data))
			if err != nil {
				f.r.tb.Error(err)
			}
			f.perKey[*rec.PartitionKey] = append(f.perKey[*rec.PartitionKey], n)
		}
		if page.NextShardIterator == nil {
			for _, ch := range page.ChildShards {
				waiting := f.parents[*ch.ShardId]
				if waiting == nil {
					waiting = map[string]bool{}
					for _, p := range ch.ParentShards {
						waiting[p] = true
					}
					f.parents[*ch.ShardId] = waiting
				}
				if delete(waiting, shard); len(waiting) == 0 && !f.begun[*ch.ShardId] {
					f.begin(*ch.ShardId)
				}
			}
			f.mu.Unlock()
			return
		}
		f.mu.Unlock()
		it = page.NextShardIterator
		if *page.MillisBehindLatest == 0 {
			select {
			case <-f.stop:
				return
			case <-time.After(2 * time.Second):
			}
		}
	}
}

// TestAFollowerSeesEverythingInOrder writes, splits, merges and scales for some minutes of virtual
// time while a follower reads.
func TestAFollowerSeesEverythingInOrder(t *testing.T) {
	for _, emptyPage := range []bool{false, true} {
		t.Run(fmt.Sprintf("EndOnEmptyPage %v", emptyPage), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, c := start(t, kinesistest.Config{InMemory: true, NoLimits: true, EndOnEmptyPage: emptyPage, StateDelay: 700 * time.Millisecond})
				s.CreateStream("s", 3)
				f := &follower{
					r: reader{t, t.Context(), c, "s"}, stop: make(chan struct{}),
					parents: map[string]map[string]bool{}, begun: map[string]bool{}, perKey: map[string][]int{},
				}
				f.mu.Lock()
				for _, shard := range s.OpenShards("s") {
					f.begin(shard)
				}
				f.mu.Unlock()
				rng := rand.New(rand.NewPCG(7, 8))
				const puts, keys = 800, 40
				for i := range puts {
					ok[*kinesis.PutRecordOutput](t)(c.PutRecord(t.Context(), &kinesis.PutRecordInput{
						StreamName: aws.String("s"), PartitionKey: aws.String(fmt.Sprint(i % keys)), Data: strconv.AppendInt(nil, int64(i), 10),
					}))
					time.Sleep(time.Duration(rng.IntN(200)) * time.Millisecond)
					if i%40 != 39 {
						continue
					}
					open := s.OpenShards("s")
					switch at := rng.IntN(len(open)); {
					case i%120 == 119:
						s.Scale("s", min(max(1, len(open)*(1+rng.IntN(2))-rng.IntN(2)), 12))
					case at+1 < len(open) && rng.IntN(2) == 0:
						s.Merge("s", open[at+1], open[at])
					default:
						s.Split("s", open[at])
					}
				}
				time.Sleep(10 * time.Second)
				close(f.stop)
				f.wg.Wait()
				n := 0
				for key, seen := range f.perKey {
					n += len(seen)
					for i := range seen {
						if want := i * keys; seen[i]%keys != seen[0]%keys || seen[i]/keys != want/keys {
							t.Fatalf("key %s: number %d is %d", key, i, seen[i])
						}
					}
				}
				if n != puts || len(f.begun) < 20 {
					t.Errorf("read %d of %d records from %d shards", n, puts, len(f.begun))
				}
			})
		})
	}
}
