package queues

import (
	"context"
	"errors"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"
	"github.com/aws/aws-sdk-go-v2/service/kinesis/types"

	"github.com/weir-go/weir/cmd/weir/internal/cli"
	"github.com/weir-go/weir/cmd/weir/internal/explain"
	"github.com/weir-go/weir/internal/queuestate"
	"github.com/weir-go/weir/queue"
)

// Reader reads queues, their streams and their metrics from the service.
type Reader struct {
	Queues  *queue.Client
	Metrics *cloudwatch.Client
	Streams *kinesis.Client
}

// Reader creates the clients for a Reader.
func (f *Flags) Reader(ctx context.Context, t cli.Terminal) (*Reader, error) {
	r := &Reader{}
	var err error
	if r.Queues, _, err = f.AWS.KinesisQueues(ctx, t); err != nil {
		return nil, err
	}
	if r.Metrics, err = f.AWS.CloudWatch(ctx, t); err != nil {
		return nil, err
	}
	// The other clients have checked the settings and printed notes about them.
	r.Streams, err = f.AWS.Kinesis(ctx, t)
	return r, err
}

// Facts returns the facts about a queue. If the metrics or the stream cannot be read, the facts
// about them are unknown.
func (r *Reader) Facts(ctx context.Context, d *queue.Description) queuestate.Facts {
	f := queuestate.Facts{
		Name: d.Name, ARN: d.ARN, Status: d.Status, Created: d.Created,
		DeadLetters: d.Attributes.DeadLetters != "NONE", MaxReceiveCount: d.Attributes.MaxReceiveCount,
	}
	if v := d.Attributes.Visibility; v != nil {
		f.Visibility = *v
	}
	if len(d.Streams) > 0 {
		arn := d.Streams[0].StreamARN
		f.Stream = StreamOf(arn)
		out, err := r.Streams.DescribeStreamSummary(ctx, &kinesis.DescribeStreamSummaryInput{StreamARN: &arn})
		var missing *types.ResourceNotFoundException
		switch {
		case errors.As(err, &missing):
			f.StreamMissing = true
		case err == nil && out.StreamDescriptionSummary != nil:
			s := out.StreamDescriptionSummary
			f.Retention = time.Duration(aws.ToInt32(s.RetentionPeriodHours)) * time.Hour
			if s.StreamModeDetails != nil {
				f.StreamMode = string(s.StreamModeDetails.StreamMode)
			}
		}
	}
	var err error
	if f.Metrics, err = Metrics(ctx, r.Metrics, d.ARN, d.Name, time.Now()); err != nil {
		f.MetricsErr = explain.Error(err)
	}
	return f
}
