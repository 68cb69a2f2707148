package weir

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/weir-go/weir/internal/fanout"
	"github.com/weir-go/weir/internal/polling"
	"github.com/weir-go/weir/internal/source"
	"github.com/weir-go/weir/internal/streams"
)

// Registration says what a [Reader] does about the consumer that it reads by with [FanOut]. AWS
// bills a consumer by the shard and hour for as long as it is registered.
type Registration int

const (
	// ExistingConsumer wants it registered before; otherwise reading fails. The default.
	ExistingConsumer Registration = iota
	// TemporaryConsumer is registered if it is not there, and removed when reading ends: not one
	// that was there before. A process that is killed leaves it registered.
	TemporaryConsumer
	// KeptConsumer is registered if it is not there, and left registered.
	KeptConsumer
)

// checkFanOut returns what is wrong with the options of fan-out.
func (o *ReaderOptions) checkFanOut() error {
	switch {
	case o.Reading < Polling || o.Reading > FanOut:
		return fmt.Errorf("weir: ReaderOptions.Reading %d must be Polling or FanOut", o.Reading)
	case o.FanOutConsumer < ExistingConsumer || o.FanOutConsumer > KeptConsumer:
		return fmt.Errorf("weir: ReaderOptions.FanOutConsumer %d must be ExistingConsumer, TemporaryConsumer or KeptConsumer", o.FanOutConsumer)
	case o.Reading == Polling && (o.FanOutName != "" || o.FanOutConsumer != ExistingConsumer):
		return errors.New("weir: ReaderOptions.FanOutName or FanOutConsumer is set although ReaderOptions.Reading is not FanOut")
	case o.Reading == Polling:
	case o.FanOutName == "":
		return errors.New("weir: ReaderOptions.FanOutName is empty; fan-out is by a registered consumer, name the one to use")
	case !appForm.MatchString(o.FanOutName):
		return fmt.Errorf("weir: ReaderOptions.FanOutName %.140q must be 1 to 128 of a-z, A-Z, 0-9, _ . -", o.FanOutName)
	}
	return nil
}

// fanOut finds the consumer, or registers it. What it returns removes it, if that is asked for,
// when nobody reads any more.
func (r *reading) fanOut(ctx context.Context) (leave func(), err error) {
	r.consumers = &fanout.Consumers{
		Client: r.client, Name: r.opts.FanOutName, Existing: r.opts.FanOutConsumer == ExistingConsumer,
		Found: func(s streams.Stream, arn string, registered bool) {
			if registered {
				r.opts.Logger.Info("fan-out consumer registered; it costs money until it is removed", "stream", s.Name, "consumer", arn)
			}
		},
	}
	leave = func() {
		if r.opts.FanOutConsumer != TemporaryConsumer {
			return
		}
		// Also after ctx has ended, which is how most readers end.
		if err := r.consumers.Remove(context.WithoutCancel(ctx)); err != nil {
			r.opts.Logger.Error("a fan-out consumer was not removed and goes on costing money", "err", err)
		}
	}
	_, err = r.consumers.ARN(ctx, r.source)
	return leave, err
}

// follow reads one shard by fan-out and hands what comes over, until the shard ends or ctx does.
func (r *reading) follow(s *readShard, poll polling.Poll) {
	hand := func(got read) bool {
		got.over = make(chan struct{}) // what comes next is read meanwhile by the subscription
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
			hand(read{err: s.failed(err)})
		}
	}}
	from := &fanout.Reader{Poll: poll, Consumers: r.consumers, Share: r.budget.Share(), Changed: func(why error) { r.changed(s.ID, why) }}
	defer from.Close()
	for {
		page, err := from.Next(r.ctx)
		switch {
		case err == nil:
		case errors.Is(err, streams.ErrNoShard):
			r.lose(s, err)
			return
		case r.ctx.Err() == nil:
			hand(read{err: notFound(err), last: true})
			return
		default:
			return
		}
		failures = 0
		got := read{page: page, last: r.over(page)}
		if !hand(got) {
			return
		}
		page.Release()
		if got.last {
			return
		}
	}
}

// changed tells once of each change, not of each failure.
func (r *reading) changed(id string, why error) {
	if why != nil {
		r.opts.Logger.Warn("no fan-out; polling meanwhile, and trying again every minute", "stream", r.source.Name, "shard", id, "err", why)
	} else {
		r.opts.Logger.Info("fan-out is back", "stream", r.source.Name, "shard", id)
	}
}
