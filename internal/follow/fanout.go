package follow

import (
	"errors"
	"time"

	"github.com/weir-go/weir/internal/fanout"
	"github.com/weir-go/weir/internal/polling"
	"github.com/weir-go/weir/internal/source"
	"github.com/weir-go/weir/internal/streams"
)

// subscribe reads one shard by fan-out and delivers its pages, until the shard or ctx ends.
func (r *Stream) subscribe(s *Shard, poll polling.Poll) {
	hand := func(got Read) bool {
		got.over = make(chan struct{}) // the subscription reads the next pages in the meantime
		r.ready.tell(s, got)
		select {
		case <-got.over:
			return true
		case <-r.ctx.Done():
			return false
		}
	}
	failures := 0
	poll.Listener = &source.ListenerFuncs{OnFailed: func(err error, _ bool, _ time.Duration) {
		if failures++; failures%lasting == 0 || errors.Is(err, source.ErrNoPosition) {
			hand(Read{Err: s.failed(err)})
		}
	}}
	from := &fanout.Reader{Poll: poll, Consumers: r.Consumers, Share: r.Budget.Share(), Changed: func(why error) { r.FanOut(s.ID, why) }}
	defer from.Close()
	for {
		page, err := from.Next(r.ctx)
		switch {
		case err == nil:
		case errors.Is(err, streams.ErrNoShard):
			r.lose(s, err)
			return
		case r.ctx.Err() == nil:
			hand(Read{Err: err, Last: true})
			return
		default:
			return
		}
		failures = 0
		got := Read{Page: page, Last: r.over(page)}
		if !hand(got) {
			return
		}
		page.Release()
		if got.Last {
			return
		}
	}
}
