package kinesistest_test

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"

	"github.com/weir-go/weir/kinesistest"
)

func TestQueueDeliversUntilAcknowledged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := startQueue(t, kinesistest.Config{}, kinesistest.Queue{})
		c.putAll("a", "b", "c")
		first := c.receive()
		if data(first) != "a b c" {
			t.Fatalf("received %s", data(first))
		}
		for _, r := range first {
			if r.ReceiveCount != 1 || r.PartitionKey != string(r.Data) || r.RecordId == "" || r.ApproximateArrivalTimestamp == 0 || r.FirstReceiveTimestamp == 0 {
				t.Errorf("%+v", r)
			}
		}
		if failed := c.entries("AcknowledgeQueueRecords", 0, first[0], first[1]); len(failed) > 0 {
			t.Fatalf("%+v", failed)
		}
		if got := c.receive(); len(got) > 0 {
			t.Errorf("received %s while it is hidden", data(got))
		}
		time.Sleep(30 * time.Second)
		again := c.one()
		if again.RecordId != first[2].RecordId || again.ReceiveCount != 2 || again.ReceiptHandle == first[2].ReceiptHandle || again.FirstReceiveTimestamp != first[2].FirstReceiveTimestamp {
			t.Errorf("first %+v, then %+v", first[2], again)
		}
		c.acknowledge(again)
		time.Sleep(time.Hour)
		if got := c.receive(); len(got) > 0 {
			t.Errorf("received %s after all were acknowledged", data(got))
		}
		c.wantState(kinesistest.QueueState{Acknowledged: 3})
	})
}

// elapsed returns how long f takes.
func elapsed(f func()) time.Duration {
	began := time.Now()
	f()
	return time.Since(began)
}

func TestReceiveWaitsForARecord(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := startQueue(t, kinesistest.Config{}, kinesistest.Queue{})
		for _, tc := range []struct {
			wait string
			want time.Duration
		}{{"", 9 * time.Second}, {`"WaitTimeSeconds":1`, time.Second}, {`"WaitTimeSeconds":20`, 20 * time.Second}} {
			if got := elapsed(func() { c.must("ReceiveQueueRecords", tc.wait) }); got != tc.want {
				t.Errorf("%s: returned after %v", tc.wait, got)
			}
		}
		time.AfterFunc(3*time.Second, func() { c.putAll("a") })
		if got := elapsed(func() { c.one(`"WaitTimeSeconds":20,"VisibilityTimeoutSeconds":5`) }); got != 3*time.Second {
			t.Errorf("the record came after %v", got)
		}
		if got := elapsed(func() { c.one(`"WaitTimeSeconds":20,"VisibilityTimeoutSeconds":5`) }); got != 5*time.Second {
			t.Errorf("the record came again after %v", got)
		}
		time.AfterFunc(2*time.Second, func() { c.s.DeleteQueue("q") })
		if got := elapsed(func() { c.refused("ReceiveQueueRecords", "", missing) }); got != 7*time.Second-5*time.Second {
			t.Errorf("the deletion ended the wait after %v", got)
		}
	})
}

func TestEachWaitingReceiveGetsARecord(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := startQueue(t, kinesistest.Config{}, kinesistest.Queue{})
		var mu sync.Mutex
		var got []string
		var all sync.WaitGroup
		for range 20 {
			all.Go(func() {
				r := c.receive(`"WaitTimeSeconds":20,"Limit":1`)
				mu.Lock()
				defer mu.Unlock()
				got = append(got, data(r))
			})
		}
		synctest.Wait()
		c.wantState(kinesistest.QueueState{Waiting: 20})
		for i := range 20 {
			c.putAll(fmt.Sprintf("%02d", i))
		}
		if took := elapsed(all.Wait); took != 0 {
			t.Errorf("the last receive returned after %v", took)
		}
		slices.Sort(got)
		if len(slices.Compact(got)) != 20 || got[0] != "00" {
			t.Errorf("received %v", got)
		}
		c.wantState(kinesistest.QueueState{InFlight: 20})
	})
}

