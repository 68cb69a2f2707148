package polling

import (
	"sync"
	"testing"
	"time"

	"github.com/weir-go/weir/kinesistest"
)

// A shard that is behind takes the memory for its next answer before it asks for it, so that no
// answer is given up half-read and made again because the handler keeps what it was given for
// longer than an answer waits: without that two reads are made for each page.
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
		if reads > 1.3 { // a read at the tip is made by each, sooner or later
			t.Errorf("%.2f reads a page", reads)
		}
	})
}
