package fanout

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/kinesis/types"

	"github.com/weir-go/weir/health"
	"github.com/weir-go/weir/internal/lock"
	"github.com/weir-go/weir/internal/memory"
	"github.com/weir-go/weir/internal/polling"
	"github.com/weir-go/weir/internal/retry"
	"github.com/weir-go/weir/internal/source"
	"github.com/weir-go/weir/internal/wire"
	"github.com/weir-go/weir/shard"
)

// Reader reads one shard through consecutive subscriptions of a fan-out consumer. It polls the
// shard while there is no subscription. Only one goroutine at a time may use it. It must be closed.
type Reader struct {
	// Poll configures reading, and polls the shard while there is no subscription. Its From moves
	// to the position after each delivered record.
	Poll      polling.Poll
	Consumers *Consumers
	// Share is the shard's share of the memory budget. The Reader owns it.
	Share *memory.Share
	// Changed is called with the reason when polling begins, and with nil when fan-out is used
	// again. It may be nil.
	Changed func(why error)

	sub          *subscription
	continuation string    // where the next subscription begins; "" means Poll.From
	began        time.Time // time of the last call of SubscribeToShard
	arn          string    // the consumer in that call
	backoff      retry.Backoff
	spread       spread
	failures     int       // consecutive failed subscriptions
	takeovers    int       // consecutive takeovers of subscriptions younger than steady
	refused      time.Time // since when another subscription blocks this one; zero if none does
	polling      bool
	due          time.Time     // while polling: when to try the next subscription
	rest         health.Reason // while polling: why the next read waits

	mu     lock.Mutex[lock.Reader]
	status source.Status
	live   *subscription // the subscription that Status describes
}

const (
	// answerTimeout limits a call of SubscribeToShard until its first frame.
	answerTimeout = 10 * time.Second
	// silenceTimeout is the maximum time without an event on a subscription. Kinesis sends an event
	// every few seconds, possibly an empty one. Other clients wait for 10 to 60 s.
	silenceTimeout = 30 * time.Second
	// subscribeSpacing is Kinesis' limit of one call per second for each consumer and shard.
	subscribeSpacing = time.Second
	// takeoverAfter is the age from which another call can take over a subscription. Before that,
	// Kinesis refuses such calls.
	takeoverAfter = 5 * time.Second
	// refusedFor is how long refusals are normal. The existing subscription can be taken over after
	// takeoverAfter. The wait may be needed twice, because another reader may be faster.
	refusedFor = 2 * takeoverAfter
	// steady is the age from which the takeover of a subscription does not count as a conflict.
	steady = time.Minute
	// fallbackAfter is the number of consecutive failed subscriptions after which the shard is
	// polled.
	fallbackAfter = 3
	// fallbackFor is how long a shard is polled before the next attempt to subscribe, with a jitter
	// of a tenth. An attempt interrupts polling for at most twice probeTimeout: once until the
	// answer, and once until the first event.
	fallbackFor  = time.Minute
	probeTimeout = answerTimeout
)

// ErrSubscribed is wrapped by errors if another subscription of the consumer blocks this one or
// took over. That is normal for some seconds when a shard changes owner.
var ErrSubscribed = errors.New("another subscription of this consumer to the shard")

// Next returns the next event or, while the shard is polled, the next page. Both may be empty. Next
// retries until ctx ends. It returns the same errors as [polling.Poll.Next].
func (f *Reader) Next(ctx context.Context) (source.Page, error) {
	f.trying(time.Now())
	defer f.trying(time.Time{})
	if f.backoff.High == 0 {
		f.backoff = retry.Backoff{Low: time.Second, High: 10 * time.Second}
		f.behind(-1)
		f.Poll.Listener = &muteListener{f.Poll.Listener, f}
	}
	for {
		if f.polling && f.sub == nil && time.Now().Before(f.due) {
			page, due, err := f.poll(ctx)
			if !due {
				return page, err
			}
		}
		page, err := f.event(ctx)
		if err == nil {
			return page, nil
		}
		if ctx.Err() != nil {
			return source.Page{}, context.Cause(ctx)
		}
		wait, err := f.judge(ctx, err)
		if err == nil && wait > 0 {
			f.doing(health.ReadFailed)
			err = retry.Wait(ctx, wait)
		}
		if err != nil {
			return source.Page{}, err
		}
	}
}

// Last returns an event that has already arrived, without waiting for one. While the shard is
// polled, Last reads once more. It returns an error if there is no such event, or if the last page
// was not at the tip. The caller uses Last before it hands the shard off.
func (f *Reader) Last(ctx context.Context) (source.Page, error) {
	f.mu.Lock()
	behind := f.status.Behind // of the last page that was returned
	f.mu.Unlock()
	if behind != 0 {
		return source.Page{}, errNothing
	}
	if f.sub == nil {
		if f.polling {
			m := &pageMemory{share: f.Share}
			f.Poll.UseMemory(m, f.Share.Most())
			defer m.done()
			return f.Poll.Last(ctx)
		}
		return source.Page{}, errNothing
	}
	ev, err := f.sub.waiting()
	if err != nil {
		return source.Page{}, err
	}
	return f.take(ev), nil
}

