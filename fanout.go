package weir

import (
	"context"
	"fmt"

	"github.com/weir-go/weir/internal/fanout"
	"github.com/weir-go/weir/internal/polling"
	"github.com/weir-go/weir/internal/source"
	"github.com/weir-go/weir/internal/streams"
)

// Reading chooses how records come from the service.
type Reading int

const (
	// Polling asks for records. Every application that polls a stream shares its shards' five reads
	// and 2 MiB a second. The default.
	Polling Reading = iota
	// FanOut has records pushed, by a registered consumer (enhanced fan-out): 2 MiB a second from
	// each shard for this application alone, as soon as they are there. AWS bills a consumer by the
	// shard and hour until it is removed, which weir never does by itself: `weir fanout list` shows
	// what is registered and `weir fanout remove` removes it. A stream has 20 consumers, or 50.
	//
	// Subscriptions have connections of their own, made as the client's HTTP client makes them:
	// over HTTP/2 if its transport can speak that, without its timeout for whole calls, because a
	// subscription lasts five minutes, and without its limit of connections. An HTTP client that is
	// neither the SDK's nor an *http.Client is used as it is. Besides Options.MaxMemory up to 256
	// KiB of each subscription may wait in HTTP/2's buffers while its handler is busy.
	//
	// While fan-out is not available, because it is refused, three subscriptions in a row failed,
	// or there is no memory for what the service sends at a time, the shard is polled, and fan-out
	// is tried again every minute; [Events].ReadingChanged tells.
	FanOut
)

// String returns "polling" or "fan-out".
func (r Reading) String() string {
	switch r {
	case Polling:
		return "polling"
	case FanOut:
		return "fan-out"
	}
	return fmt.Sprintf("Reading(%d)", int(r))
}

// pages is what a shard is read from, a polling.Feed or a fanout.Reader. One goroutine at a time
// uses it, but for Status and Stop, which may be called at any time.
type pages interface {
	// Next returns the next page. Its errors are ctx's cause, and ones that wrap source.ErrEmpty,
	// streams.ErrNoShard or streams.ErrNoStream.
	Next(ctx context.Context) (source.Page, error)
	// Last returns what there is besides, in one try.
	Last(ctx context.Context) (source.Page, error)
	Status() source.Status
	// Stop ends what would be in the way of the shard's next owner.
	Stop()
	// Close gives back what the source holds at the service.
	Close()
}

// fanOutConsumers are those of the run, nil when it polls.
func (r *run) fanOutConsumers() *fanout.Consumers {
	if r.opts.Reading != FanOut {
		return nil
	}
	return &fanout.Consumers{
		Client: r.client, Name: r.opts.FanOutName,
		Found: func(s streams.Stream, arn string, registered bool) {
			if registered {
				r.opts.Logger.Info("fan-out consumer registered; it costs money until it is removed", "stream", s.Name, "consumer", arn)
			}
		},
	}
}

// pages is what l reads from by fan-out; poll is the same shard by polling.
func (r *run) pages(l *shardLoop, poll polling.Poll, consumers *fanout.Consumers) pages {
	return &fanout.Reader{Poll: poll, Consumers: consumers, Share: r.budget.Share(), Changed: l.readingChanged}
}

// readingChanged tells once of each change, not of each failure.
func (l *shardLoop) readingChanged(why error) {
	key := l.term.Lease.Key
	e := ReadingChanged{Stream: key.Stream, Shard: key.Shard, Reading: FanOut, Err: why}
	if why != nil {
		e.Reading = Polling
		l.in.opts.Logger.Warn("no fan-out; polling meanwhile, and trying again every minute", "stream", key.Stream, "shard", key.Shard, "err", why)
	} else {
		l.in.opts.Logger.Info("fan-out is back", "stream", key.Stream, "shard", key.Shard)
	}
	if f := l.in.tell.ReadingChanged; f != nil {
		f(e)
	}
}
