package source

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weir-go/weir/kinesistest"
)

func TestManyShardsThatAreBehindReadWhatTheyHaveMemoryFor(t *testing.T) {
	const (
		readers = 24
		records = 6000
		size    = 1024
	)
	for name, memory := range map[string]int{"plenty": 256 * mib, "enough for a few at a time": 8 * mib} {
		t.Run(name, func(t *testing.T) {
			feeding(t, kinesistest.Config{NoLimits: true}, 1, memory, func(s *fed) {
				s.put(0, records, size)
				s.srv.Control("GetRecords", func(*kinesistest.Call) kinesistest.Fault {
					return kinesistest.Fault{Delay: 20 * time.Millisecond}
				})
				before := s.got.Load()
				var all sync.WaitGroup
				for range readers {
					f := s.feed(0, func(p *Poll) { p.Limit = 1000 })
					all.Go(func() { s.take(f, 0, records, 100*time.Millisecond) })
				}
				all.Wait()
				synctest.Wait()
				got := float64(s.got.Load() - before)
				times := got / (readers * records * size)
				if times < 1 || times > 1.35 { // with sequence numbers, keys and heads
					t.Errorf("what there is was received %.2f times", times)
				}
			})
		})
	}
}
