package polling

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/weir-go/weir/internal/source"
	"github.com/weir-go/weir/shard"
)

// Unread reports whether an ended shard has records after a position. If wanted is not nil, only
// pages for which wanted returns true count, and reading continues after the others. Unread retries
// until ctx ends, and then returns the error of the last attempt. It also returns errors that wrap
// [source.ErrNoPosition], [streams.ErrNoShard] or [streams.ErrNoStream].
func Unread(ctx context.Context, setup *source.Setup, id string, at shard.Position, wanted func(*source.Page) bool) (bool, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var last error
	once := *setup
	once.IfExpired = source.StayExpired
	limit := int32(1)
	if wanted == nil {
		wanted = func(page *source.Page) bool { return len(page.Records) > 0 }
	} else {
		limit = 1000
	}
	p := Poll{
		Setup: &once, Shard: id, From: at, Limit: limit,
		Listener: &source.ListenerFuncs{OnFailed: func(err error, _ bool, _ time.Duration) {
			if last = err; errors.Is(err, source.ErrNoPosition) {
				cancel(err)
			}
		}},
	}
	for {
		page, err := p.Next(ctx)
		if err != nil {
			if ctx.Err() != nil && last != nil {
				err = last
			}
			return false, fmt.Errorf("looking for records of shard %s after %s: %w", id, at, err)
		}
		some := wanted(&page)
		page.Release()
		if some || page.End {
			return some, nil
		}
	}
}

// UnreadIfExpired examines a position in an ended shard that Kinesis refuses. Either its record has
// expired, or it belongs to another shard. expired reports that all remaining records come after
// the position. left reports that there are remaining records. wanted and the errors are the same
// as for [Unread].
func UnreadIfExpired(
	ctx context.Context, setup *source.Setup, id string, at shard.Position, wanted func(*source.Page) bool,
) (left, expired bool, err error) {
	expired, first := true, true
	left, err = Unread(ctx, setup, id, shard.Oldest, func(page *source.Page) bool {
		if len(page.Records) == 0 {
			return false
		}
		if first {
			first = false
			expired = shard.CompareSequence(page.Records[0].SequenceNumber, at.SequenceNumber()) > 0
		}
		return !expired || wanted == nil || wanted(page)
	})
	return left, expired, err
}
