package queues

import (
	"context"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch/types"

	"github.com/weir-go/weir/internal/queuestate"
)

// metricNames are the metrics of a queue, in the order of the queries. CloudWatch has no metric for
// the age of the oldest record.
var metricNames = []string{
	"VisibleQueueRecords", "InFlightQueueRecords", "VisibleDeadLetterQueueRecords",
	"ReceivedQueueRecords", "AcknowledgedQueueRecords", "EmptyReceives",
}

// gauges is the number of metrics at the start of metricNames that are numbers of records.
const gauges = 3

// Metrics returns the metrics of a queue of the last hour. The newest values are up to some minutes
// old.
func Metrics(ctx context.Context, client *cloudwatch.Client, arn, name string, now time.Time) (queuestate.Metrics, error) {
	m := queuestate.Metrics{Visible: queuestate.Unknown, InFlight: queuestate.Unknown, DeadLetters: queuestate.Unknown, Over: time.Hour}
	_, id, _ := strings.Cut(arn, ":queue/")
	dimensions := []types.Dimension{{Name: aws.String("QueueId"), Value: &id}, {Name: aws.String("QueueName"), Value: &name}}
	in := &cloudwatch.GetMetricDataInput{
		StartTime: aws.Time(now.Add(-time.Hour)), EndTime: aws.Time(now.Add(time.Minute)), ScanBy: types.ScanByTimestampDescending,
	}
	for i, metric := range metricNames {
		stat := "Sum"
		if i < gauges {
			stat = "Maximum"
		}
		in.MetricDataQueries = append(in.MetricDataQueries, types.MetricDataQuery{
			Id: aws.String("m" + strconv.Itoa(i)),
			MetricStat: &types.MetricStat{
				Metric: &types.Metric{Namespace: aws.String("AWS/Kinesis"), MetricName: aws.String(metric), Dimensions: dimensions},
				Period: aws.Int32(60), Stat: &stat,
			},
		})
	}
	const mostPages = 10
	for range mostPages {
		out, err := client.GetMetricData(ctx, in)
		if err != nil {
			return m, err
		}
		for _, r := range out.MetricDataResults {
			add(&m, aws.ToString(r.Id), r.Timestamps, r.Values)
		}
		if aws.ToString(out.NextToken) == "" {
			break
		}
		in.NextToken = out.NextToken
	}
	return m, nil
}

// add adds the values of one metric, the newest first.
func add(m *queuestate.Metrics, id string, at []time.Time, values []float64) {
	i, err := strconv.Atoi(strings.TrimPrefix(id, "m"))
	n := min(len(at), len(values))
	if err != nil || n == 0 {
		return
	}
	if i < gauges && at[0].After(m.At) {
		m.At = at[0]
	}
	sum := 0.0
	for _, v := range values[:n] {
		sum += v
	}
	newest := int64(values[0])
	switch i {
	case 0:
		m.Visible = newest
	case 1:
		m.InFlight = newest
	case 2:
		m.DeadLetters = newest
		if n > 1 {
			m.NewDeadLetters = newest - int64(values[n-1])
		}
	case 3:
		m.Received += int64(sum)
	case 4:
		m.Acknowledged += int64(sum)
	case 5:
		m.EmptyReceives += int64(sum)
	}
}
