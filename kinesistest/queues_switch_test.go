package kinesistest_test

import (
	"bytes"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"
	"github.com/aws/aws-sdk-go-v2/service/kinesis/types"

	"github.com/weir-go/weir/kinesistest"
)

func TestInFlightLimit(t *testing.T) {
	for _, throttle := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			cfg := kinesistest.Config{Queues: kinesistest.QueueConfig{MaxInFlight: 2, ThrottleInFlight: throttle}}
			c := startQueue(t, cfg, kinesistest.Queue{Visibility: 10 * time.Second, MaxReceiveCount: -1})
			c.putAll("a", "b", "c")
			held := c.receive()
			if len(held) != 2 {
				t.Fatalf("received %s", data(held))
			}
			if throttle {
				c.refused("ReceiveQueueRecords", "", "ThrottlingException")
			} else if got := c.receive(); len(got) > 0 {
				t.Errorf("received %s over the limit", data(got))
			}
			acknowledged := make(chan struct{})
			time.AfterFunc(time.Second, func() { c.acknowledge(held[0]); close(acknowledged) })
			if throttle {
				time.Sleep(time.Second)
				synctest.Wait()
			}
			if got := elapsed(func() { c.one(`"WaitTimeSeconds":5`) }); got != time.Second && !throttle {
				t.Errorf("the freed place was used after %v", got)
			}
			<-acknowledged
			c.wantState(kinesistest.QueueState{InFlight: 2, Acknowledged: 1})
		})
	}
}

func TestQueueSwitches(t *testing.T) {
	for name, tc := range map[string]struct {
		cfg   kinesistest.QueueConfig
		check func(*testing.T, queueClient)
	}{
		"AcceptRepeated": {kinesistest.QueueConfig{AcceptRepeated: true}, func(t *testing.T, c queueClient) {
			r := c.receiveOf("a")
			if first, again := c.acknowledge(r), c.acknowledge(r); first+again != "" {
				t.Errorf("%q, then %q", first, again)
			}
		}},
		"not AcceptRepeated": {kinesistest.QueueConfig{}, func(t *testing.T, c queueClient) {
			r := c.receiveOf("a")
			if failed := c.entries("AcknowledgeQueueRecords", 0, r, r); len(failed) != 1 || failed[0].ErrorCode != missing {
				t.Errorf("%+v", failed)
			}
		}},
		"MaxHold": {kinesistest.QueueConfig{MaxHold: time.Minute}, func(t *testing.T, c queueClient) {
			r := c.receiveOf("a")
			time.Sleep(20 * time.Second)
			if over, just := c.entryCode("UpdateQueueRecordsVisibility", 41, r), c.entryCode("UpdateQueueRecordsVisibility", 40, r); over != invalidArgument || just != "" {
				t.Errorf("%q, then %q", over, just)
			}
		}},
		"MaxAnswerBytes": {kinesistest.QueueConfig{MaxAnswerBytes: 25}, func(t *testing.T, c queueClient) {
			c.putAll(strings.Repeat("a", 10), strings.Repeat("b", 10), strings.Repeat("c", 10))
			if first, second := c.receive(), c.receive(); len(first) != 2 || len(second) != 1 {
				t.Errorf("received %d and %d records", len(first), len(second))
			}
			c.putAll(strings.Repeat("d", 100))
			c.one()
		}},
		"FillBatch": {kinesistest.QueueConfig{FillBatch: true}, func(t *testing.T, c queueClient) {
			c.putAll("a")
			time.AfterFunc(2*time.Second, func() { c.putAll("b") })
			if got := elapsed(func() { c.receive(`"WaitTimeSeconds":9,"Limit":2`) }); got != 2*time.Second {
				t.Errorf("it waited %v for two records", got)
			}
			c.putAll("c")
			if got := elapsed(func() { c.one(`"WaitTimeSeconds":3,"Limit":2`) }); got != 3*time.Second {
				t.Errorf("it waited %v for the second record", got)
			}
		}},
		"EmptyUnlessActive": {kinesistest.QueueConfig{EmptyUnlessActive: true, LatestAtCreation: true}, func(t *testing.T, c queueClient) {
			c.s.SetStateDelay(5 * time.Second)
			create := fmt.Sprintf(`"QueueName":"p","StreamConfigurationList":[{"StreamARN":%q}]`, c.s.StreamARN("s"))
			q := queueClient{t, c.s, queueClient{tb: t, s: c.s}.must("CreateQueue", create).QueueDescription.QueueARN}
			if got := q.receive(); len(got) > 0 {
				t.Errorf("received %s while CREATING", data(got))
			}
			c.putAll("a") // LatestAtCreation: delivered
			if got := elapsed(func() { q.one(`"WaitTimeSeconds":20`) }); got != 4*time.Second {
				t.Errorf("it became ACTIVE after %v", got)
			}
		}},
		"Ordered": {kinesistest.QueueConfig{Ordered: true}, func(t *testing.T, c queueClient) {
			var want, got []byte
			for i := range byte(100) {
				c.s.Put("s", "k", []byte{i})
				want = append(want, i)
			}
			for range 10 {
				for _, r := range c.receive() {
					got = append(got, r.Data...)
				}
			}
			if !bytes.Equal(got, want) {
				t.Errorf("%v", got)
			}
		}},
		"not Ordered": {kinesistest.QueueConfig{}, func(t *testing.T, c queueClient) {
			seen, sorted := map[byte]bool{}, true
			last := byte(0)
			for i := range byte(100) {
				c.s.Put("s", "k", []byte{i})
			}
			for range 10 {
				for _, r := range c.receive() {
					seen[r.Data[0]] = true
					sorted = sorted && r.Data[0] >= last
					last = r.Data[0]
				}
			}
			if len(seen) != 100 || sorted {
				t.Errorf("%d records, sorted: %v", len(seen), sorted)
			}
		}},
		"ForgetAcknowledgements": {kinesistest.QueueConfig{ForgetAcknowledgements: 2}, func(t *testing.T, c queueClient) {
			c.putAll("a", "b")
			if failed := c.entries("AcknowledgeQueueRecords", 0, c.receive()...); len(failed) > 0 {
				t.Errorf("%+v", failed)
			}
			time.Sleep(30 * time.Second)
			c.one()
		}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				tc.check(t, startQueue(t, kinesistest.Config{Queues: tc.cfg}, kinesistest.Queue{}))
			})
		})
	}
}

