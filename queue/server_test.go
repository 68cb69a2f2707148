package queue

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/kinesistest"
)

// serve starts the embedded Kinesis with a queue "orders", and returns the configuration for it.
func serve(t *testing.T, cfg kinesistest.Config, q kinesistest.Queue) (*kinesistest.Server, aws.Config) {
	t.Helper()
	cfg.InMemory, cfg.NoLimits = true, true
	s := kinesistest.NewServer(t, cfg)
	s.CreateOnDemandStream("s")
	q.Stream, q.Name = "s", "orders"
	s.CreateQueue(q)
	return s, aws.Config{Region: s.Region(), Credentials: keys(), HTTPClient: s.HTTPClient(), BaseEndpoint: aws.String(s.URL())}
}

// The operations of the client work with the embedded Kinesis.
func TestTheClientAndTheServerAgree(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, cfg := serve(t, kinesistest.Config{}, kinesistest.Queue{})
		c, err := NewClient(cfg)
		if err != nil {
			t.Fatal(err)
		}
		ctx := t.Context()
		minute, d0 := time.Minute, time.Unix(0, 0)
		made, err := c.CreateQueue(ctx, CreateInput{
			Name: "more", StreamARN: s.StreamARN("s"), Start: Start{Type: "TRIM_HORIZON"}, Tags: map[string]string{"team": "shop"},
			Attributes: Attributes{Visibility: &minute, DeadLetters: builtIn, MaxReceiveCount: 1},
		})
		if err != nil || made.Name != "more" || made.Attributes.MaxReceiveCount != 1 {
			t.Fatalf("%+v, %v", made, err)
		}
		time.Sleep(time.Minute)
		if page, err := c.ListQueues(ctx, ListQueuesInput{StreamARN: s.StreamARN("s"), Created: &d0}); err != nil || len(page.Queues) != 0 {
			t.Errorf("queues of an earlier stream: %+v, %v", page, err)
		}
		if page, err := c.ListQueues(ctx, ListQueuesInput{StreamARN: s.StreamARN("s")}); err != nil || len(page.Queues) != 2 {
			t.Errorf("queues of the stream: %+v, %v", page, err)
		}
		arn, err := c.Find(ctx, "more")
		if err != nil || arn != made.ARN {
			t.Fatalf("%q, %v", arn, err)
		}
		d, err := c.DescribeQueue(ctx, arn)
		if err != nil || d.Status != Active || len(d.Streams) != 1 || d.Streams[0].Start.At.IsZero() || *d.Attributes.Visibility != minute {
			t.Errorf("%+v, %v", d, err)
		}
		s.Put("s", "k", []byte("data"))
		in := ReceiveInput{QueueARN: arn, Limit: 10, Wait: time.Second, Hold: 10 * time.Second}
		got, err := c.Receive(ctx, in)
		if err != nil || len(got.Records) != 1 || string(got.Records[0].Data) != "data" || got.Records[0].PartitionKey != "k" || got.Records[0].ReceiveCount != 1 || got.Records[0].Arrived.IsZero() {
			t.Fatalf("%+v, %v", got, err)
		}
		if out, err := c.SetVisibility(ctx, arn, []Visibility{{got.Records[0].ReceiptHandle, 0}}); err != nil || len(out.Failed) != 0 {
			t.Errorf("%+v, %v", out, err)
		}
		dead, err := c.ReceiveDeadLetters(ctx, in) // after one receive
		if err != nil || len(dead.Records) != 1 {
			t.Fatalf("%+v, %v", dead, err)
		}
		handle := dead.Records[0].ReceiptHandle
		if out, err := c.SetDeadLetterVisibility(ctx, arn, []Visibility{{handle, minute}}); err != nil || len(out.Failed) != 0 {
			t.Errorf("%+v, %v", out, err)
		}
		if out, err := c.RestoreDeadLetters(ctx, arn, []string{handle}); err != nil || len(out.Failed) != 0 {
			t.Errorf("%+v, %v", out, err)
		}
		if got, err = c.Receive(ctx, in); err != nil || len(got.Records) != 1 {
			t.Fatalf("%+v, %v", got, err)
		}
		if out, err := c.Acknowledge(ctx, arn, []string{got.Records[0].ReceiptHandle, handle}); err != nil || len(out.Failed) != 1 || out.Failed[0].ReceiptHandle != handle {
			t.Errorf("%+v, %v", out, err)
		}
		if out, err := c.AcknowledgeDeadLetters(ctx, arn, []string{handle}); err != nil || len(out.Failed) != 1 {
			t.Errorf("%+v, %v", out, err)
		}
		if d, err := c.UpdateQueue(ctx, arn, Attributes{DeadLetters: builtIn, MaxReceiveCount: 50}); err != nil || d.Attributes.MaxReceiveCount != 50 {
			t.Errorf("%+v, %v", d, err)
		}
		if err := c.DeleteQueue(ctx, arn); err != nil {
			t.Error(err)
		}
		if _, err := c.DescribeQueue(ctx, "arn:aws:kinesis:"+s.Region()+":000000000000:queue/none"); kindOf(err) != missing {
			t.Errorf("a missing queue: %v", err)
		}
	})
}

