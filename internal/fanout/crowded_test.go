package fanout

import (
	"bytes"
	"context"
	"errors"
	"testing"
	"time"

	"github.com/weir-go/weir/internal/memory"
	"github.com/weir-go/weir/kinesistest"
)

// If other shards' handlers leave no memory for a shard's events, the shard is polled. Each poll
// requests as few records as the memory allows. Fan-out is used again when the memory is free.
func TestFanOutThatHasNoMemoryForAnEventIsPolled(t *testing.T) {
	fanOut(t, kinesistest.Config{NoLimits: true}, func(t *testing.T, p *fanned) {
		p.fan.Close()
		p.budget = memory.New(16 << 20)
		p.fan = p.reader()
		var others []*memory.Share
		for range 8 {
			others = append(others, p.budget.Share())
		}
		for _, s := range others {
			s.TryTake(1, 16<<20)
		}
		for _, s := range others[:2] { // records so large that only one fits at a time
			if err := s.Take(t.Context(), 6<<20); err != nil {
				t.Fatal(err)
			}
			time.Sleep(memory.OverKept)
		}
		const records = 24
		for range records {
			p.srv.Put("s", "k", bytes.Repeat([]byte{'x'}, 80<<10))
		}
		read := func(n int, bound time.Duration) (took time.Duration) {
			began := time.Now()
			ctx, cancel := context.WithTimeout(t.Context(), bound)
			defer cancel()
			for n > 0 {
				page, err := p.fan.Next(ctx)
				if err != nil {
					t.Fatalf("%d records are missing: %v, failures %v, changes %v", n, err, p.fails, p.modes)
				}
				n -= len(page.Records)
				page.Release()
			}
			return time.Since(began)
		}
		took := read(records, 2*memoryPatience)
		t.Logf("everything was read after %v", took)
		if len(p.modes) != 1 || !errors.Is(p.modes[0], errCrowded) {
			t.Fatalf("the changes are %v", p.modes)
		}
		for _, s := range others {
			s.Close()
		}
		for began := time.Now(); time.Since(began) < fallbackFor+fallbackFor/10+2*probeTimeout; {
			page, err := p.fan.Next(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			page.Release()
		}
		if len(p.modes) != 2 || p.modes[1] != nil {
			t.Errorf("the changes are %v, want one back", p.modes)
		}
	})
}
