package fanout

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/weir-go/weir/internal/jitter"
	"github.com/weir-go/weir/internal/source"
	"github.com/weir-go/weir/internal/streams"
	"github.com/weir-go/weir/internal/wire"
)

// trouble classifies the end of a subscription, or the failure to get one.
type trouble int

const (
	failed trouble = iota // any other failure; it is retried
	ended                 // ended without an error, or by this side
	// refused means that another subscription exists, or that the consumer is not ready.
	refused
	taken    // another subscription took over
	missing  // the consumer, the shard or the stream is missing
	misplace // Kinesis refuses the position
	unwanted // there is no consumer or no stream, and an early retry does not help
	lost     // the stream does not exist
	crowded  // there is no memory for the events
)

// troubleOf classifies errors. answered reports whether the call had been answered with a stream.
func troubleOf(err error, answered bool) trouble {
	switch c := streams.Code(err); {
	case errors.Is(err, streams.ErrNoStream):
		return lost
	case errors.Is(err, errCrowded):
		return crowded
	case errors.Is(err, errNoARN), errors.Is(err, wire.ErrNoEvents):
		return unwanted
	case errors.Is(err, wire.ErrEnded), errors.Is(err, errRenewed), errors.Is(err, errStalled):
		return ended
	case c == "ResourceInUseException" && answered:
		return taken
	case c == "ResourceInUseException":
		return refused
	case c == "ResourceNotFoundException":
		return missing
	case c == "InvalidArgumentException", c == "ValidationException", errors.Is(err, source.ErrNoPosition):
		return misplace
	case isDenied(err) && !answered:
		return unwanted
	}
	return failed
}

// errNoARN is wrapped if the consumer could neither be found nor registered.
var errNoARN = errors.New("there is no fan-out consumer")

// judge ends the current subscription, if there is one, and decides how to continue. It returns how
// long to wait, or an error that ends reading. It may also start polling.
func (f *Reader) judge(ctx context.Context, err error) (time.Duration, error) {
	answered, served := f.sub != nil, f.sub != nil && f.sub.taken > 0
	f.end()
	if answered {
		f.spread = f.spread.after(err, time.Since(f.began))
	}
	if answered && time.Since(f.began) >= steady {
		f.takeovers = 0
	}
	what := troubleOf(err, answered)
	// The subscription ended without a failure, so subscribe again at once. If it was shorter than
	// the minimum time between two calls, subscribe waits.
	if what == ended && served {
		return 0, nil
	}
	if !f.polling { // otherwise polling continues
		f.failing(err)
	}
	switch what {
	case lost:
		return 0, err
	case refused:
		if f.refused.IsZero() {
			f.refused = time.Now()
		}
		if !f.polling && time.Since(f.refused) < refusedFor {
			wait := subscribeSpacing + jitter.N(subscribeSpacing/2)
			f.report(fmt.Errorf("%w still exists, so this call was refused: %w", ErrSubscribed, err), true, wait)
			return wait, nil
		}
		f.Consumers.Forget(ctx, f.Poll.Stream, f.arn) // the consumer may not be ACTIVE
	case taken:
		// Either another worker has the lease now and took over, which ends this reader, or another
		// program uses the consumer's name by mistake. In both cases, calls are refused for a
		// while.
		if f.takeovers++; f.takeovers < fallbackAfter && !f.polling {
			wait := takeoverAfter + jitter.N(subscribeSpacing/2)
			f.report(fmt.Errorf("%w ended this one: %w", ErrSubscribed, err), false, wait)
			return wait, nil
		}
	case missing:
		if gone := streams.Gone(ctx, f.Poll.Client, f.Poll.Stream, f.Poll.Shard); gone != nil {
			return 0, gone
		}
		f.Consumers.Forget(ctx, f.Poll.Stream, f.arn)
	case misplace:
		if f.continuation == "" && !errors.Is(err, source.ErrNoPosition) {
			err = fmt.Errorf("%w %s: %w", source.ErrNoPosition, f.Poll.From, err)
		}
		f.continuation = ""
	}
	f.failures++
	switch {
	case f.polling:
		f.due = time.Now().Add(fallbackPause())
		return 0, nil
	case what == taken, what == unwanted, what == crowded, f.failures >= fallbackAfter:
		f.fall(err)
		return 0, nil
	}
	wait := f.backoff.Next()
	f.report(err, streams.Throttled(err), wait)
	return wait, nil
}

// fall starts polling.
func (f *Reader) fall(why error) {
	f.polling, f.due = true, time.Now().Add(fallbackPause())
	f.Poll.Forget() // the position has moved since the iterator was made
	if f.Changed != nil {
		f.Changed(why)
	}
}

func fallbackPause() time.Duration { return fallbackFor - fallbackFor/10 + jitter.N(fallbackFor/5) }

func (f *Reader) report(err error, throttled bool, next time.Duration) {
	if f.Poll.Listener != nil {
		f.Poll.Listener.Failed(err, throttled, next)
	}
}
