package wire

import (
	"context"
	"errors"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"
	"github.com/aws/aws-sdk-go-v2/service/kinesis/schemas"
	"github.com/aws/smithy-go/transport/http/protocol/awsjson"
)

// Kinesis contains the methods of a *kinesis.Client that read streams. weir.Kinesis has the same
// methods.
type Kinesis interface {
	DescribeStreamSummary(context.Context, *kinesis.DescribeStreamSummaryInput, ...func(*kinesis.Options)) (*kinesis.DescribeStreamSummaryOutput, error)
	ListShards(context.Context, *kinesis.ListShardsInput, ...func(*kinesis.Options)) (*kinesis.ListShardsOutput, error)
	GetShardIterator(context.Context, *kinesis.GetShardIteratorInput, ...func(*kinesis.Options)) (*kinesis.GetShardIteratorOutput, error)
	GetRecords(context.Context, *kinesis.GetRecordsInput, ...func(*kinesis.Options)) (*kinesis.GetRecordsOutput, error)
	SubscribeToShard(context.Context, *kinesis.SubscribeToShardInput, ...func(*kinesis.Options)) (*kinesis.SubscribeToShardOutput, error)
	DescribeStreamConsumer(context.Context, *kinesis.DescribeStreamConsumerInput, ...func(*kinesis.Options)) (*kinesis.DescribeStreamConsumerOutput, error)
	RegisterStreamConsumer(context.Context, *kinesis.RegisterStreamConsumerInput, ...func(*kinesis.Options)) (*kinesis.RegisterStreamConsumerOutput, error)
	DeregisterStreamConsumer(context.Context, *kinesis.DeregisterStreamConsumerInput, ...func(*kinesis.Options)) (*kinesis.DeregisterStreamConsumerOutput, error)
}

// Forced is a client whose calls use a given path. Proofs and benchmarks pass it to weir.New in
// place of the client, to measure paths that programs cannot select. It overrides
// [Options.Path] and [Options.NetHTTP].
type Forced struct {
	*kinesis.Client
	Path    Path
	NetHTTP bool
}

// IsNil reports whether there is no client to call: client is nil, or a nil *kinesis.Client.
func IsNil(client any) bool {
	switch c := client.(type) {
	case nil:
		return true
	case *kinesis.Client:
		return c == nil
	case Forced:
		return c.Client == nil
	}
	return false
}

// Real returns the *kinesis.Client that weir may bypass. It returns nil for a wrapper or a fake,
// whose methods must be called.
func Real(client any) *kinesis.Client {
	switch c := client.(type) {
	case *kinesis.Client:
		return c
	case Forced:
		return c.Client
	}
	return nil
}

// ErrNoEvents is returned if a client's SubscribeToShard succeeds without a stream of events. Only
// the SDK can make an output with a stream.
var ErrNoEvents = errors.New("the client's output of SubscribeToShard has no stream; only a *kinesis.Client can make one")

// typeOf returns the type of the user's client. A guard around the client has the method Unwrap.
func typeOf(client any) string {
	if guard, ok := client.(interface{ Unwrap() any }); ok {
		client = guard.Unwrap()
	}
	return fmt.Sprintf("%T", client)
}

// asWrapped configures a call of a client that is not a *kinesis.Client. The client that the
// wrapper calls keeps its HTTP client and its connections.
func asWrapped(o *kinesis.Options) {
	o.Retryer = aws.NopRetryer{}
	if o.HTTPClient != nil { // a fake may call the functions with empty options
		o.HTTPClient = wholeRequest{o.HTTPClient}
	}
}

// asWrappedStream configures a call of SubscribeToShard like asWrapped. It also gives the call a
// separate protocol, because the SDK decodes all event streams of a protocol with the same
// unguarded buffer.
func asWrappedStream(o *kinesis.Options) {
	asWrapped(o)
	if _, ok := o.Protocol.(*awsjson.Protocol); ok {
		o.Protocol = awsjson.New11(schemas.Kinesis_20131202)
	}
}