// Receives of normal records and of dead letters wait at the same time, and each gets its records
// at once.
func TestReceivesOfBothPathsWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := startQueue(t, kinesistest.Config{}, kinesistest.Queue{MaxReceiveCount: 1, Visibility: time.Hour})
		const wait = `"WaitTimeSeconds":20`
		var dead, restored []queueRecord
		var all sync.WaitGroup
		all.Go(func() { dead = c.receiveDead(wait) })
		synctest.Wait()
		time.AfterFunc(time.Second, func() { c.s.Put("s", "k", []byte("a")) })
		var r queueRecord
		if got := elapsed(func() { r = c.one(wait) }); got != time.Second {
			t.Errorf("the record came after %v", got)
		}
		c.entries("UpdateQueueRecordsVisibility", 0, r)
		if got := elapsed(all.Wait); got != 0 || data(dead) != "a" {
			t.Fatalf("after %v: %+v", got, dead)
		}
		all.Go(func() { c.receiveDead(wait) })
		synctest.Wait()
		all.Go(func() { restored = c.receive(wait) })
		synctest.Wait()
		c.entries("RestoreDeadLetterQueueRecords", 0, dead...)
		synctest.Wait()
		c.wantState(kinesistest.QueueState{InFlight: 1, Waiting: 1})
		all.Wait()
		if data(restored) != "a" {
			t.Errorf("restored: %+v", restored)
		}
	})
}

// A receive whose client has disconnected does not take records.
func TestADisconnectedReceiveTakesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := startQueue(t, kinesistest.Config{}, kinesistest.Queue{})
		h := http.Client{Transport: c.s.Transport(), Timeout: 2 * time.Second}
		if res, err := h.Do(c.receiveRequest(t.Context())); err == nil {
			res.Body.Close()
			t.Fatal("the receive was answered")
		}
		synctest.Wait()
		c.putAll("a")
		c.wantState(kinesistest.QueueState{Undelivered: 1})
		c.one()
	})
}

func TestDeadLettersOverHTTP(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := startQueue(t, kinesistest.Config{}, oldestQueue(10*time.Second, 2))
		c.putAll("a", "b")
		c.receive()
		time.Sleep(10 * time.Second)
		lost := c.receive()
		c.entries("UpdateQueueRecordsVisibility", 0, lost[0])
		c.wantState(kinesistest.QueueState{InFlight: 1, VisibleDeadLetters: 1})
		time.Sleep(10 * time.Second)
		dead := c.receiveDead()
		if data(dead) != "a b" || dead[0].ReceiveCount != 3 {
			t.Fatalf("%+v", dead)
		}
		for _, action := range []string{"AcknowledgeQueueRecords", "UpdateQueueRecordsVisibility"} {
			if code := c.entryCode(action, 5, dead[0]); code != invalidArgument {
				t.Errorf("%s with the handle of a dead letter: %q", action, code)
			}
		}
		for _, action := range []string{"AcknowledgeDeadLetterQueueRecords", "UpdateDeadLetterQueueRecordsVisibility", "RestoreDeadLetterQueueRecords"} {
			if code := c.entryCode(action, 5, lost[0]); code != invalidArgument {
				t.Errorf("%s with another handle: %q", action, code)
			}
		}
		c.entries("UpdateDeadLetterQueueRecordsVisibility", 60, dead...)
		time.Sleep(30 * time.Second)
		c.wantState(kinesistest.QueueState{InFlightDeadLetters: 2})
		if failed := c.entries("AcknowledgeDeadLetterQueueRecords", 0, dead[0]); len(failed) > 0 {
			t.Errorf("%+v", failed)
		}
		if failed := c.entries("RestoreDeadLetterQueueRecords", 0, dead[1]); len(failed) > 0 {
			t.Errorf("%+v", failed)
		}
		r := c.one()
		if r.ReceiveCount != 1 || r.RecordId != dead[1].RecordId || r.FirstReceiveTimestamp != dead[1].FirstReceiveTimestamp {
			t.Errorf("restored: %+v", r)
		}
		c.wantState(kinesistest.QueueState{InFlight: 1, Acknowledged: 1})
	})
}

