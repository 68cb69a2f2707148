package source

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/kinesis"

	"github.com/weir-go/weir/shard"
)

// Unread reports whether a shard that has ended has records after a position. It tries until ctx
// ends; its errors are then why it failed last, and ones that wrap [ErrNoPosition], [ErrNoShard] or
// [ErrNoStream].
func Unread(ctx context.Context, setup *Setup, id string, at shard.Position) (bool, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var last error
	once := *setup
	once.IfExpired = StayExpired
	p := Poll{
		Setup: &once, Shard: id, From: at, Limit: 1,
		Listener: &ListenerFuncs{OnFailed: func(err error, _ bool, _ time.Duration) {
			if last = err; errors.Is(err, ErrNoPosition) {
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

// FirstNumbers lists the sequence numbers at which a stream's shards begin, by ID, as far as the
// service says.
func FirstNumbers(ctx context.Context, client *kinesis.Client, s Stream) (map[string]string, error) {
	numbers := map[string]string{}
	_, err := listEach(ctx, client, s, nil, everything, func(id, first string) { numbers[id] = strings.Clone(first) })
	return numbers, err
}
