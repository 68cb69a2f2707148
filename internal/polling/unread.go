package polling

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/weir-go/weir/internal/source"
	"github.com/weir-go/weir/shard"
)

// Unread reports whether a shard that has ended has records after a position. It tries until ctx
// ends; its errors are then why it failed last, and ones that wrap [ErrNoPosition], [ErrNoShard] or
// [ErrNoStream].
func Unread(ctx context.Context, setup *source.Setup, id string, at shard.Position) (bool, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var last error
	once := *setup
	once.IfExpired = source.StayExpired
	p := Poll{
		Setup: &once, Shard: id, From: at, Limit: 1,
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
		some := len(page.Records) > 0
		page.Release()
		if some || page.End {
			return some, nil
		}
	}
}
