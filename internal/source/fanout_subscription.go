package source

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"
	"github.com/aws/aws-sdk-go-v2/service/kinesis/types"

	"github.com/weir-go/weir/shard"
)

var (
	// errEnded is the end of a subscription without a word: its five minutes, or a connection that was cut, which the SDK does
	// not tell apart over HTTP/1.1.
	errEnded = errors.New("the subscription ended")
	// errSilent is a subscription on which nothing has come for too long.
	errSilent = errors.New("the subscription is silent")
	// errNoAnswer is a call that was not answered with the first frame of a stream in time.
	errNoAnswer = errors.New("the subscription was not answered")
	// errBroken is an event that cannot be.
	errBroken = errors.New("the service sent a broken event")
)

// subscription is one event stream, from the answer to SubscribeToShard until close. It has no deadline of its own but its context,
// which ends by close alone.
type subscription struct {
	cancel context.CancelCauseFunc
	stream *kinesis.SubscribeToShardEventStream
	events int // that were good
}

// subscribe makes a subscription. It fails with ctx's cause, and with errNoAnswer when the first frame is not there in time:
// the SDK would wait for it for ever.
func subscribe(ctx context.Context, client *kinesis.Client, in *kinesis.SubscribeToShardInput, bound time.Duration) (*subscription, error) {
	// The context of the call is that of the whole stream, so it must outlast ctx, which may be a deadline for the call.
	life, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	timer := time.AfterFunc(bound, func() { cancel(errNoAnswer) })
	unlink := context.AfterFunc(ctx, func() { cancel(context.Cause(ctx)) })
	// A client of its own: the SDK decodes all event streams of one client with the same unguarded buffer.
	out, err := kinesis.New(client.Options()).SubscribeToShard(life, in, once)
	timely := timer.Stop()
	linked := unlink()
	switch {
	case err == nil && timely && linked:
		return &subscription{cancel: cancel, stream: out.GetStream()}, nil
	case err == nil: // the answer came in the very moment that its time was over
		sub := &subscription{cancel: cancel, stream: out.GetStream()}
		sub.close()
		return nil, context.Cause(life)
	}
	if cause := context.Cause(life); cause != nil {
		err = cause
	}
	cancel(nil)
	return nil, err
}

// next waits for an event, silence long at most. It fails with ctx's cause, errSilent, errEnded, or what the service said.
func (s *subscription) next(ctx context.Context, silence time.Duration) (*types.SubscribeToShardEvent, error) {
	timer := time.NewTimer(silence)
	defer timer.Stop()
	for {
		select {
		case ev, more := <-s.stream.Events():
			if !more {
				return nil, s.over()
			}
			if ev, known := ev.(*types.SubscribeToShardEventStreamMemberSubscribeToShardEvent); known {
				return &ev.Value, nil
			} // else one that this version does not know, which is no sign that records still come
		case <-timer.C:
			return nil, fmt.Errorf("%w for %v", errSilent, silence)
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// waiting returns an event if one has come already.
func (s *subscription) waiting() (*types.SubscribeToShardEvent, error) {
	select {
	case ev, more := <-s.stream.Events():
		if !more {
			return nil, s.over()
		}
		if ev, known := ev.(*types.SubscribeToShardEventStreamMemberSubscribeToShardEvent); known {
			return &ev.Value, nil
		}
	default:
	}
	return nil, errSilent
}

func (s *subscription) over() error {
	if err := s.stream.Err(); err != nil {
		return err
	}
	return errEnded
}

// closeTimeout bounds the wait for the SDK's goroutine, which an HTTP client of the user's own could hold up.
const closeTimeout = 5 * time.Second

// close ends the stream and waits for the goroutine that reads it.
func (s *subscription) close() {
	s.cancel(nil)
	_ = s.stream.Close() // whatever it ended with, it has
	timer := time.NewTimer(closeTimeout)
	defer timer.Stop()
	for {
		select {
		case _, more := <-s.stream.Events():
			if !more {
				return
			}
		case <-timer.C:
			return
		}
	}
}

// pageOf makes a page of an event, and says where to go on. The records of it at from or before are left out. The end of a shard is no
// continuation together with children; one without the other is a broken event.
func pageOf(ev *types.SubscribeToShardEvent, from shard.Position) (page Page, at shard.Position, continuation string, err error) {
	page, at = Page{Behind: -1}, from
	if ms := ev.MillisBehindLatest; ms != nil && *ms >= 0 {
		page.Behind = time.Duration(min(*ms, maxMillis)) * time.Millisecond
	}
	page.Records = make([]Record, 0, len(ev.Records))
	for i := range ev.Records {
		r := &ev.Records[i]
		next, err := shard.After(aws.ToString(r.SequenceNumber))
		if err != nil {
			return Page{}, from, "", fmt.Errorf("%w: a record that cannot be placed: %w", errBroken, err)
		}
		if next.Compare(from) <= 0 {
			continue
		}
		if next.Compare(at) <= 0 {
			return Page{}, from, "", fmt.Errorf("%w: record %s after %s", errBroken, next, at)
		}
		at = next
		rec := Record{
			Data: r.Data, Key: aws.ToString(r.PartitionKey), SequenceNumber: *r.SequenceNumber,
			Encrypted: r.EncryptionType == types.EncryptionTypeKms,
		}
		if r.ApproximateArrivalTimestamp != nil {
			rec.Arrival = r.ApproximateArrivalTimestamp.UnixMilli()
		}
		page.Records = append(page.Records, rec)
		page.Bytes += len(rec.Data) + len(rec.Key)
	}
	continuation = aws.ToString(ev.ContinuationSequenceNumber)
	switch ends := len(ev.ChildShards) > 0; {
	case ends && continuation == "":
		if page.Children, err = children(ev.ChildShards); err != nil {
			return Page{}, from, "", fmt.Errorf("%w: %w", errBroken, err)
		}
		page.End = true
	case ends:
		return Page{}, from, "", fmt.Errorf("%w: children of the shard, and a continuation", errBroken)
	case continuation == "":
		return Page{}, from, "", fmt.Errorf("%w: no continuation and no children", errBroken)
	default:
		if _, err := shard.After(continuation); err != nil {
			return Page{}, from, "", fmt.Errorf("%w: continuation: %w", errBroken, err)
		}
	}
	return page, at, continuation, nil
}

// maxMillis is a hundred years: no answer that can be true is more, and it fits a Duration.
const maxMillis = 100 * 366 * 24 * 3600 * 1000
