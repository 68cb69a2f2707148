package kinesistest_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/kinesis/types"
	"github.com/aws/smithy-go/eventstream"

	"github.com/weir-go/weir/kinesistest"
)

// seeds contains a body for every operation. $I is replaced by a valid iterator, $T by the token of
// a listing, $N by a sequence number, $C by the ARN of a consumer, $Q by that of a queue and $R by
// a receipt handle.
var seeds = map[string]string{
	"AddTagsToStream":                        `{"StreamName":"s","Tags":{"a":"1"}}`,
	"CreateChannel":                          `{}`,
	"CreateQueue":                            `{"QueueName":"p","StreamConfigurationList":[{"StreamARN":"arn:aws:kinesis:us-east-1:000000000000:stream/od","StartingPosition":{"Type":"AT_TIMESTAMP","Timestamp":1}}],"QueueAttributes":{"VisibilityTimeoutSeconds":1,"DeadLetterConfiguration":{"TargetType":"BUILT_IN","MaxReceiveCount":2}},"Tags":{"a":"1"}}`,
	"DescribeQueue":                          `{"QueueARN":"$Q"}`,
	"DeleteQueue":                            `{"QueueARN":"$Q"}`,
	"UpdateQueue":                            `{"QueueARN":"$Q","QueueAttributes":{"DeadLetterConfiguration":{"TargetType":"NONE"}}}`,
	"ListQueues":                             `{"MaxResults":1,"StreamFilter":[{"StreamARN":"arn:aws:kinesis:us-east-1:000000000000:stream/od","StreamCreationTimestamp":1}]}`,
	"ReceiveQueueRecords":                    `{"QueueARN":"$Q","Limit":1,"WaitTimeSeconds":1,"VisibilityTimeoutSeconds":0}`,
	"ReceiveDeadLetterQueueRecords":          `{"QueueARN":"$Q","Limit":10,"VisibilityTimeoutSeconds":9}`,
	"AcknowledgeQueueRecords":                `{"QueueARN":"$Q","Entries":[{"ReceiptHandle":"$R"},{"ReceiptHandle":"$R"}]}`,
	"AcknowledgeDeadLetterQueueRecords":      `{"QueueARN":"$Q","Entries":[{"ReceiptHandle":"$R"}]}`,
	"UpdateQueueRecordsVisibility":           `{"QueueARN":"$Q","Entries":[{"ReceiptHandle":"$R","VisibilityTimeoutSeconds":7}]}`,
	"UpdateDeadLetterQueueRecordsVisibility": `{"QueueARN":"$Q","Entries":[{"ReceiptHandle":"$R","VisibilityTimeoutSeconds":0}]}`,
	"RestoreDeadLetterQueueRecords":          `{"QueueARN":"$Q","Entries":[{"ReceiptHandle":"$R"}]}`,
	"CreateStream":                           `{"StreamName":"t","ShardCount":3,"StreamModeDetails":{"StreamMode":"PROVISIONED"},"Tags":{"a":"1"},"MaxRecordSizeInKiB":2048}`,
	"DecreaseStreamRetentionPeriod":          `{"StreamName":"s","RetentionPeriodHours":24}`,
	"DeleteResourcePolicy":                   `{"ResourceARN":"arn:aws:kinesis:us-east-1:000000000000:stream/s"}`,
	"DeleteStream":                           `{"StreamName":"s","EnforceConsumerDeletion":true}`,
	"DeregisterStreamConsumer":               `{"StreamARN":"arn:aws:kinesis:us-east-1:000000000000:stream/s","ConsumerName":"c"}`,
	"DescribeAccountSettings":                `{}`,
	"DescribeLimits":                         `{}`,
	"DescribeStream":                         `{"StreamName":"s","Limit":1,"ExclusiveStartShardId":"shardId-000000000000"}`,
	"DescribeStreamConsumer":                 `{"ConsumerARN":"arn:aws:kinesis:us-east-1:000000000000:stream/s/consumer/c:1"}`,
	"DescribeStreamSummary":                  `{"StreamARN":"arn:aws:kinesis:us-east-1:000000000000:stream/s"}`,
	"DisableEnhancedMonitoring":              `{"StreamName":"s","ShardLevelMetrics":["ALL"]}`,
	"EnableEnhancedMonitoring":               `{"StreamName":"s","ShardLevelMetrics":["IncomingBytes"]}`,
	"GetRecords":                             `{"ShardIterator":"$I","Limit":2}`,
	"GetResourcePolicy":                      `{"ResourceARN":"arn:aws:kinesis:us-east-1:000000000000:stream/s/consumer/c:1"}`,
	"GetShardIterator":                       `{"StreamName":"s","ShardId":"shardId-000000000000","ShardIteratorType":"AFTER_SEQUENCE_NUMBER","StartingSequenceNumber":"$N"}`,
	"IncreaseStreamRetentionPeriod":          `{"StreamName":"s","RetentionPeriodHours":48}`,
	"ListShards":                             `{"NextToken":"$T","MaxResults":1}`,
	"ListStreamConsumers":                    `{"StreamARN":"arn:aws:kinesis:us-east-1:000000000000:stream/s","MaxResults":1}`,
	"ListStreams":                            `{"Limit":1,"ExclusiveStartStreamName":"a"}`,
	"ListTagsForResource":                    `{"ResourceARN":"arn:aws:kinesis:us-east-1:000000000000:stream/s"}`,
	"ListTagsForStream":                      `{"StreamName":"s","Limit":1}`,
	"MergeShards":                            `{"StreamName":"s","ShardToMerge":"shardId-000000000000","AdjacentShardToMerge":"shardId-000000000001"}`,
	"PutRecord":                              `{"StreamName":"s","Data":"AAEC","PartitionKey":"\u00fc","ExplicitHashKey":"340282366920938463463374607431768211455","SequenceNumberForOrdering":"$N"}`,
	"PutRecords":                             `{"StreamName":"s","Records":[{"Data":"AAEC","PartitionKey":"k"},{"Data":"","PartitionKey":"l","ExplicitHashKey":"0"}]}`,
	"PutResourcePolicy":                      `{"ResourceARN":"arn:aws:kinesis:us-east-1:000000000000:stream/s","Policy":"{}"}`,
	"RegisterStreamConsumer":                 `{"StreamARN":"arn:aws:kinesis:us-east-1:000000000000:stream/s","ConsumerName":"c"}`,
	"RemoveTagsFromStream":                   `{"StreamName":"s","TagKeys":["a"]}`,
	"SplitShard":                             `{"StreamName":"s","ShardToSplit":"shardId-000000000000","NewStartingHashKey":"1000"}`,
	"StartStreamEncryption":                  `{"StreamName":"s","EncryptionType":"KMS","KeyId":"k"}`,
	"StopStreamEncryption":                   `{"StreamName":"s","EncryptionType":"KMS","KeyId":"k"}`,
	"SubscribeToShard":                       `{"ConsumerARN":"$C","ShardId":"shardId-000000000000","StartingPosition":{"Type":"AFTER_SEQUENCE_NUMBER","SequenceNumber":"$N"}}`,
	"TagResource":                            `{"ResourceARN":"arn:aws:kinesis:us-east-1:000000000000:stream/s","Tags":{"a":"1"}}`,
	"UntagResource":                          `{"ResourceARN":"arn:aws:kinesis:us-east-1:000000000000:stream/s","TagKeys":["a"]}`,
	"UpdateAccountSettings":                  `{"MinimumThroughputBillingCommitment":{"Status":"ENABLED"}}`,
	"UpdateMaxRecordSize":                    `{"StreamARN":"arn:aws:kinesis:us-east-1:000000000000:stream/s","MaxRecordSizeInKiB":1024}`,
	"UpdateShardCount":                       `{"StreamName":"s","TargetShardCount":3,"ScalingType":"UNIFORM_SCALING"}`,
	"UpdateStreamMode":                       `{"StreamARN":"arn:aws:kinesis:us-east-1:000000000000:stream/s","StreamModeDetails":{"StreamMode":"ON_DEMAND"}}`,
	"UpdateStreamRecordDistributionStrategy": `{"StreamARN":"arn:aws:kinesis:us-east-1:000000000000:stream/s","RecordDistributionStrategy":"AUTO"}`,
	"UpdateStreamWarmThroughput":             `{"StreamName":"s","WarmThroughputMiBps":5}`,
}