// draw returns a random number below n for the call i. If every seventh call lost its answer, the
// same call of each round of receives could lose it, and with it the same records for ever.
func draw(i, n int) int { return rand.New(rand.NewPCG(uint64(i), 0)).IntN(n) }

// Several processes handle each record, while calls fail in all ways.
func TestConsumersOfTheServer(t *testing.T) {
	for _, c := range []struct {
		name   string
		queues kinesistest.QueueConfig
		faults bool
	}{
		{"no faults", kinesistest.QueueConfig{}, false},
		{"faults", kinesistest.QueueConfig{}, true},
		{"faults and the other choices", kinesistest.QueueConfig{
			AcceptSuperseded: true, AcceptRepeated: true, DeadOnReceive: true, ThrottleInFlight: true, MaxInFlight: 20, FillBatch: true, ForgetAcknowledgements: 20,
		}, true},
	} {
		synctest.Test(t, func(t *testing.T) {
			s, cfg := serve(t, kinesistest.Config{Queues: c.queues}, kinesistest.Queue{MaxReceiveCount: 100})
			const records = 300
			for i := range records {
				s.Put("s", fmt.Sprint(i%7), fmt.Append(nil, i))
			}
			if c.faults {
				s.Control("ReceiveQueueRecords", func(call *kinesistest.Call) kinesistest.Fault {
					switch draw(call.N, 7) {
					case 3:
						return kinesistest.Fault{LoseAnswer: true}
					case 5:
						return kinesistest.Fault{Err: &kinesistest.Error{Status: 400, Code: "ThrottlingException"}}
					}
					return kinesistest.Fault{}
				})
				s.Control("AcknowledgeQueueRecords", func(call *kinesistest.Call) kinesistest.Fault {
					return kinesistest.Fault{PartialFailure: func(i int) string {
						return map[int]string{1: "ThrottlingException", 4: "InternalFailureException"}[draw(10*call.N+i, 9)]
					}}
				})
			}
			var s1 seen
			var all sync.WaitGroup
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Minute)
			defer cancel()
			var consumers []*Consumer
			for range 3 {
				consumer, err := New(cfg, Options{Queue: "orders", Logger: quiet()})
				if err != nil {
					t.Fatal(err)
				}
				consumers = append(consumers, consumer)
				all.Go(func() {
					if err := consumer.Run(ctx, RecordFunc(func(_ context.Context, r Record) error {
						time.Sleep(50 * time.Millisecond)
						if s1.add(Record{ID: string(r.Data)}) == 1 && len(r.Data) == 1 {
							return weir.FailedAt(weir.Record{}, context.DeadlineExceeded) // any error
						}
						return nil
					})); err != nil {
						t.Error(err)
					}
				})
			}
			all.Wait()
			state := s.QueueState("orders")
			if len(s1.n) != records || state.Visible+state.InFlight+state.Undelivered+state.VisibleDeadLetters+state.InFlightDeadLetters != 0 {
				t.Errorf("%s: %d of %d records handled, %+v", c.name, len(s1.n), records, state)
			}
			if !c.faults {
				for id, n := range s1.n {
					if want := map[bool]int{true: 2, false: 1}[len(id) == 1]; n != want {
						t.Errorf("%s was handled %d times", id, n)
					}
				}
				n := consumers[0].Counts()
				t.Logf("%+v", n)
			}
		})
	}
}