func TestRecordIDsAreTheSameInEveryQueueOfAStream(t *testing.T) {
	c := startQueue(t, kinesistest.Config{}, kinesistest.Queue{})
	other := queueClient{t, c.s, c.s.CreateQueue(kinesistest.Queue{Stream: "s", Name: "other"})}
	c.putAll("a", "b", "c", "d", "e")
	ids := func(records []queueRecord) map[string]string {
		m := map[string]string{}
		for _, r := range records {
			m[r.RecordId] = string(r.Data)
		}
		return m
	}
	a, b := ids(c.receive()), ids(other.receive())
	if len(a) != 5 || fmt.Sprint(a) != fmt.Sprint(b) {
		t.Errorf("%v and %v", a, b)
	}
	if code := other.acknowledge(c.receiveOf("f")); code != invalidArgument {
		t.Errorf("the handle of another queue: %q", code)
	}
}

func (c queueClient) receiveOf(text string) queueRecord {
	c.tb.Helper()
	c.putAll(text)
	return c.one()
}

func TestQueuesForgetRecordsThatLeaveTheStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := startQueue(t, kinesistest.Config{}, oldestQueue(12*time.Hour, 1))
		c.putAll("hidden", "dead", "never received")
		var kept queueRecord
		for range 2 {
			if r := c.receive(`"Limit":1`)[0]; kept.RecordId == "" {
				kept = r
			} else {
				c.entries("UpdateQueueRecordsVisibility", 0, r)
			}
		}
		time.Sleep(11 * time.Hour)
		c.entries("UpdateQueueRecordsVisibility", 43200, kept)
		time.Sleep(11 * time.Hour)
		c.entries("UpdateQueueRecordsVisibility", 43200, kept)
		c.wantState(kinesistest.QueueState{Undelivered: 1, InFlight: 1, VisibleDeadLetters: 1})
		time.Sleep(2 * time.Hour)
		if code := c.acknowledge(kept); code != missing {
			t.Errorf("a record that left the stream: %q", code)
		}
		c.wantState(kinesistest.QueueState{})
		if got := append(c.receive(), c.receiveDead()...); len(got) > 0 {
			t.Errorf("received %s", data(got))
		}
	})
}

func TestQueueStartingPositions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := startQueue(t, kinesistest.Config{}, kinesistest.Queue{})
		c.putAll("a")
		time.Sleep(time.Minute)
		middle := time.Now()
		c.putAll("b")
		time.Sleep(time.Minute)
		for position, want := range map[string]string{
			``:                                      "c",
			`,"StartingPosition":{"Type":"LATEST"}`: "c",
			`,"StartingPosition":{"Type":"TRIM_HORIZON"}`:                                            "a b c",
			fmt.Sprintf(`,"StartingPosition":{"Type":"AT_TIMESTAMP","Timestamp":%d}`, middle.Unix()): "b c",
			`,"StartingPosition":{"Type":"AT_TIMESTAMP","Timestamp":1}`:                              "a b c",
		} {
			any := queueClient{tb: t, s: c.s}
			a := any.must("CreateQueue", fmt.Sprintf(`"QueueName":"p","StreamConfigurationList":[{"StreamARN":%q%s}]`, c.s.StreamARN("s"), position))
			if a.QueueDescription.QueueStatus != "CREATING" {
				t.Errorf("%s: the answer says %s", position, a.QueueDescription.QueueStatus)
			}
			q := queueClient{t, c.s, a.QueueDescription.QueueARN}
			if d := q.must("DescribeQueue", "").QueueDescription; d.QueueStatus != "ACTIVE" || d.StreamConfigurationList[0].StartingPosition.Timestamp == 0 {
				t.Errorf("%s: %+v", position, d)
			}
			if want == "c" {
				c.putAll("c")
				if got := data(q.receive()); got != "c" {
					t.Errorf("%s: received %s", position, got)
				}
			} else if got := data(q.receive()); !strings.HasPrefix(got, strings.TrimSuffix(want, " c")) {
				t.Errorf("%s: received %s, want %s", position, got, want)
			}
			q.must("DeleteQueue", "")
		}
	})
}