// TestSeedsAreUnderstood checks that no seed is refused because of its form, so that the seeds stay
// up to date.
func TestSeedsAreUnderstood(t *testing.T) {
	for action, body := range seeds {
		s, fill := fuzzServer(t)
		status, _, answer := post(t, s, action, jsonType, []byte(fill(body)))
		for _, code := range []string{"SerializationException", "ValidationException"} {
			if bytes.Contains(answer, []byte(code)) && action != "UpdateStreamWarmThroughput" {
				t.Errorf("%s: %d %s", action, status, answer)
			}
		}
	}
}

// fuzzServer returns a server with a stream, and a function that replaces the variables in a seed.
func fuzzServer(tb testing.TB) (*kinesistest.Server, func(string) string) {
	tb.Helper()
	s, c := start(tb, kinesistest.Config{InMemory: true, NoLimits: true, MaxBytes: 1 << 20, ShardLimit: 200, SubscriptionLife: time.Millisecond})
	s.CreateStream("s", 2)
	_, n := s.Put("s", "k", []byte("x"))
	it := reader{tb, tb.Context(), c, "s"}.iterator(shardID(0), types.ShardIteratorTypeTrimHorizon)
	_, _, listed := post(tb, s, "ListShards", jsonType, []byte(`{"StreamName":"s","MaxResults":1}`))
	var token struct{ NextToken string }
	if err := json.Unmarshal(listed, &token); err != nil {
		tb.Fatal(err)
	}
	arn := s.RegisterConsumer("s", "d")
	s.CreateOnDemandStream("od")
	q := queueClient{tb, s, s.CreateQueue(kinesistest.Queue{Stream: "od", Name: "q"})}
	s.Put("od", "k", []byte("x"))
	s.Put("od", "k", []byte("y"))
	handle := q.one(`"Limit":1`).ReceiptHandle
	// The receives that follow do not wait for a record, because this server has no virtual time.
	s.Control("", func(c *kinesistest.Call) kinesistest.Fault {
		return kinesistest.Fault{EmptyPage: strings.HasPrefix(c.Action, "Receive")}
	})
	return s, strings.NewReplacer("$Q", q.arn, "$R", handle, "$I", *it, "$T", token.NextToken, "$N", n, "$C", arn).Replace
}

