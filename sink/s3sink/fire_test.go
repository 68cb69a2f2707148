package s3sink_test

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/internal/proof/fakes3"
	"github.com/weir-go/weir/internal/proof/longform"
	"github.com/weir-go/weir/kinesistest"
	"github.com/weir-go/weir/sink/s3sink"
	"github.com/weir-go/weir/store/memstore"
)

// trouble makes one in six calls to a bucket fail, in different ways. Some other calls take long.
func trouble(bucket *fakes3.Server, seed uint64) {
	var mu sync.Mutex
	random := rand.New(rand.NewPCG(seed, 1))
	bucket.Control(func(fakes3.Call) fakes3.Fault {
		mu.Lock()
		n, slow := random.IntN(24), time.Duration(random.IntN(3000))*time.Millisecond
		mu.Unlock()
		switch n {
		case 0:
			return fakes3.Refuse
		case 1:
			return fakes3.Cut
		case 2, 3:
			return fakes3.Lose
		case 4, 5:
			time.Sleep(slow) // simulates a writer that was paused
		}
		return fakes3.None
	})
}

// underFire makes several applications write the same chain at the same time. This is a harder test
// than any late owner of one application. Each application reads all records, with its own batches
// and object sizes. Owners change, shards are split, and calls fail.
func underFire(t *testing.T, srv *kinesistest.Server, bucket *fakes3.Server, seed uint64) *s3sink.Sink {
	random := rand.New(rand.NewPCG(seed, 2))
	trouble(bucket, seed)
	var stops []func()
	var last *s3sink.Sink
	for w := range 4 {
		last = sink(t, bucket, s3sink.Options{
			MaxBytes: 50 + random.IntN(400), MaxAge: time.Duration(1+random.IntN(20)) * time.Second, Plain: w == 2,
			Partition: s3sink.Partition(w % 2), Lines: s3sink.Payloads,
		})
		last.Trust()
		store := memstore.New()
		for range 1 + random.IntN(2) { // workers of the application
			stops = append(stops, start(t, srv, store, last.PullHandler(), func(o *weir.Options) {
				o.App, o.Batching.MaxRecords = fmt.Sprint("app-", w), 1+random.IntN(20)
			}))
		}
	}
	for i := range 400 {
		put(srv, 3*i, 3*i+2)
		time.Sleep(time.Duration(random.IntN(500)) * time.Millisecond)
		switch i {
		case 100:
			srv.Split("s", srv.OpenShards("s")[0])
		case 200:
			stops[0]()
			stops = stops[1:]
		case 300:
			srv.Merge("s", srv.OpenShards("s")[0], srv.OpenShards("s")[1])
		}
	}
	time.Sleep(5 * time.Minute)
	for _, stop := range stops {
		stop()
	}
	bucket.Control(nil)
	return last
}

func TestSeveralWritersUnderFire(t *testing.T) {
	seeds := uint64(2)
	if longform.On() {
		seeds = 6
	}
	for seed := range seeds {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			bubble(t, 2, func(t *testing.T, srv *kinesistest.Server, bucket *fakes3.Server) {
				s := underFire(t, srv, bucket, seed)
				check(t, s, bucket, inStream(srv))
				objects, _ := chains(t, s)
				t.Logf("%d objects, %d writes", len(objects), bucket.Calls("PUT"))
			})
		})
	}
}

// If the bucket ignores conditions, the same test must fail. This shows that the condition makes
// the place of a record unique.
func TestWithoutConditionsTheSameFails(t *testing.T) {
	bubble(t, 2, func(t *testing.T, srv *kinesistest.Server, bucket *fakes3.Server) {
		bucket.IgnoreConditions = true
		s := underFire(t, srv, bucket, 1)
		times := map[string]int{}
		for _, key := range bucket.Keys() {
			if isObject(key) {
				for _, line := range content(t, s, s3sink.Object{Key: key}) {
					times[line]++
				}
			}
		}
		twice := 0
		for _, r := range srv.Records("s") {
			if times[string(r.Data)] != 1 {
				twice++
			}
		}
		if twice == 0 {
			t.Error("several writers did no harm: the test proves nothing")
		}
		t.Logf("%d of %d records are not in one object", twice, len(srv.Records("s")))
	})
}
