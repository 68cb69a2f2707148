package behaviour

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/kinesistest"
	"github.com/weir-go/weir/store/memstore"
	"github.com/weir-go/weir/weirtest"
)

// After the death of a worker, the next worker tries the records of the dead worker's batch one by
// one (a trial). A trial can end in the middle of an answer of GetRecords.
// TestATrialThatEndsInAPageHandsOverOneKeyAtATime checks that with Options.Concurrency all records
// of a batch still have the same key.
func TestATrialThatEndsInAPageHandsOverOneKeyAtATime(t *testing.T) {
	const records = 1500 // more records than are tried one by one
	bubble(t, 1, func(t *testing.T, srv *kinesistest.Server) {
		for i := range records {
			srv.Put("s", fmt.Sprint("key ", i%5), []byte(fmt.Sprint(i)))
		}
		store := memstore.New()
		opts := weir.Options{
			App: "app", Streams: []string{"s"}, Worker: "one that dies", Logger: quiet, OnFailure: weir.FailurePolicy{SuspectAfter: 1}, Concurrency: weir.Concurrency{Keys: 2, MaxCalls: 1},
		}
		begun := make(chan struct{})
		var once sync.Once
		dies := weirtest.Start(t, srv.Client(), store, opts, weir.HandlerFunc(func(ctx context.Context, _ *weir.Batch) error {
			once.Do(func() { close(begun) })
			<-ctx.Done()
			return context.Cause(ctx)
		}))
		<-begun
		dies.Kill()

		var mu sync.Mutex
		handled, mixed := 0, 0
		done := make(chan struct{})
		opts.Worker = "the next one"
		weirtest.Start(t, srv.Client(), store, opts, weir.HandlerFunc(func(_ context.Context, b *weir.Batch) error {
			mu.Lock()
			defer mu.Unlock()
			for _, r := range b.Records {
				if r.PartitionKey != b.Records[0].PartitionKey {
					mixed++
					break
				}
			}
			if handled += len(b.Records); handled == records {
				close(done)
			}
			return nil
		}))
		select {
		case <-done:
		case <-time.After(time.Hour):
			t.Error("not all records were handled")
		}
		mu.Lock()
		defer mu.Unlock()
		if mixed > 0 {
			t.Errorf("%d batches have records of several keys", mixed)
		}
	})
}
