package emfweir

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/filter"
	"github.com/weir-go/weir/kinesistest"
	"github.com/weir-go/weir/queue"
)

func madeForQueue(t *testing.T, o *queue.Options, c Config) *QueueMetrics {
	t.Helper()
	m, err := NewQueue(o, c)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// The lines of a consumer add up to its counts, and each has the values since the line before.
func TestLinesOfAConsumerOfAQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := kinesistest.NewServer(t, kinesistest.Config{InMemory: true})
		s.CreateOnDemandStream("orders")
		s.CreateQueue(kinesistest.Queue{Stream: "orders", Name: "billing", MaxReceiveCount: 20})
		told := 0
		o := queue.Options{Queue: "billing", App: "a", Filter: weir.Filter{By: filter.MustCompile(`{"data": {"kind": ["order"]}}`)}}
		o.Events.Handled = func(context.Context, queue.Handled) { told++ }
		m := madeForQueue(t, &o, Config{})
		c, err := queue.New(aws.Config{
			Region: s.Region(), HTTPClient: s.HTTPClient(), BaseEndpoint: aws.String(s.URL()),
			Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
				return aws.Credentials{AccessKeyID: "a", SecretAccessKey: "b"}, nil
			}),
		}, o)
		if err != nil {
			t.Fatal(err)
		}
		m.Watch(c)
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 2)
		var out written
		go func() {
			ended <- c.Run(ctx, queue.RecordFunc(func(_ context.Context, r queue.Record) error {
				time.Sleep(20 * time.Millisecond)
				if r.PartitionKey == "slow" {
					time.Sleep(90 * time.Second)
				}
				if r.PartitionKey == "bad" && r.Attempt == 1 {
					return errors.New("bad")
				}
				return nil
			}))
		}()
		writing, stop := context.WithCancel(t.Context())
		go func() { ended <- m.Run(writing, &out) }()
		for _, key := range []string{"a", "b", "bad", "slow"} {
			s.Put("orders", key, []byte(`{"kind": "order"}`))
		}
		s.Put("orders", "bill", []byte(`{"kind": "bill"}`))
		time.Sleep(61 * time.Second)
		synctest.Wait()
		first := parse(t, out.take())
		if d := fmt.Sprint(first.dimensions); d != "map[Operation:ProcessTask QueueName:billing]" {
			t.Error(d)
		}
		for name, want := range map[string]float64{
			"RecordsReceived": 5, "RecordsProcessed": 3, "RecordsAcknowledged": 4, "RecordsInFlight": 1, "RecordsFailed": 1, "RecordsFiltered": 1,
		} {
			if got := first.values[name]; len(got) != 1 || got[0] != want {
				t.Errorf("%s is %v, want %v", name, got, want)
			}
		}
		if got := fmt.Sprint(first.values["RecordProcessor.processRecords.Time"]); got != "[20 20 20 20]" || first.units["RecordProcessor.processRecords.Time"] != "Milliseconds" {
			t.Errorf("the calls of the handler took %s", got)
		}
		for _, name := range []string{"RecordsDeadLettered", "HoldsLost", "ReceivesSpent", "RecordsRedelivered", "ReceivesFailed"} {
			if got, some := first.values[name]; some {
				t.Errorf("%s is %v although nothing happened", name, got)
			}
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		second := parse(t, out.take())
		if v := second.values; v["RecordsReceived"][0] != 0 || v["RecordsProcessed"][0] != 1 || v["RecordsInFlight"][0] != 0 || v["RecordsFailed"] != nil {
			t.Errorf("the second minute: %v", v)
		}
		s.Put("orders", "c", []byte(`{"kind": "order"}`))
		time.Sleep(time.Second)
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		stop()
		if err := <-ended; err != nil || told == 0 {
			t.Errorf("%v, the function that was there was called %d times", err, told)
		}
		if last := parse(t, out.take()); last.values["RecordsProcessed"][0] != 1 {
			t.Errorf("at the end: %v", last.values)
		}
	})
}

func TestConfigsOfQueuesThatMakeNoSense(t *testing.T) {
	for _, c := range []struct {
		app  string
		of   Config
		want string
	}{
		{"billing", Config{Namespace: "AWS/Kinesis"}, `Namespace "AWS/Kinesis"`},
		{"größe", Config{}, `Namespace "größe"`},
		{"billing", Config{Every: time.Millisecond}, "Every 1ms: want 1s to 1h"},
		{"billing", Config{ByShard: true}, "ByShard is set, and a queue has no shards"},
	} {
		o := queue.Options{Queue: "q", App: c.app}
		if _, err := NewQueue(&o, c.of); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v", c.of, err)
		}
		if o.Events.Handled != nil {
			t.Errorf("%+v: events are observed all the same", c.of)
		}
	}
	o := queue.Options{Queue: "orders"}
	if m := madeForQueue(t, &o, Config{}); m.namespace != "orders" || m.every != time.Minute {
		t.Errorf("%+v", m)
	}
}
