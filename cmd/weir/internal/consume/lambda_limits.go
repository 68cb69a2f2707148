package consume

import (
	"context"
	"fmt"
	"log/slog"
	"strconv"
	"time"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/cmd/weir/internal/cli"
	"github.com/weir-go/weir/lambda"
)

// parseRecordAge reads a number of seconds that Lambda takes for an age.
func parseRecordAge(s string) (int, error) {
	n, err := strconv.Atoi(s)
	if err == nil && n >= 0 && n < 60 {
		err = fmt.Errorf("%d is too short", n)
	}
	return n, err
}

// callsOfRetries reads a number of retries, and returns the number of calls: 0 is no limit.
func callsOfRetries(s string) (int, error) {
	n, err := strconv.Atoi(s)
	return n + 1, err
}

// megabytes is the memory size that functions see.
func (f *lambdaFlags) megabytes() int {
	if f.memory == 0 {
		return 128
	}
	return f.memory >> 20
}

// maxAge is the age at which a function does not get records any more; 0 is no bound.
func (f *lambdaFlags) maxAge() time.Duration { return time.Duration(max(f.age, 0)) * time.Second }

// byFunction has a function handle what is read, in a way to invoke it.
func (o *options) byFunction(t cli.Terminal, invoke func(context.Context, *weir.Batch, []byte) ([]byte, error), region string) (destination, error) {
	limits := &o.lambda
	h := lambda.Handler{
		Invoke: invoke, Source: o.source(region), Report: len(o.lambda.respond) > 0, MaxAge: limits.maxAge(),
		Retries: func(b *weir.Batch, err error, attempt int, pause time.Duration) {
			t.Say(slog.LevelWarn, "the function failed in a window of %s/%s (attempt %d, next in %v): %v", b.Stream, b.Shard, attempt, pause.Round(time.Millisecond), err)
		},
	}
	if limits.window == 0 {
		return handledBy(h), nil
	}
	shards, err := h.Windows(time.Duration(limits.window) * time.Second)
	to := handledBy(h)
	to.run = func(ctx context.Context, c *weir.Consumer) error { return c.RunShards(ctx, shards) }
	return to, err
}
