package kinesistest_test

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/aws/smithy-go/eventstream"

	"github.com/weir-go/weir/kinesistest"
)

// sdkFrame returns a frame that the SDK's own encoder wrote.
func sdkFrame(tb testing.TB, payload string, headers ...string) []byte {
	tb.Helper()
	m := eventstream.Message{Payload: []byte(payload)}
	for i := 0; i < len(headers); i += 2 {
		m.Headers.Set(headers[i], eventstream.StringValue(headers[i+1]))
	}
	var buf bytes.Buffer
	if err := eventstream.NewEncoder().Encode(&buf, m); err != nil {
		tb.Fatal(err)
	}
	return buf.Bytes()
}

func eventFrame(tb testing.TB, kind, contentType, payload string) []byte {
	tb.Helper()
	return sdkFrame(tb, payload, ":message-type", "event", ":event-type", kind, ":content-type", contentType)
}

// TestFramesOfAStream compares whole streams with the expected frames, in both formats.
func TestFramesOfAStream(t *testing.T) {
	cfg := kinesistest.Config{NoLimits: true, IdleEvents: time.Minute, EndOnEmptyPage: true}
	subscribing(t, cfg, func(t *testing.T, s *kinesistest.Server, arn string) {
		_, n := s.Put("s", "k", []byte{0, 0xff, 0x80})
		arrived := s.Records("s")[0].Arrival.UnixMilli()
		s.Split("s", shardID(0))
		const half = "170141183460469231731687303715884105728"

		request := fmt.Sprintf(`{"ConsumerARN":%q,"ShardId":%q,"StartingPosition":{"Type":"TRIM_HORIZON"}}`, arn, shardID(0))
		status, header, got := post(t, s, "SubscribeToShard", jsonType, []byte(request))
		if status != 200 || header.Get("Content-Type") != "application/vnd.amazon.eventstream" || header.Get("Content-Length") != "" || header.Get("X-Amzn-Requestid") == "" {
			t.Errorf("answered %d %v", status, header)
		}
		want := bytes.Join([][]byte{
			eventFrame(t, "initial-response", jsonType, "{}"),
			eventFrame(t, "SubscribeToShardEvent", jsonType, fmt.Sprintf(
				`{"Records":[{"SequenceNumber":%q,"ApproximateArrivalTimestamp":%d.%03d,"Data":"AP+A","PartitionKey":"k"}],"ContinuationSequenceNumber":%q,"MillisBehindLatest":0}`,
				n, arrived/1000, arrived%1000, n)),
			eventFrame(t, "SubscribeToShardEvent", jsonType, fmt.Sprintf(
				`{"Records":[],"MillisBehindLatest":0,"ChildShards":[{"ShardId":%q,"ParentShards":[%q],"HashKeyRange":{"StartingHashKey":"0","EndingHashKey":"170141183460469231731687303715884105727"}},{"ShardId":%q,"ParentShards":[%q],"HashKeyRange":{"StartingHashKey":"`+half+`","EndingHashKey":"340282366920938463463374607431768211455"}}]}`,
				shardID(1), shardID(0), shardID(2), shardID(0))),
		}, nil)
		if !bytes.Equal(got, want) {
			t.Errorf("got  %q\nwant %q", got, want)
		}

		request = "a3 6b 'ConsumerARN' 78 " + hex.EncodeToString([]byte{byte(len(arn))}) + "'" + arn + "' 67 'ShardId' 74 'shardId-000000000000' 70 'StartingPosition' a1 64 'Type' 6c 'TRIM_HORIZON'"
		_, _, got = post(t, s, "SubscribeToShard", cborType, unhex(t, request))
		initial := eventFrame(t, "initial-response", cborType, "\xa0")
		if !bytes.HasPrefix(got, initial) {
			t.Fatalf("the stream begins with %q", got)
		}
		r := bytes.NewReader(got[len(initial):])
		var events []map[string]any
		for r.Len() > 0 {
			m := ok[eventstream.Message](t)(eventstream.NewDecoder().Decode(r, nil))
			var headers []string
			for _, h := range m.Headers {
				headers = append(headers, h.Name+" "+h.Value.String())
			}
			if got := strings.Join(headers, ", "); got != ":message-type event, :event-type SubscribeToShardEvent, :content-type "+cborType {
				t.Errorf("a frame has %s", got)
			}
			ev, rest := item(t, m.Payload)
			if len(rest) > 0 {
				t.Errorf("%x is left of a payload", rest)
			}
			events = append(events, ev.(map[string]any))
		}
		if len(events) != 2 {
			t.Fatalf("%d events", len(events))
		}
		record := events[0]["Records"].([]any)[0].(map[string]any)
		if !bytes.Equal(record["Data"].([]byte), []byte{0, 0xff, 0x80}) || record["ApproximateArrivalTimestamp"] != [2]any{uint64(1), arrived} || events[0]["ContinuationSequenceNumber"] != n {
			t.Errorf("got %v", events[0])
		}
		if next, there := events[1]["ContinuationSequenceNumber"]; there || next != nil || len(events[1]["ChildShards"].([]any)) != 2 || events[1]["MillisBehindLatest"] != int64(0) {
			t.Errorf("the end is %v", events[1])
		}
	})
}

// TestErrorFrames compares the frames of exceptions and errors with the expected frames.
func TestErrorFrames(t *testing.T) {
	subscribing(t, unlimited, func(t *testing.T, s *kinesistest.Server, arn string) {
		request := []byte(fmt.Sprintf(`{"ConsumerARN":%q,"ShardId":%q,"StartingPosition":{"Type":"LATEST"}}`, arn, shardID(0)))
		for _, tc := range []struct {
			fault kinesistest.SubscriptionFault
			want  []byte
		}{
			{kinesistest.SubscriptionFault{Exception: &kinesistest.Error{Code: "KMSThrottlingException", Message: `"slow"`}},
				sdkFrame(t, `{"message":"\"slow\""}`, ":message-type", "exception", ":exception-type", "KMSThrottlingException", ":content-type", jsonType)},
			{kinesistest.SubscriptionFault{ProtocolError: &kinesistest.Error{Code: "Broken", Message: "as asked for"}},
				sdkFrame(t, "", ":message-type", "error", ":error-code", "Broken", ":error-message", "as asked for")},
			{kinesistest.SubscriptionFault{UnknownEvent: true, End: true}, eventFrame(t, "EventOfTomorrow", jsonType, "{}")},
			{kinesistest.SubscriptionFault{End: true}, nil},
		} {
			s.Control("SubscribeToShard", func(*kinesistest.Call) kinesistest.Fault { return kinesistest.Fault{Subscription: tc.fault} })
			status, _, got := post(t, s, "SubscribeToShard", jsonType, request)
			want := append(eventFrame(t, "initial-response", jsonType, "{}"), tc.want...)
			if status != http.StatusOK || !bytes.Equal(got, want) {
				t.Errorf("got  %d %q\nwant %q", status, got, want)
			}
		}
	})
}
