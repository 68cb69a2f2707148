package operate

import (
	"context"
	"errors"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"

	"github.com/weir-go/weir/internal/change"
	"github.com/weir-go/weir/internal/streams"
)

// Kinesis is what is asked of the service: a *kinesis.Client.
type Kinesis interface {
	ListShards(context.Context, *kinesis.ListShardsInput, ...func(*kinesis.Options)) (*kinesis.ListShardsOutput, error)
	DescribeStreamSummary(context.Context, *kinesis.DescribeStreamSummaryInput, ...func(*kinesis.Options)) (*kinesis.DescribeStreamSummaryOutput, error)
}

// Answer is what the service says about a stream.
type Answer struct {
	change.Stream
	Retention time.Duration // 0 when it is not known
	Key       string        // of KMS, "" when the stream is not encrypted or that is not known
	Status    string
	ARN       string
	Denied    error // why the rest is not known
}

// AskStream lists a stream and asks what it is. Without the permission for the second the answer
// has only what the first one says.
func AskStream(ctx context.Context, client Kinesis, s streams.Stream) (Answer, error) {
	about := Answer{Stream: change.Stream{Name: s.Name}}
	var err error
	if about.Shards, about.Now, err = streams.List(ctx, client, s); err != nil {
		return about, err
	}
	if about.Now.IsZero() {
		return about, errors.New("the service's answer has no date, and no other clock will do")
	}
	in := &kinesis.DescribeStreamSummaryInput{}
	in.StreamName, in.StreamARN = s.NameAndARN()
	out, err := client.DescribeStreamSummary(ctx, in)
	switch {
	case err != nil && streams.Refused(err): // some servers know no such operation
		about.Denied = err
		return about, nil
	case err != nil:
		return about, err
	case out.StreamDescriptionSummary == nil:
		return about, nil
	}
	d := out.StreamDescriptionSummary
	if d.StreamCreationTimestamp != nil {
		about.Born = max(d.StreamCreationTimestamp.UnixMilli(), 0)
	}
	about.Retention = time.Duration(aws.ToInt32(d.RetentionPeriodHours)) * time.Hour
	about.Key, about.Status, about.ARN = aws.ToString(d.KeyId), string(d.StreamStatus), aws.ToString(d.StreamARN)
	return about, nil
}
