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

// Kinesis contains the methods of a *kinesis.Client that this package uses.
type Kinesis interface {
	ListShards(context.Context, *kinesis.ListShardsInput, ...func(*kinesis.Options)) (*kinesis.ListShardsOutput, error)
	DescribeStreamSummary(context.Context, *kinesis.DescribeStreamSummaryInput, ...func(*kinesis.Options)) (*kinesis.DescribeStreamSummaryOutput, error)
}

// Answer is the information from Kinesis about a stream.
type Answer struct {
	change.Stream
	Retention time.Duration // 0 if unknown
	Key       string        // the KMS key; "" if the stream is not encrypted or if unknown
	Status    string
	ARN       string
	Denied    error // why the fields of the description are unknown; may be nil
}

// AskStream lists a stream and gets its description. Without permission for the description, the
// answer only contains the listing.
func AskStream(ctx context.Context, client Kinesis, s streams.Stream) (Answer, error) {
	about := Answer{Stream: change.Stream{Name: s.Name}}
	var err error
	if about.Shards, about.Now, err = streams.List(ctx, client, s); err != nil {
		return about, err
	}
	if about.Now.IsZero() {
		return about, errors.New("the service's answer has no date, which is required here")
	}
	in := &kinesis.DescribeStreamSummaryInput{}
	in.StreamName, in.StreamARN = s.NameAndARN()
	out, err := client.DescribeStreamSummary(ctx, in)
	switch {
	case err != nil && streams.Refused(err): // some servers do not have this operation
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