// Close ends the subscription, so that Kinesis does not refuse the next owner's subscription.
func (f *Reader) Close() {
	f.end()
	f.Share.Close()
}

// end ends the subscription if there is one.
func (f *Reader) end() {
	if f.sub != nil {
		f.follow(nil)
		f.sub.close()
		f.sub = nil
	}
}

// poll reads a page by polling. due reports that it is time to try a subscription.
func (f *Reader) poll(ctx context.Context) (page source.Page, due bool, err error) {
	until, cancel := context.WithDeadline(ctx, f.due)
	defer cancel()
	m := &pageMemory{share: f.Share}
	f.Poll.UseMemory(m, f.Share.Most())
	defer m.done()
	wait := f.Poll.DueIn()
	if wait > 0 {
		f.doing(f.waits())
	}
	if err = retry.Wait(until, wait); err == nil {
		// Wait with ctx and not with until, so that the shard keeps its place in line for memory
		// even if the next subscription is due.
		err = f.waitInLine(ctx, m)
	}
	if err == nil {
		f.doing(health.Requesting)
		page, err = f.Poll.Once(until)
	}
	if err == nil {
		f.failing(nil)
		f.behind(page.Behind)
		f.rests(page)
	}
	if err == nil && len(page.Records) > 0 {
		f.continuation = "" // the position has moved
	}
	return page, err != nil && until.Err() != nil && ctx.Err() == nil, err
}

// event subscribes if necessary and waits for the next event.
func (f *Reader) event(ctx context.Context) (source.Page, error) {
	if f.sub == nil {
		if err := f.subscribe(ctx); err != nil {
			return source.Page{}, err
		}
	}
	ev, err := f.sub.next(ctx)
	if err != nil {
		return source.Page{}, err
	}
	return f.take(ev), nil
}

func (f *Reader) subscribe(ctx context.Context) error {
	f.doing(health.Subscribing)
	at, err := f.at()
	if err != nil {
		return err
	}
	arn, err := f.Consumers.ARN(ctx, f.Poll.Stream)
	if err != nil {
		return fmt.Errorf("%w: %w", errNoARN, err)
	}
	if err := retry.Wait(ctx, time.Until(f.began.Add(subscribeSpacing))); err != nil {
		return err
	}
	over, err := f.Consumers.calls.take(ctx)
	if err != nil {
		return err
	}
	defer over()
	f.began, f.arn = time.Now(), arn
	sub, err := f.Poll.Caller.Subscribe(ctx, wire.SubscribeRequest{ConsumerARN: arn, Shard: f.Poll.Shard, At: *at, Answer: answerTimeout})
	if err != nil {
		return err
	}
	first := silenceTimeout
	if f.polling {
		first = probeTimeout
	}
	f.sub = read(sub, f.Share, f.Poll.From, first, f.began.Add(f.spread.life()))
	f.follow(f.sub)
	return nil
}

// at returns the position where the next subscription begins.
func (f *Reader) at() (*types.StartingPosition, error) {
	if f.continuation != "" {
		return &types.StartingPosition{Type: types.ShardIteratorTypeAfterSequenceNumber, SequenceNumber: aws.String(f.continuation)}, nil
	}
	f.Poll.Begin()
	at := &types.StartingPosition{}
	switch from := f.Poll.From; from.Kind() {
	case shard.Time:
		at.Type, at.Timestamp = types.ShardIteratorTypeAtTimestamp, aws.Time(from.Time())
	case shard.First:
		at.Type = types.ShardIteratorTypeTrimHorizon
	case shard.Sequence:
		at.Type, at.SequenceNumber = types.ShardIteratorTypeAfterSequenceNumber, aws.String(from.SequenceNumber())
		if from.Done() != shard.Whole || f.Poll.InDoubt() {
			at.Type = types.ShardIteratorTypeAtSequenceNumber
		}
	default:
		return nil, fmt.Errorf("%w: %q is not a position that reading can begin at", source.ErrNoPosition, from)
	}
	return at, nil
}

// take returns the page of an event. The page then counts as delivered.
func (f *Reader) take(ev *event) source.Page {
	if len(ev.wire.Records) > 0 {
		f.Poll.Resolve(&ev.wire.Records[0])
	}
	f.Poll.From, f.continuation = ev.at, ev.continuation
	f.failures, f.refused = 0, time.Time{}
	f.backoff.Reset()
	f.failing(nil)
	f.behind(ev.page.Behind)
	if f.polling {
		f.polling = false
		if f.Changed != nil {
			f.Changed(nil)
		}
	}
	return ev.page
}
