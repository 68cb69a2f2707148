package queues

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch"

	"github.com/weir-go/weir/internal/queuestate"
	"github.com/weir-go/weir/kinesistest"
	"github.com/weir-go/weir/queue"
)

// The embedded Kinesis has the metrics of its queues, for the client of the AWS SDK.
func TestMetricsOfTheEmbeddedKinesis(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := kinesistest.NewServer(t, kinesistest.Config{InMemory: true})
		s.CreateOnDemandStream("orders")
		arn := s.CreateQueue(kinesistest.Queue{Stream: "orders", Name: "q", MaxReceiveCount: 1})
		cfg := aws.Config{
			Region: s.Region(), BaseEndpoint: aws.String(s.URL()), HTTPClient: s.HTTPClient(),
			Credentials: credentials.NewStaticCredentialsProvider("a", "b", ""),
		}
		client, err := queue.NewClient(cfg)
		if err != nil {
			t.Fatal(err)
		}
		metrics := cloudwatch.NewFromConfig(cfg)
		for range 5 {
			s.Put("orders", "k", []byte("data"))
		}
		receive := func(limit int) []queue.Delivery {
			out, err := client.Receive(t.Context(), queue.ReceiveInput{QueueARN: arn, Limit: limit, Wait: time.Second, Hold: time.Hour})
			if err != nil {
				t.Fatal(err)
			}
			return out.Records
		}
		got := receive(3)
		if _, err := client.Acknowledge(t.Context(), arn, []string{got[0].ReceiptHandle}); err != nil {
			t.Fatal(err)
		}
		if _, err := client.SetVisibility(t.Context(), arn, []queue.Visibility{{ReceiptHandle: got[1].ReceiptHandle}}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(5 * time.Minute)
		receive(10)
		receive(10) // is empty
		m, err := Metrics(t.Context(), metrics, arn, "q", time.Now())
		want := queuestate.Metrics{At: m.At, InFlight: 3, DeadLetters: 1, Over: time.Hour, Received: 5, Acknowledged: 1, EmptyReceives: 1}
		if err != nil || m != want || time.Since(m.At) > time.Minute {
			t.Errorf("%+v, %v, want %+v", m, err, want)
		}
		// The sums end after an hour.
		time.Sleep(58 * time.Minute)
		if m, err := Metrics(t.Context(), metrics, arn, "q", time.Now()); err != nil || m.Received != 2 || m.Acknowledged != 0 {
			t.Errorf("later: %+v, %v", m, err)
		}
		// A queue with another name has no metrics.
		if m, err := Metrics(t.Context(), metrics, arn, "other", time.Now()); err != nil || m.Visible != queuestate.Unknown || !m.At.IsZero() {
			t.Errorf("another queue: %+v, %v", m, err)
		}
		s.HTTPClient().CloseIdleConnections()
	})
}
