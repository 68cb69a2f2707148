package behaviour

import (
	"context"
	"sync"

	"github.com/aws/aws-sdk-go-v2/service/kinesis"

	"github.com/weir-go/weir"
)

// counting is a wrapper that counts the calls of each method.
type counting struct {
	to      weir.Kinesis
	before  func(method string) // may be nil
	mu      sync.Mutex
	calls   map[string]int
	records int // in the outputs of GetRecords
}

func (c *counting) count(method string) {
	c.mu.Lock()
	if c.calls == nil {
		c.calls = map[string]int{}
	}
	c.calls[method]++
	c.mu.Unlock()
	if c.before != nil {
		c.before(method)
	}
}

func (c *counting) of(method string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.calls[method]
}

func (c *counting) seen() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.records
}

func (c *counting) DescribeStreamSummary(ctx context.Context, in *kinesis.DescribeStreamSummaryInput, opts ...func(*kinesis.Options)) (*kinesis.DescribeStreamSummaryOutput, error) {
	c.count("DescribeStreamSummary")
	return c.to.DescribeStreamSummary(ctx, in, opts...)
}

func (c *counting) ListShards(ctx context.Context, in *kinesis.ListShardsInput, opts ...func(*kinesis.Options)) (*kinesis.ListShardsOutput, error) {
	c.count("ListShards")
	return c.to.ListShards(ctx, in, opts...)
}

func (c *counting) GetShardIterator(ctx context.Context, in *kinesis.GetShardIteratorInput, opts ...func(*kinesis.Options)) (*kinesis.GetShardIteratorOutput, error) {
	c.count("GetShardIterator")
	return c.to.GetShardIterator(ctx, in, opts...)
}

func (c *counting) GetRecords(ctx context.Context, in *kinesis.GetRecordsInput, opts ...func(*kinesis.Options)) (*kinesis.GetRecordsOutput, error) {
	c.count("GetRecords")
	out, err := c.to.GetRecords(ctx, in, opts...)
	if err == nil {
		c.mu.Lock()
		c.records += len(out.Records)
		c.mu.Unlock()
	}
	return out, err
}

func (c *counting) SubscribeToShard(ctx context.Context, in *kinesis.SubscribeToShardInput, opts ...func(*kinesis.Options)) (*kinesis.SubscribeToShardOutput, error) {
	c.count("SubscribeToShard")
	return c.to.SubscribeToShard(ctx, in, opts...)
}

func (c *counting) DescribeStreamConsumer(ctx context.Context, in *kinesis.DescribeStreamConsumerInput, opts ...func(*kinesis.Options)) (*kinesis.DescribeStreamConsumerOutput, error) {
	c.count("DescribeStreamConsumer")
	return c.to.DescribeStreamConsumer(ctx, in, opts...)
}

func (c *counting) RegisterStreamConsumer(ctx context.Context, in *kinesis.RegisterStreamConsumerInput, opts ...func(*kinesis.Options)) (*kinesis.RegisterStreamConsumerOutput, error) {
	c.count("RegisterStreamConsumer")
	return c.to.RegisterStreamConsumer(ctx, in, opts...)
}

func (c *counting) DeregisterStreamConsumer(ctx context.Context, in *kinesis.DeregisterStreamConsumerInput, opts ...func(*kinesis.Options)) (*kinesis.DeregisterStreamConsumerOutput, error) {
	c.count("DeregisterStreamConsumer")
	return c.to.DeregisterStreamConsumer(ctx, in, opts...)
}
