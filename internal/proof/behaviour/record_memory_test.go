package behaviour

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/kinesistest"
	"github.com/weir-go/weir/store/memstore"
)

// Without ReuseBuffers, a batch and its slice of records belong to the handler. Later batches do
// not change them. Changes by the handler affect neither other batches nor checkpoints.
func TestABatchIsTheHandlers(t *testing.T) {
	const records, size = 600, 40
	for _, c := range []struct {
		name    string
		reading weir.FanOutMode
		put     func(t *testing.T, i int) []byte
	}{
		{"plain records", weir.FanOutOff, func(_ *testing.T, i int) []byte { return fmt.Appendf(nil, "r %d", i) }},
		{"plain records by fan-out", weir.FanOutRegister, func(_ *testing.T, i int) []byte { return fmt.Appendf(nil, "r %d", i) }},
		{"aggregates among them", weir.FanOutOff, func(t *testing.T, i int) []byte {
			if i%7 == 0 {
				return packed(t, fmt.Sprint("a ", i), 3)
			}
			return fmt.Appendf(nil, "r %d", i)
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			bubble(t, 1, func(t *testing.T, srv *kinesistest.Server) {
				for i := range records {
					srv.Put("s", fmt.Sprint("key ", i), c.put(t, i))
				}
				store := memstore.New()
				var (
					mu         sync.Mutex
					kept       [][]weir.Record
					then       []string // contents of the records in kept when they were delivered
					calls, all int
				)
				say := func(r weir.Record) string {
					return fmt.Sprintf("%s %s %v %v", r.Data, r.PartitionKey, r.Position(), r.ArrivalTime().UnixMilli())
				}
				opts := weir.Options{Batching: weir.Batching{MaxRecords: size}, FanOut: weir.FanOut{Mode: c.reading}, Retry: weir.Retry{MinBackoff: time.Millisecond, MaxBackoff: time.Millisecond}}
				stop := start(t, srv.Client(), store, opts, func(_ context.Context, b *weir.Batch) error {
					mu.Lock()
					defer mu.Unlock()
					if calls++; calls%5 == 2 {
						return errors.New("once more")
					}
					kept = append(kept, b.Records)
					for _, r := range b.Records {
						then = append(then, say(r))
					}
					all += len(b.Records)
					// If the slice has spare capacity, append writes into its spare memory. This
					// memory must not belong to other records.
					_ = append(b.Records, weir.Record{}, weir.Record{})
					return nil
				})
				time.Sleep(time.Minute)
				if err := stop(); err != nil {
					t.Error(err)
				}
				i := 0
				for _, batch := range kept {
					for _, r := range batch {
						if now := say(r); now != then[i] {
							t.Fatalf("record %d was %q, is %q", i, then[i], now)
						}
						i++
					}
				}
				if all < records || len(kept) < records/size {
					t.Errorf("%d records in %d batches", all, len(kept))
				}
				// spoil is a handler that overwrites the records that it has received.
				spoil := func(_ context.Context, b *weir.Batch) error {
					mu.Lock()
					defer mu.Unlock()
					all -= len(b.Records)
					clear(b.Records)
					return nil
				}
				for _, more := range []int{5, 0} { // the second worker has nothing left to do
					stop = start(t, srv.Client(), store, weir.Options{App: "spoils", Batching: weir.Batching{MaxRecords: size}}, spoil)
					time.Sleep(time.Minute)
					for i := range more {
						srv.Put("s", fmt.Sprint("more ", i), fmt.Appendf(nil, "more %d", i))
					}
					mu.Lock()
					all += more
					mu.Unlock()
					time.Sleep(time.Minute)
					if err := stop(); err != nil {
						t.Error(err)
					}
				}
				if all != 0 {
					t.Errorf("%d records more, or less, were handled by a handler that spoils them", all)
				}
			})
		})
	}
}
