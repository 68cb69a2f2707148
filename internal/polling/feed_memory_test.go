package polling

import (
	"sync"
	"testing"
	"time"

	"github.com/weir-go/weir/kinesistest"
)

// A shard that is behind takes the memory for its next answer before the request. Otherwise an
// answer would be abandoned half-read and repeated whenever the handler keeps its pages for longer
// than an answer waits, which takes two reads per page.
func TestShardsThatAreBehindReadEachPageOnce(t *testing.T) {
	const (
		readers, pages = 24, 6
		limit          = 1000
		size           = 1024 // of a record: an answer has more than two windows
		handles        = patience + patience/2
	)
	feeding(t, kinesistest.Config{NoLimits: true}, 1, 256*mib, func(s *fed) {
		s.put(0, pages*limit, size)
		s.srv.Control("GetRecords", func(*kinesistest.Call) kinesistest.Fault { return kinesistest.Fault{Delay: 20 * time.Millisecond} })
		var all sync.WaitGroup
		for range readers {
			f := s.feed(0, func(p *Poll) { p.Limit, p.Idle = limit, time.Minute })
			all.Go(func() { s.take(f, 0, pages*limit, handles) })
		}
		all.Wait()
		reads := float64(s.srv.Requests("GetRecords")) / (readers * pages)
		if reads > 1.3 { // each makes a read at the tip sooner or later
			t.Errorf("%.2f reads a page", reads)
		}
	})
}
