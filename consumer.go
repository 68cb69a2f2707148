package weir

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/service/kinesis"

	"github.com/weir-go/weir/lease"
)

// Consumer is one worker of an application.
type Consumer struct {
	client  *kinesis.Client
	store   lease.Store
	opts    Options
	streams []stream
}

// New checks everything it is given and returns a worker that [Consumer.Run] starts. It does no I/O. The error names all
// problems at once.
func New(client *kinesis.Client, store lease.Store, opts Options) (*Consumer, error) {
	checked, streams, err := opts.checked(client, store)
	if err != nil {
		return nil, err
	}
	return &Consumer{client: client, store: store, opts: checked, streams: streams}, nil
}

// Run joins the application and handles the shards that fall to this worker, until ctx ends, the handler returns
// [Stop], or something fails that no retry mends. It returns nil after an orderly stop.
func (c *Consumer) Run(ctx context.Context, h Handler) error {
	<-ctx.Done()
	return nil
}
