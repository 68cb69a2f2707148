package weir

import (
	"context"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/service/kinesis"

	"github.com/weir-go/weir/internal/wire"
)

// Kinesis contains the calls that weir makes to read streams. A *kinesis.Client of the AWS SDK
// implements it. Programs implement it to count, record, refuse or fake calls: usually with a
// struct that embeds a *kinesis.Client or a Kinesis, and has its own version of some methods.
//
// The methods of an implementation other than *kinesis.Client are always called, whatever
// Options.Transport is, and their outputs are read as they are: GetRecords returns the Records that
// weir handles. These calls cost about ten times as much as those of a *kinesis.Client, and answers
// in progress take memory in addition to Options.MaxMemory. The methods must be safe for concurrent
// use. They should return when ctx ends. A panic in a method is an error of the call.
//
//   - weir keeps the outputs, their slices and their strings until the records are handled. A
//     method must not change them after it has returned.
//   - Errors of the service should be those of the SDK, such as a
//     *types.ProvisionedThroughputExceededException or a *smithy.GenericAPIError: weir selects its
//     reaction by their codes.
//   - An implementation that calls a *kinesis.Client should pass on the functions in the last
//     parameter. They disable the SDK's retries, because weir retries itself. For SubscribeToShard
//     they also make concurrent streams of one client safe, so they are required there. The
//     functions may be called with empty options.
//   - SubscribeToShard has to return an output of a *kinesis.Client, because only the SDK can put a
//     stream into it. The Reader of that stream may be replaced; it has to close its channel of
//     events soon after Close. If the output has no stream, weir polls the shard. A time limit of
//     the HTTP client for whole calls ends each subscription.
//   - A fake may return any error from DescribeStreamSummary. If fan-out is off, it may also return
//     any error from the three methods about consumers. Without DescribeStreamSummary, the
//     application does not recognize a stream that was deleted and created again.
//   - If the stream is named by its ARN, weir compares the region of the ARN with the region that
//     the implementation's method Options() kinesis.Options returns. If there is no such method,
//     weir assumes that the client calls the region of the ARN.
//   - Latest begins at the service's time, which is in the metadata of the SDK's outputs. Without
//     this metadata, Latest begins at the time of this computer.
type Kinesis interface {
	// DescribeStreamSummary returns the time when a stream was created, and its ARN for fan-out.
	DescribeStreamSummary(context.Context, *kinesis.DescribeStreamSummaryInput, ...func(*kinesis.Options)) (*kinesis.DescribeStreamSummaryOutput, error)
	// ListShards lists the shards of a stream.
	ListShards(context.Context, *kinesis.ListShardsInput, ...func(*kinesis.Options)) (*kinesis.ListShardsOutput, error)
	// GetShardIterator returns an iterator for a position in a shard.
	GetShardIterator(context.Context, *kinesis.GetShardIteratorInput, ...func(*kinesis.Options)) (*kinesis.GetShardIteratorOutput, error)
	// GetRecords reads records of a shard.
	GetRecords(context.Context, *kinesis.GetRecordsInput, ...func(*kinesis.Options)) (*kinesis.GetRecordsOutput, error)
	// SubscribeToShard begins to read a shard by fan-out.
	SubscribeToShard(context.Context, *kinesis.SubscribeToShardInput, ...func(*kinesis.Options)) (*kinesis.SubscribeToShardOutput, error)
	// DescribeStreamConsumer finds the consumer for fan-out.
	DescribeStreamConsumer(context.Context, *kinesis.DescribeStreamConsumerInput, ...func(*kinesis.Options)) (*kinesis.DescribeStreamConsumerOutput, error)
	// RegisterStreamConsumer registers the consumer for fan-out.
	RegisterStreamConsumer(context.Context, *kinesis.RegisterStreamConsumerInput, ...func(*kinesis.Options)) (*kinesis.RegisterStreamConsumerOutput, error)
	// DeregisterStreamConsumer deregisters the consumer for fan-out.
	DeregisterStreamConsumer(context.Context, *kinesis.DeregisterStreamConsumerInput, ...func(*kinesis.Options)) (*kinesis.DeregisterStreamConsumerOutput, error)
}

// The engine calls the same methods.
var _ Kinesis = wire.Kinesis(nil)

// Transport selects how weir makes the read calls of a *kinesis.Client. The methods of any other
// [Kinesis] are called with both values. With both, weir does the pacing and the retries, errors
// have the SDK's types, and an endpoint without CBOR gets JSON. [Consumer.Run] logs once which
// transport it uses, and why.
type Transport int

const (
	// AutoTransport bypasses the SDK's stack if the client's options give it nothing to do: no
	// middleware, interceptors, tracer or meter, no retryer, signer, endpoint resolver or protocol
	// of your own, and an HTTP client that is the SDK's or an *http.Client. Such calls use the
	// SDK's credentials and endpoint, HTTP/1.1, CBOR and identity encoding. They cost a few percent
	// more than receiving the bytes. With other clients, AutoTransport does what SDKTransport does.
	// If weir's HTTP client does not understand an answer of an endpoint, net/http makes all
	// further calls to that endpoint. weir logs that once. AutoTransport is the default.
	AutoTransport Transport = iota
	// SDKTransport calls through the SDK, with weir's decoder. Your middleware and tracing see
	// every call, but the output that they see has no Records.
	SDKTransport
)

// String returns "auto" or "sdk".
func (t Transport) String() string {
	switch t {
	case AutoTransport:
		return "auto"
	case SDKTransport:
		return "sdk"
	}
	return fmt.Sprintf("Transport(%d)", int(t))
}

// check returns an error for an invalid value. options names the options.
func (t Transport) check(options string) error {
	if t < AutoTransport || t > SDKTransport {
		return badOption(options+".Transport", "%d must be AutoTransport or SDKTransport", int(t))
	}
	return nil
}

// path returns the path of the calls of a *kinesis.Client.
func (t Transport) path() wire.Path {
	if t == SDKTransport {
		return wire.UnderSDK
	}
	return wire.AutoPath
}