func TestQueueStates(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := startQueue(t, kinesistest.Config{}, kinesistest.Queue{})
		c.s.SetStateDelay(10 * time.Second)
		any := queueClient{tb: t, s: c.s}
		create := fmt.Sprintf(`"QueueName":"p","StreamConfigurationList":[{"StreamARN":%q}],"Tags":{"team":"a"}`, c.s.StreamARN("s"))
		q := queueClient{t, c.s, any.must("CreateQueue", create).QueueDescription.QueueARN}
		any.refused("CreateQueue", create, taken)
		status := func() string { t.Helper(); return q.must("DescribeQueue", "").QueueDescription.QueueStatus }
		if got := status(); got != "CREATING" {
			t.Errorf("it is %s", got)
		}
		q.refused("ReceiveQueueRecords", "", missing)
		q.refused("UpdateQueue", `"QueueAttributes":{}`, taken)
		c.putAll("before")
		time.Sleep(10 * time.Second)
		c.putAll("after")
		r := q.one()
		if string(r.Data) != "after" {
			t.Errorf("received %s", r.Data)
		}
		d := q.must("UpdateQueue", `"QueueAttributes":{"VisibilityTimeoutSeconds":3}`).QueueDescription
		if d.QueueStatus != "UPDATING" || d.QueueAttributes.VisibilityTimeoutSeconds != 3 || d.QueueAttributes.DeadLetterConfiguration.MaxReceiveCount != 6 {
			t.Errorf("%+v", d)
		}
		c.putAll("during")
		if got := q.one(); string(got.Data) != "during" || q.acknowledge(r) != "" {
			t.Errorf("an UPDATING queue delivered %s", got.Data)
		}
		time.Sleep(20 * time.Second)
		c.wantState(kinesistest.QueueState{Undelivered: 3})
		if got := q.receive(); len(got) > 0 {
			t.Errorf("%s came before the timeout at the time of its receive", data(got))
		}
		time.Sleep(10 * time.Second)
		q.one()
		time.Sleep(3 * time.Second)
		r = q.one()
		q.must("DeleteQueue", "")
		if got := status(); got != "DELETING" {
			t.Errorf("it is %s", got)
		}
		q.refused("ReceiveQueueRecords", "", missing)
		q.refused("AcknowledgeQueueRecords", fmt.Sprintf(`"Entries":[{"ReceiptHandle":%q}]`, r.ReceiptHandle), missing)
		q.must("DeleteQueue", "")
		time.Sleep(10 * time.Second)
		q.refused("DescribeQueue", "", missing)
	})
}

func TestStreamsWithQueues(t *testing.T) {
	s, client := start(t)
	s.CreateOnDemandStream("s")
	s.CreateQueue(kinesistest.Queue{Stream: "s", Name: "q"})
	for i := range 10 {
		s.RegisterConsumer("s", fmt.Sprint("c", i))
		if i < 9 {
			s.CreateQueue(kinesistest.Queue{Stream: "s", Name: fmt.Sprint("q", i)})
		}
	}
	arn := aws.String(s.StreamARN("s"))
	any := queueClient{tb: t, s: s}
	any.refused("CreateQueue", fmt.Sprintf(`"QueueName":"more","StreamConfigurationList":[{"StreamARN":%q}]`, *arn), overLimit)
	_, err := client.RegisterStreamConsumer(t.Context(), &kinesis.RegisterStreamConsumerInput{StreamARN: arn, ConsumerName: aws.String("more")})
	wantCode(t, err, overLimit)
	_, err = client.DeleteStream(t.Context(), &kinesis.DeleteStreamInput{StreamARN: arn, EnforceConsumerDeletion: aws.Bool(true)})
	wantCode(t, err, taken)
	any.refused("UpdateStreamMode", fmt.Sprintf(`"StreamARN":%q,"StreamModeDetails":{"StreamMode":"PROVISIONED"}`, *arn), taken)
	_, _, body := post(t, s, "DescribeStreamSummary", jsonType, []byte(`{"StreamName":"s"}`))
	if text := string(body); !strings.Contains(text, `"QueueCount":10`) || !strings.Contains(text, `"ConsumerCount":10`) {
		t.Errorf("%s", text)
	}
	for i := range 9 {
		s.DeleteQueue(fmt.Sprint("q", i))
	}
	s.DeleteQueue("q")
	s.DeleteStream("s")
}

