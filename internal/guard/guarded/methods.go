package guarded

import (
	"context"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/service/kinesis"

	"github.com/weir-go/weir/internal/wire"
)

// methods calls the methods of a client that is not a *kinesis.Client. It embeds nothing, so that a
// new method of [wire.Kinesis] cannot bypass it.
type methods struct {
	to       wire.Kinesis
	panicked Panicked
}

var _ wire.Kinesis = methods{}

// Unwrap returns the user's client, for messages that contain its type.
func (g methods) Unwrap() any { return g.to }

// Options returns the options of the user's client. It returns empty options if the client has no
// method Options, or if that method panics, as with an embedded *kinesis.Client that is nil.
func (g methods) Options() (o kinesis.Options) {
	if of, ok := g.to.(interface{ Options() kinesis.Options }); ok {
		_ = g.panicked.call("the client's Options", func() error { o = of.Options(); return nil })
	}
	return o
}

type (
	// method is one method of a client.
	method[In, Out any] func(context.Context, *In, ...func(*kinesis.Options)) (*Out, error)
	options             = []func(*kinesis.Options)
)

// call calls a method of the user's client. If the method returns neither an output nor an error,
// call returns an error.
func call[In, Out any](ctx context.Context, g methods, name string, f method[In, Out], in *In, opts options) (out *Out, err error) {
	name = "the client's " + name
	err = g.panicked.call(name, func() (err error) { out, err = f(ctx, in, opts...); return err })
	switch {
	case err != nil:
		return nil, err
	case out == nil:
		return nil, fmt.Errorf("weir: %s returned neither an output nor an error", name)
	}
	return out, nil
}

// DescribeStreamSummary implements [wire.Kinesis].
func (g methods) DescribeStreamSummary(ctx context.Context, in *kinesis.DescribeStreamSummaryInput, opts ...func(*kinesis.Options)) (*kinesis.DescribeStreamSummaryOutput, error) {
	return call(ctx, g, "DescribeStreamSummary", g.to.DescribeStreamSummary, in, opts)
}

// ListShards implements [wire.Kinesis].
func (g methods) ListShards(ctx context.Context, in *kinesis.ListShardsInput, opts ...func(*kinesis.Options)) (*kinesis.ListShardsOutput, error) {
	return call(ctx, g, "ListShards", g.to.ListShards, in, opts)
}

// GetShardIterator implements [wire.Kinesis].
func (g methods) GetShardIterator(ctx context.Context, in *kinesis.GetShardIteratorInput, opts ...func(*kinesis.Options)) (*kinesis.GetShardIteratorOutput, error) {
	return call(ctx, g, "GetShardIterator", g.to.GetShardIterator, in, opts)
}

// GetRecords implements [wire.Kinesis].
func (g methods) GetRecords(ctx context.Context, in *kinesis.GetRecordsInput, opts ...func(*kinesis.Options)) (*kinesis.GetRecordsOutput, error) {
	return call(ctx, g, "GetRecords", g.to.GetRecords, in, opts)
}

// SubscribeToShard implements [wire.Kinesis].
func (g methods) SubscribeToShard(ctx context.Context, in *kinesis.SubscribeToShardInput, opts ...func(*kinesis.Options)) (*kinesis.SubscribeToShardOutput, error) {
	return call(ctx, g, "SubscribeToShard", g.to.SubscribeToShard, in, opts)
}

// DescribeStreamConsumer implements [wire.Kinesis].
func (g methods) DescribeStreamConsumer(ctx context.Context, in *kinesis.DescribeStreamConsumerInput, opts ...func(*kinesis.Options)) (*kinesis.DescribeStreamConsumerOutput, error) {
	return call(ctx, g, "DescribeStreamConsumer", g.to.DescribeStreamConsumer, in, opts)
}

// RegisterStreamConsumer implements [wire.Kinesis].
func (g methods) RegisterStreamConsumer(ctx context.Context, in *kinesis.RegisterStreamConsumerInput, opts ...func(*kinesis.Options)) (*kinesis.RegisterStreamConsumerOutput, error) {
	return call(ctx, g, "RegisterStreamConsumer", g.to.RegisterStreamConsumer, in, opts)
}

// DeregisterStreamConsumer implements [wire.Kinesis].
func (g methods) DeregisterStreamConsumer(ctx context.Context, in *kinesis.DeregisterStreamConsumerInput, opts ...func(*kinesis.Options)) (*kinesis.DeregisterStreamConsumerOutput, error) {
	return call(ctx, g, "DeregisterStreamConsumer", g.to.DeregisterStreamConsumer, in, opts)
}
