package behaviour

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/aggregate"
	"github.com/weir-go/weir/event"
	"github.com/weir-go/weir/kinesistest"
	"github.com/weir-go/weir/store/memstore"
)

// packed returns an aggregate of n records, from "name 1" to "name n".
func packed(t *testing.T, name string, n int) []byte {
	t.Helper()
	var b aggregate.Builder
	for i := range n {
		if err := b.Add(fmt.Sprintf("key-%d", i), "", fmt.Appendf(nil, "%s %d", name, i+1)); err != nil {
			t.Fatal(err)
		}
	}
	return b.AppendContainer(nil)
}

// packedOf returns an aggregate of the given payloads.
func packedOf(t *testing.T, payloads ...[]byte) []byte {
	t.Helper()
	var b aggregate.Builder
	for i, data := range payloads {
		if err := b.Add(fmt.Sprint("key-", i), "", data); err != nil {
			t.Fatal(err)
		}
	}
	return b.AppendContainer(nil)
}

// handled runs a worker until it has handled all records, and returns their data.
func handled(t *testing.T, srv *kinesistest.Server, store *memstore.Store, opts weir.Options) []string {
	t.Helper()
	var (
		mu  sync.Mutex
		got []string
	)
	stop := start(t, srv.Client(), store, opts, func(_ context.Context, b *weir.Batch) error {
		mu.Lock()
		defer mu.Unlock()
		if opts.Batching.MaxRecords > 0 && len(b.Records) > opts.Batching.MaxRecords {
			t.Errorf("a batch has %d records, Batch is %d", len(b.Records), opts.Batching.MaxRecords)
		}
		for _, r := range b.Records {
			got = append(got, string(r.Data))
		}
		return nil
	})
	time.Sleep(20 * time.Second)
	if err := stop(); err != nil {
		t.Error(err)
	}
	return got
}

func TestAggregatesAreUnpackedInOrder(t *testing.T) {
	bubble(t, 1, func(t *testing.T, srv *kinesistest.Server) {
		srv.Put("s", "plain", []byte("first"))
		srv.Put("s", "a", packed(t, "x", 5))
		srv.Put("s", "a", packed(t, "y", 3))
		damaged := packed(t, "z", 3)
		damaged[10]++
		srv.Put("s", "a", damaged)
		srv.Put("s", "plain", []byte("last"))
		var counts event.Unpacked
		opts := weir.Options{Batching: weir.Batching{MaxRecords: 4}, OnEvent: event.On(func(_ context.Context, u event.Unpacked) {
			counts.Aggregates += u.Aggregates
			counts.Records += u.Records
			counts.Damaged += u.Damaged
		})}
		got := handled(t, srv, memstore.New(), opts)
		want := []string{"first", "x 1", "x 2", "x 3", "x 4", "x 5", "y 1", "y 2", "y 3", string(damaged), "last"}
		if !slices.Equal(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
		if counts != (event.Unpacked{Aggregates: 2, Records: 8, Damaged: 1}) {
			t.Errorf("counted %+v", counts)
		}
		if got := handled(t, srv, memstore.New(), weir.Options{Aggregates: weir.KeepPacked}); len(got) != 5 {
			t.Errorf("kept packed: %d records, want 5", len(got))
		}
	})
}

// If a worker stops at any record inside an aggregate, the next worker continues with the record
// after it.
func TestACheckpointInsideAnAggregate(t *testing.T) {
	for stopAt := 1; stopAt <= 7; stopAt++ {
		bubble(t, 1, func(t *testing.T, srv *kinesistest.Server) {
			srv.Put("s", "a", packed(t, "x", 4))
			srv.Put("s", "a", packed(t, "y", 3))
			store := memstore.New()
			c, err := weir.New(srv.Client(), store, weir.Options{App: "app", Streams: []string{"s"}, Logger: quiet})
			if err != nil {
				t.Fatal(err)
			}
			crash := errors.New("crash")
			var got []string
			if err := c.Run(t.Context(), weir.HandlerFunc(func(ctx context.Context, b *weir.Batch) error {
				for _, r := range b.Records[:stopAt] {
					got = append(got, string(r.Data))
				}
				if err := b.Checkpoint(ctx, b.Records[stopAt-1]); err != nil {
					t.Error(err)
				}
				return weir.Stop(crash)
			})); !errors.Is(err, crash) {
				t.Error(err)
			}
			got = append(got, handled(t, srv, store, weir.Options{})...)
			if s := strings.Join(got, ", "); s != "x 1, x 2, x 3, x 4, y 1, y 2, y 3" {
				t.Errorf("stopped after %d: handled %s", stopAt, s)
			}
		})
	}
}

func TestStraysOfASplitAreDroppedWhenAskedFor(t *testing.T) {
	bubble(t, 2, func(t *testing.T, srv *kinesistest.Server) {
		srv.Put("s", "a", packed(t, "x", 40)) // one container has keys of both shards
		dropped := 0
		opts := weir.Options{App: "own", Aggregates: weir.UnpackOwn, OnEvent: event.On(func(_ context.Context, u event.Unpacked) { dropped += u.Dropped })}
		got := handled(t, srv, memstore.New(), opts)
		if len(got) == 0 || len(got)+dropped != 40 || dropped == 0 {
			t.Errorf("%d handled, %d dropped of 40", len(got), dropped)
		}
		if got := handled(t, srv, memstore.New(), weir.Options{}); len(got) != 40 {
			t.Errorf("by default %d of 40 are handled", len(got))
		}
	})
}

func TestReaderUnpacks(t *testing.T) {
	bubble(t, 1, func(t *testing.T, srv *kinesistest.Server) {
		srv.Put("s", "a", packed(t, "x", 3))
		r, err := weir.NewReader(srv.Client(), weir.ReaderOptions{Stream: "s", UntilTip: true})
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for rec, err := range r.Records(t.Context()) {
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, rec.PartitionKey+"="+string(rec.Data))
		}
		if !slices.Equal(got, []string{"key-0=x 1", "key-1=x 2", "key-2=x 3"}) {
			t.Errorf("got %q", got)
		}
	})
}
