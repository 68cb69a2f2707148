package polling

import (
	"sync"
	"testing"
	"time"

	"github.com/weir-go/weir/kinesistest"
)

// A shard that is behind reserves memory for its next answer before the request. Without this, an
// answer would be abandoned and read again whenever the handler keeps pages for longer than an
// answer may wait. Each page would then take two reads.
func TestShardsThatAreBehindReadEachPageOnce(t *testing.T) {
	const (
		readers, pages = 24, 6
		limit          = 1000
		size           = 1024 // size of a record; an answer is larger than two windows
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
		if reads > 1.3 { // each shard makes one additional read at the tip
			t.Errorf("%.2f reads a page", reads)
		}
	})
}