// FuzzHandler sends requests to the handler. No request may cause a panic, and each must get a
// readable answer in JSON or CBOR.
func FuzzHandler(f *testing.F) {
	for action, body := range seeds {
		f.Add(action, false, []byte(body))
		f.Add(action, true, []byte("\xa1\x6aStreamName\x61s"))
	}
	f.Add("ListShards", false, []byte(`{"ShardFilter":{"Type":"AT_TIMESTAMP","Timestamp":1}}`))
	f.Add("GetRecords", false, []byte(`{"ShardIterator":"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"}`))
	s, fill := fuzzServer(f)
	f.Fuzz(func(t *testing.T, action string, cbor bool, body []byte) {
		contentType := jsonType
		if cbor {
			contentType = cborType
		} else {
			body = []byte(fill(string(body)))
		}
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/", bytes.NewReader(body))
		r.Host = "localhost"
		r.Header.Set("Content-Type", contentType)
		r.Header.Set("X-Amz-Target", "Kinesis_20131202."+action)
		r.Header.Set("Authorization", "AWS4-HMAC-SHA256 Credential=k, SignedHeaders=host, Signature=0")
		r.Header.Set("X-Amz-Date", "20200101T000000Z")
		w := httptest.NewRecorder()
		s.ServeHTTP(w, r)
		res := w.Result()
		answer := ok[[]byte](t)(io.ReadAll(res.Body))
		if res.Header.Get("Content-Type") == "application/vnd.amazon.eventstream" {
			for r := bytes.NewReader(answer); r.Len() > 0; {
				if _, err := eventstream.NewDecoder().Decode(r, nil); err != nil {
					t.Fatalf("a frame of %q: %v", answer, err)
				}
			}
			return
		}
		switch {
		case res.StatusCode >= 500 || res.StatusCode < 200:
			t.Fatalf("%s %q was answered with %d %s", action, body, res.StatusCode, answer)
		case res.Header.Get("Content-Type") != contentType || res.Header.Get("Content-Length") != fmt.Sprint(len(answer)):
			t.Fatalf("the header is %v for %d bytes", res.Header, len(answer))
		case len(answer) == 0 && res.StatusCode == 200:
		case !cbor && !json.Valid(answer):
			t.Fatalf("%s %q was answered with %s", action, body, answer)
		case cbor:
			if _, rest := item(t, answer); len(rest) > 0 {
				t.Fatalf("%d bytes follow the answer", len(rest))
			}
		}
	})
}
