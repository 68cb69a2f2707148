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

// With ReuseBuffers, a batch stays intact until its handler has returned. This holds even for a
// batch from aggregates, and for a batch with only a part of an answer of GetRecords. The buffer of
// a batch is released soon after the handler has returned. The test overwrites released buffers, so
// that a later use would be visible.
func TestReusedBuffersLastAsLongAsTheHandler(t *testing.T) {
	t.Setenv("WEIR_POISON", "1")
	for _, reading := range []weir.FanOutMode{weir.FanOutOff, weir.FanOutRegister} {
		for _, wait := range []time.Duration{0, time.Second} {
			testReused(t, reading, wait)
		}
	}
}

func testReused(t *testing.T, reading weir.FanOutMode, wait time.Duration) {
	t.Run(fmt.Sprint(reading, " ", wait), func(t *testing.T) {
		bubble(t, 1, func(t *testing.T, srv *kinesistest.Server) {
			var want []string
			put := func(key string, data []byte, names ...string) {
				srv.Put("s", key, data)
				want = append(want, names...)
			}
			for range 3 {
				put("plain", []byte("p"), "p")
				put("a", packed(t, "x", 7), "x 1", "x 2", "x 3", "x 4", "x 5", "x 6", "x 7")
				put("plain", []byte("q"), "q")
				put("a", packed(t, "y", 2), "y 1", "y 2")
			}
			var mu sync.Mutex
			var got []string
			var kept [][]byte
			var keptAs []string
			opts := weir.Options{FanOut: weir.FanOut{Mode: reading}, ReuseBuffers: true, Batching: weir.Batching{MaxRecords: 3, MaxWait: wait}}
			stop := start(t, srv.Client(), memstore.New(), opts, func(_ context.Context, b *weir.Batch) error {
				time.Sleep(100 * time.Millisecond) // others could write to it in the meantime
				mu.Lock()
				defer mu.Unlock()
				for _, r := range b.Records {
					got = append(got, string(r.Data))
					kept, keptAs = append(kept, r.Data), append(keptAs, string(r.Data))
				}
				return nil
			})
			time.Sleep(10 * time.Second)
			if err := stop(); err != nil {
				t.Error(err)
			}
			if !slices.Equal(got, want) {
				t.Errorf("handled %q, want %q", got, want)
			}
			for i, data := range kept {
				if string(data) == keptAs[i] {
					t.Fatalf("record %d still says %q long after its handler has returned: it was not released", i, data)
				}
			}
		})
	})
}