func TestQueueFaults(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := startQueue(t, kinesistest.Config{}, kinesistest.Queue{Visibility: 10 * time.Second})
		c.putAll("a", "b")
		var call kinesistest.Call
		c.s.Control("ReceiveQueueRecords", func(k *kinesistest.Call) kinesistest.Fault {
			call = *k
			return kinesistest.Fault{LoseAnswer: true}
		})
		req := strings.NewReader(fmt.Sprintf(`{"QueueARN":%q}`, c.arn))
		h := ok[*http.Request](t)(http.NewRequestWithContext(t.Context(), http.MethodPost, c.s.URL()+"/", req))
		h.Header = http.Header{
			"Content-Type": {jsonType}, "X-Amz-Target": {"Kinesis_20131202.ReceiveQueueRecords"}, "X-Amz-Date": {"20200101T000000Z"},
			"Authorization": {"AWS4-HMAC-SHA256 Credential=k/20200101/us-east-1/kinesis/aws4_request, SignedHeaders=host, Signature=00"},
		}
		if res, err := c.s.HTTPClient().Do(h); err == nil {
			res.Body.Close()
			t.Fatal("the answer was not lost")
		}
		c.wantState(kinesistest.QueueState{InFlight: 2})
		if call.Queue != "q" || call.Stream != "s" {
			t.Errorf("the call names %q and %q", call.Stream, call.Queue)
		}

		c.s.Control("ReceiveQueueRecords", func(*kinesistest.Call) kinesistest.Fault {
			return kinesistest.Fault{Err: &kinesistest.Error{Code: "ThrottlingException"}}
		})
		c.refused("ReceiveQueueRecords", "", "ThrottlingException")
		c.s.Control("ReceiveQueueRecords", func(*kinesistest.Call) kinesistest.Fault {
			return kinesistest.Fault{Delay: 10 * time.Second}
		})
		var got []queueRecord
		if took := elapsed(func() { got = c.receive() }); took != 10*time.Second || len(got) != 2 || got[0].ReceiveCount != 2 {
			t.Errorf("after %v: %+v", took, got)
		}
		c.s.Control("ReceiveQueueRecords", nil)

		c.s.Control("AcknowledgeQueueRecords", func(k *kinesistest.Call) kinesistest.Fault {
			call = *k
			return kinesistest.Fault{PartialFailure: func(i int) string { return []string{"ThrottlingException", ""}[i] }}
		})
		failed := c.entries("AcknowledgeQueueRecords", 0, got...)
		if len(failed) != 1 || failed[0].ErrorCode != "ThrottlingException" || failed[0].ReceiptHandle != got[0].ReceiptHandle || call.Records != 2 {
			t.Errorf("%d entries, %+v", call.Records, failed)
		}
		c.wantState(kinesistest.QueueState{InFlight: 1, Acknowledged: 1})
	})
}

// A queue reads closed shards and their children. Streams in on-demand mode cannot be split, so the
// splits happen before the stream changes its mode.
func TestQueuesReadEveryShard(t *testing.T) {
	s, client := start(t)
	s.CreateStream("r", 2)
	for i := range 40 {
		s.Put("r", fmt.Sprintf("%02d", i), nil)
		if i%10 == 0 {
			shards := s.OpenShards("r")
			s.Split("r", shards[i%len(shards)])
		}
	}
	_, err := client.UpdateStreamMode(t.Context(), &kinesis.UpdateStreamModeInput{
		StreamARN: aws.String(s.StreamARN("r")), StreamModeDetails: &types.StreamModeDetails{StreamMode: types.StreamModeOnDemand},
	})
	if err != nil {
		t.Fatal(err)
	}
	c := queueClient{t, s, s.CreateQueue(kinesistest.Queue{Stream: "r", Name: "q", FromOldest: true})}
	seen := map[string]bool{}
	for range 4 {
		for _, r := range c.receive() {
			seen[r.PartitionKey] = true
		}
	}
	if len(seen) != 40 {
		t.Errorf("received %d of 40 records", len(seen))
	}
}
