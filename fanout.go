package weir

import (
	"context"
	"fmt"
	"slices"

	"github.com/aws/aws-sdk-go-v2/service/kinesis"

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
	// FanOut reads through a registered consumer, to which the service pushes records (enhanced
	// fan-out): 2 MiB a second from each shard for this application alone, as soon as they arrive.
	// AWS bills a consumer by the shard and hour until it is deregistered, by
	// [Options].RemoveFanOut or by `weir fanout remove`; `weir fanout list` shows what is
	// registered. A stream has 20 consumers, or 50.
	//
	// Subscriptions use separate connections, made as the client's HTTP client makes them: over
	// HTTP/2 if its transport supports that, without its timeout for whole calls, because a
	// subscription lasts five minutes, and without its limit of connections. An HTTP client that is
	// neither the SDK's nor an *http.Client is used unchanged. In addition to Options.MaxMemory, up
	// to 256 KiB of each subscription may wait in HTTP/2's buffers while its handler is busy.
	//
	// While fan-out is not available, the shard is polled, and fan-out is tried again every minute;
	// [Events].ReadingChanged reports it. The reasons are: the service refuses it, three
	// subscriptions in a row failed, or there is no memory for one message of the service.
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

// checkFanOutARNs says what is wrong with Options.FanOutARNs for the streams of the options.
func (o *Options) checkFanOutARNs(client *kinesis.Client, all []streams.Stream, bad func(format string, args ...any)) {
	if len(o.FanOutARNs) > 0 && o.Reading != FanOut {
		bad("Options.FanOutARNs %.300q are set although Options.Reading is not FanOut", o.FanOutARNs)
		return
	}
	given := map[string]string{}
	for _, arn := range o.FanOutARNs {
		of, err := streams.ParseConsumer(client, arn)
		if err != nil {
			bad("Options.FanOutARNs is wrong: %w", err)
			continue
		}
		if other, twice := given[of.Name]; twice && other != arn {
			bad("Options.FanOutARNs has two consumers of stream %s: %q and %q", of.Name, other, arn)
		}
		given[of.Name] = arn
		i := slices.IndexFunc(all, func(s streams.Stream) bool { return s.Name == of.Name })
		switch {
		case i < 0 && o.StreamsFunc == nil:
			bad("Options.FanOutARNs names %q, of a stream that is not among those to read: %s", arn, of.Name)
		case i >= 0 && all[i].ARN != "" && all[i].ARN != of.ARN:
			bad("Options.FanOutARNs names %q, which is not of the stream %s", arn, all[i].ARN)
		}
	}
}

// pages is the source of a shard's pages: a polling.Feed or a fanout.Reader. One goroutine at a
// time uses it, except for Status and Stop, which may be called at any time.
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
	return fanout.New(r.client, r.opts.FanOutName, r.opts.FanOutARNs, r.opts.Logger)
}

// checkConsumers fails if a consumer that was given by its ARN is surely of another stream: its
// shards have the same names, so that would be read in its place.
func (r *run) checkConsumers(ctx context.Context) error {
	if len(r.opts.FanOutARNs) == 0 {
		return nil
	}
	if err := r.consumers.CheckGiven(ctx, r.consumer.streams); err != nil {
		return fmt.Errorf("weir: Options.FanOutARNs names a consumer that cannot be used: %w", err)
	}
	return nil
}

// pages returns the source of l with fan-out; poll reads the same shard by polling.
func (r *run) pages(l *shardLoop, poll polling.Poll, consumers *fanout.Consumers) pages {
	return &fanout.Reader{Poll: poll, Consumers: consumers, Share: r.budget.Share(), Changed: l.readingChanged}
}

// readingChanged reports each change once, not each failure.
func (l *shardLoop) readingChanged(why error) {
	key := l.term.Lease.Key
	e := ReadingChanged{Stream: key.Stream, Shard: key.Shard, Reading: FanOut, Err: why}
	if why != nil {
		e.Reading = Polling
		l.repeated().Warn("fan-out is unavailable; weir polls, and retries fan-out every minute", "err", why)
	} else {
		l.repeated().Info("fan-out is back")
	}
	emit(l.in, l.in.opts.Events.ReadingChanged, e)
}

// removeConsumers removes the consumer from the streams of the run, which has left the application,
// unless another worker lives.
func (r *run) removeConsumers(ctx context.Context) {
	var all []streams.Stream
	for _, name := range r.streams.Names() {
		all = append(all, r.streams.Stream(name))
	}
	r.consumers.RemoveLast(ctx, all, r.living)
}

// living counts the sessions that no worker has ended.
func (r *run) living(ctx context.Context) (n int, err error) {
	v, err := r.store.View(ctx, r.opts.App, "")
	for _, w := range v.Workers {
		if !w.Ended {
			n++
		}
	}
	return n, err
}
