package consume

import (
	"cmp"
	"context"
	"time"

	"github.com/weir-go/weir/cmd/weir/internal/cli"
	"github.com/weir-go/weir/lambda"
	"github.com/weir-go/weir/queue"
)

// completeFunction sets the defaults of a consumer of a queue that runs a Lambda function. It
// returns an error if a call may take longer than a record can be held.
func (o *options) completeFunction(given func(flag string) bool) error {
	s, l, q := &o.settings, &o.lambda, &o.queue
	s.Batching.MaxRecords = cmp.Or(s.Batching.MaxRecords, 10) // as for a command
	l.complete(s, given)
	if l.command != "" && !given("parallel") {
		s.Concurrency.Keys = l.processes // further calls would only wait for a process
	}
	if held := cmp.Or(q.maxHold, max(time.Hour, q.hold)); l.timeout > held {
		return cli.Usagef("--lambda-timeout %v is longer than --max-hold %v, after which the queue delivers a record again: raise --max-hold, up to 12h", l.timeout, held)
	}
	return nil
}

// queueFunction returns a handler that passes the records of a queue to a Lambda function.
func (o *options) queueFunction(t cli.Terminal, region string) (handle queueHandle, closeFunction func() error) {
	invoke, closeFunction := o.function(t, region)
	return lambda.QueueHandler{
		Invoke:  func(ctx context.Context, _ []queue.Record, event []byte) ([]byte, error) { return invoke(ctx, event) },
		RoleARN: o.role(), Report: len(o.lambda.respond) > 0,
		MaxAge: time.Duration(max(o.lambda.age, 0)) * time.Second,
	}.Handle, closeFunction
}