func TestListQueues(t *testing.T) {
	s, _ := start(t)
	s.CreateOnDemandStream("s")
	s.CreateOnDemandStream("u")
	for _, name := range []string{"d", "a", "c", "b"} {
		s.CreateQueue(kinesistest.Queue{Stream: "s", Name: name})
	}
	s.CreateQueue(kinesistest.Queue{Stream: "u", Name: "bb"})
	any := queueClient{tb: t, s: s}
	list := func(fields string) (names string) {
		t.Helper()
		token := ""
		for range 9 {
			a := any.must("ListQueues", fields+token)
			for _, q := range a.QueueSummaries {
				names += q.QueueName + " "
				if q.QueueARN != s.QueueARN(q.QueueName) || len(q.Streams) != 1 || q.QueueStatus != "ACTIVE" {
					t.Errorf("%+v", q)
				}
			}
			if a.NextToken == "" {
				return strings.TrimSpace(names)
			}
			token = fmt.Sprintf(`,"NextToken":%q`, a.NextToken)
		}
		t.Fatal("the list does not end")
		return ""
	}
	for fields, want := range map[string]string{
		`"MaxResults":2`: "a b bb c d",
		fmt.Sprintf(`"MaxResults":3,"StreamFilter":[{"StreamARN":%q}]`, s.StreamARN("s")):                             "a b c d",
		fmt.Sprintf(`"MaxResults":3,"StreamFilter":[{"StreamARN":%q,"StreamCreationTimestamp":1}]`, s.StreamARN("s")): "",
	} {
		if got := list(fields); got != want {
			t.Errorf("%s: %s", fields, got)
		}
	}
	any.must("TagResource", fmt.Sprintf(`"ResourceARN":%q,"Tags":{"team":"b"}`, s.QueueARN("a")))
	_, _, body := post(t, s, "ListTagsForResource", jsonType, []byte(fmt.Sprintf(`{"ResourceARN":%q}`, s.QueueARN("a"))))
	if string(body) != `{"Tags":[{"Key":"team","Value":"b"}]}` {
		t.Errorf("%s", body)
	}
}

// A receive that was cancelled takes no record that is put later, although the server notices the
// end of its connection only then.
func TestACancelledReceiveTakesNothing(t *testing.T) {
	for _, wait := range []bool{true, false} { // for the server to begin with the receive
		synctest.Test(t, func(t *testing.T) {
			c := startQueue(t, kinesistest.Config{}, kinesistest.Queue{})
			for range 200 {
				ctx, cancel := context.WithCancel(t.Context())
				var ended sync.WaitGroup
				ended.Go(func() {
					if res, err := c.s.HTTPClient().Do(c.receiveRequest(ctx)); err == nil {
						res.Body.Close()
						t.Error("the receive was answered")
					}
				})
				if wait {
					synctest.Wait()
				}
				cancel()
				ended.Wait()
				c.putAll("a")
				got := c.receive(`"WaitTimeSeconds":1`)
				if len(got) != 1 {
					t.Fatal("the cancelled receive took the record")
				}
				c.acknowledge(got[0])
			}
		})
	}
}

// receiveRequest returns the request of a receive.
func (c queueClient) receiveRequest(ctx context.Context) *http.Request {
	c.tb.Helper()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.s.URL()+"/", strings.NewReader(fmt.Sprintf(`{"QueueARN":%q}`, c.arn)))
	if err != nil {
		c.tb.Fatal(err)
	}
	for k, v := range map[string]string{
		"Content-Type": jsonType, "X-Amz-Target": "Kinesis_20131202.ReceiveQueueRecords", "X-Amz-Date": "20200101T000000Z",
		"Authorization": "AWS4-HMAC-SHA256 Credential=k/20200101/us-east-1/kinesis/aws4_request, SignedHeaders=host, Signature=00",
	} {
		req.Header.Set(k, v)
	}
	return req
}
