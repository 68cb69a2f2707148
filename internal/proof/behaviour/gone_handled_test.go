package behaviour

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/kinesistest"
	"github.com/weir-go/weir/store/memstore"
)

// A shard leaves the stream while records of it are being handled. All records that were read are
// handled, before those of the children.
func TestRecordsOfAShardThatIsGoneAreHandledFirst(t *testing.T) {
	var mu sync.Mutex
	var got []string // keys
	handle := func(records ...weir.Record) {
		for _, r := range records {
			if r.PartitionKey != "child" {
				time.Sleep(5 * time.Minute)
			}
			mu.Lock()
			got = append(got, r.PartitionKey)
			mu.Unlock()
		}
	}
	for name, run := range map[string]func(t *testing.T, srv *kinesistest.Server) (stop func() error){
		"keys in parallel": func(t *testing.T, srv *kinesistest.Server) func() error {
			opts := weir.Options{Concurrency: weir.Concurrency{Keys: 2}, Polling: weir.Polling{IdleInterval: 10 * time.Second}}
			return start(t, srv.Client(), memstore.New(), opts, func(_ context.Context, b *weir.Batch) error {
				handle(b.Records...)
				return nil
			})
		},
		"pulled, handled at the end": func(t *testing.T, srv *kinesistest.Server) func() error {
			opts := weir.Options{Polling: weir.Polling{IdleInterval: 10 * time.Second}, Timing: weir.Timing{StallAfter: 12 * time.Hour}}
			return startPull(t, srv, memstore.New(), opts, weir.PullHandler{KeepsRecords: true, Pull: func(_ context.Context, p *weir.Puller) error {
				var all []weir.Record
				for b, err := range p.Batches() {
					if err != nil {
						return err
					}
					if all = append(all, b.Records...); len(all) > 0 && all[0].PartitionKey == "child" {
						handle(all...)
						all = nil
					}
				}
				handle(all...)
				return nil
			}})
		},
	} {
		t.Run(name, func(t *testing.T) {
			bubbleWith(t, kinesistest.Config{NoLimits: true}, 1, func(t *testing.T, srv *kinesistest.Server) {
				got = nil
				large := make([]byte, 900_000) // one answer does not have all of them
				for i := range 24 {
					srv.Put("s", fmt.Sprintf("key %02d", i), large)
				}
				srv.Split("s", srv.OpenShards("s")[0])
				time.Sleep(23*time.Hour + 58*time.Minute)
				srv.Put("s", "child", []byte("child"))
				began := time.Now()
				srv.Control("GetRecords", func(c *kinesistest.Call) (f kinesistest.Fault) {
					if c.N > 2 && time.Since(began) < 3*time.Minute { // until the shard has left the stream
						f.Err = &kinesistest.Error{Code: "InternalFailure"}
					}
					return f
				})
				stop := run(t, srv)
				time.Sleep(2 * time.Hour)
				if err := stop(); err != nil {
					t.Error(err)
				}
				if n := len(got); n < 5 || n > 24 || got[n-1] != "child" {
					t.Fatalf("handled %q", got)
				}
				read := got[:len(got)-1]
				slices.Sort(read)
				for i, key := range read {
					if want := fmt.Sprintf("key %02d", i); key != want {
						t.Errorf("handled %s as the record %d, want %s", key, i, want)
					}
				}
			})
		})
	}
}
