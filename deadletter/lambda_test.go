package deadletter_test

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weir-go/weir/deadletter"
)

// lambda contains the ARNs of the messages below.
var lambda = deadletter.Lambda{
	FunctionARN: "arn:aws:lambda:eu-west-1:111122223333:function:f", StreamARN: "arn:aws:kinesis:eu-west-1:111122223333:stream/other",
}

// failed returns dead letters of records that failed together.
func failed(reason deadletter.Reason, sequenceNumbers ...int) (letters []deadletter.Letter) {
	at := time.Date(2026, 11, 23, 1, 2, 3, 456_789_000, time.FixedZone("", 3600))
	for i, n := range sequenceNumbers {
		letters = append(letters, deadletter.Letter{
			ID: fmt.Sprintf("s/shardId-000000000000/%d+%d", n, i), Stream: "s", Shard: "shardId-000000000000", SequenceNumber: fmt.Sprint(n),
			PartitionKey: "a<b&c", Data: fmt.Append(nil, "record ", i), Arrived: at.Add(time.Duration(i-60) * time.Second).Truncate(100 * time.Millisecond), GivenUp: at,
			Reason: reason, Attempts: 3,
		})
	}
	return letters
}

// Programs that read Lambda's messages can read these messages. They have the same members, order
// and special cases as messages that Lambda sent.
func TestLambdasForm(t *testing.T) {
	const exhausted = `{"requestContext":{"requestId":"ID","functionArn":"arn:aws:lambda:eu-west-1:111122223333:function:f","condition":"RetryAttemptsExhausted","approximateInvokeCount":3},` +
		`"responseContext":{"statusCode":200,"executedVersion":"$LATEST","functionError":"Unhandled"},"version":"1.0","timestamp":"2026-11-23T00:02:03.456Z",` +
		`"KinesisBatchInfo":{"shardId":"shardId-000000000000","startSequenceNumber":"7","endSequenceNumber":"9",` +
		`"approximateArrivalOfFirstRecord":"2026-11-23T00:01:03.400Z","approximateArrivalOfLastRecord":"2026-11-23T00:01:05.400Z","batchSize":3,"streamArn":"arn:aws:kinesis:eu-west-1:111122223333:stream/s"}}`
	const aged = `{"requestContext":{"requestId":"ID","functionArn":"arn:aws:lambda:eu-west-1:111122223333:function:f","condition":"RecordAgeExceeded","approximateInvokeCount":3},` +
		`"version":"1.0","timestamp":"2026-11-23T00:02:03.456Z","KinesisBatchInfo":{"shardId":"shardId-000000000000","startSequenceNumber":"7","endSequenceNumber":"7",` +
		`"approximateArrivalOfFirstRecord":"2026-11-23T00:01:03.400Z","approximateArrivalOfLastRecord":"2026-11-23T00:01:03.400Z","batchSize":1,"streamArn":"arn:aws:kinesis:eu-west-1:111122223333:stream/s"}}`
	untimed, untried := failed(deadletter.Age, 7), failed(deadletter.Age, 7)
	untimed[0].Arrived, untried[0].Attempts = time.Time{}, 0
	id := regexp.MustCompile(`"requestId":"[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}"`)
	for name, row := range map[string]struct {
		letters []deadletter.Letter
		want    string
	}{
		"attempts":                {failed(deadletter.Attempts, 7, 8, 9), exhausted},
		"rejected":                {failed(deadletter.Rejected, 7, 8, 9), exhausted},
		"age":                     {failed(deadletter.Age, 7), aged},
		"records of an aggregate": {failed(deadletter.Attempts, 7, 7, 9), strings.Replace(exhausted, `"batchSize":3`, `"batchSize":2`, 1)},
		"never tried":             {untried, strings.Replace(aged, `InvokeCount":3`, `InvokeCount":1`, 1)},
		"no arrival":              {untimed, regexp.MustCompile(`"approximateArrival[^,]*,`).ReplaceAllString(aged, "")},
	} {
		got, err := lambda.Message(row.letters)
		if err != nil {
			t.Fatal(err)
		}
		if found := id.FindAllString(string(got), -1); len(found) != 1 {
			t.Errorf("%s: no ID in %s", name, got)
		}
		if got := id.ReplaceAllString(string(got), `"requestId":"ID"`); got != row.want {
			t.Errorf("%s:\n%s\nwant\n%s", name, got, row.want)
		}
	}
}

// For a bucket, the message contains the event of a function as a string.
func TestLambdasFormWithThePayload(t *testing.T) {
	with := lambda
	with.Payload = true
	letters := failed(deadletter.Attempts, 7, 8)
	letters[1].Data, letters[1].Arrived = nil, time.Time{}
	got, err := with.Message(letters)
	if err != nil {
		t.Fatal(err)
	}
	var m map[string]any
	if err := json.Unmarshal(got, &m); err != nil {
		t.Fatal(err)
	}
	const rest = `"eventName":"aws:kinesis:record","invokeIdentityArn":"","awsRegion":"eu-west-1","eventSourceARN":"arn:aws:kinesis:eu-west-1:111122223333:stream/s"}`
	const want = `{"Records":[{"kinesis":{"kinesisSchemaVersion":"1.0","partitionKey":"a<b&c","sequenceNumber":"7","data":"cmVjb3JkIDA=","approximateArrivalTimestamp":1795392063.400},` +
		`"eventSource":"aws:kinesis","eventVersion":"1.0","eventID":"shardId-000000000000:7",` + rest +
		`,{"kinesis":{"kinesisSchemaVersion":"1.0","partitionKey":"a<b&c","sequenceNumber":"8","data":""},` +
		`"eventSource":"aws:kinesis","eventVersion":"1.0","eventID":"shardId-000000000000:8",` + rest + `]}`
	if m["payload"] != want {
		t.Errorf("%s\nwant\n%s", m["payload"], want)
	}
	if !strings.HasSuffix(string(got), `]}"}`) { // the payload is last
		t.Errorf("%s", got)
	}
}

// Dead letters that are put again have the same message. The message of other dead letters has
// another ID.
func TestLambdasFormOfARepeat(t *testing.T) {
	seen := map[string]bool{}
	for _, letters := range [][]deadletter.Letter{failed(deadletter.Age, 7), failed(deadletter.Age, 7, 8), failed(deadletter.Age, 8)} {
		one, err1 := lambda.Message(letters)
		two, err2 := lambda.Message(letters)
		if err1 != nil || err2 != nil || string(one) != string(two) {
			t.Errorf("%s, %v\n%s, %v", one, err1, two, err2)
		}
		var m struct{ RequestContext struct{ RequestID string } }
		if err := json.Unmarshal(one, &m); err != nil || seen[m.RequestContext.RequestID] {
			t.Errorf("%s, %v", one, err)
		}
		seen[m.RequestContext.RequestID] = true
	}
}

func TestWhatLambdasFormRefuses(t *testing.T) {
	two := failed(deadletter.Age, 7, 8)
	two[1].Shard = "shardId-000000000001"
	for want, row := range map[string]struct {
		deadletter.Lambda
		letters []deadletter.Letter
	}{
		"FunctionARN is empty":                     {deadletter.Lambda{StreamARN: lambda.StreamARN}, failed(deadletter.Age, 7)},
		`StreamARN "" is not the ARN`:              {deadletter.Lambda{FunctionARN: "f"}, failed(deadletter.Age, 7)},
		`StreamARN "arn:aws:kinesis:x" is no`:      {deadletter.Lambda{FunctionARN: "f", StreamARN: "arn:aws:kinesis:x"}, failed(deadletter.Age, 7)},
		`StreamARN "arn:aws:sqs:r:1:stream/x" is`:  {deadletter.Lambda{FunctionARN: "f", StreamARN: "arn:aws:sqs:r:1:stream/x"}, failed(deadletter.Age, 7)},
		`StreamARN "arn:aws:kinesis::1:stream/x" `: {deadletter.Lambda{FunctionARN: "f", StreamARN: "arn:aws:kinesis::1:stream/x"}, failed(deadletter.Age, 7)},
		"needs at least one dead letter":           {lambda, nil},
		"about one shard: dead letters":            {lambda, two},
	} {
		if got, err := row.Message(row.letters); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %s, %v", want, got, err)
		}
	}
}

// Dead letters of several shards, or too many for one event, are in several messages.
func TestMessagesOfLambdasForm(t *testing.T) {
	letters := failed(deadletter.Attempts, 1, 2, 3, 4, 5, 6)
	letters[2].Shard, letters[4].Stream, letters[5].Stream = "shardId-000000000001", "other", "other"
	messages, err := lambda.Messages(letters)
	if err != nil {
		t.Fatal(err)
	}
	ids, mappings := map[string]bool{}, map[string]bool{}
	var about []int
	for _, m := range messages {
		about = append(about, len(m.Letters))
		ids[m.ID], mappings[m.Mapping] = true, true
		if one, err := lambda.Message(m.Letters); err != nil || string(one) != string(m.Text) || !strings.Contains(string(one), `"requestId":"`+m.ID+`"`) {
			t.Errorf("%s, %v", one, err)
		}
	}
	if !slices.Equal(about, []int{2, 1, 1, 2}) || len(ids) != 4 || len(mappings) != 2 {
		t.Errorf("messages about %d dead letters, %d IDs, mappings %v", about, len(ids), mappings)
	}
	if none, err := lambda.Messages(nil); len(none) != 0 || err != nil {
		t.Errorf("%+v, %v", none, err)
	}
	if _, err := (&deadletter.Lambda{}).Messages(letters); err == nil {
		t.Error("no ARNs are needed")
	}

	with := lambda
	with.Payload = true
	letters = failed(deadletter.Attempts, 1, 2, 3, 4)
	letters[0].Data, letters[1].Data, letters[2].Data = make([]byte, 10<<20), make([]byte, 3<<20), make([]byte, 1<<20)
	if messages, err = with.Messages(letters); err != nil || len(messages) != 2 || len(messages[0].Letters) != 1 || len(messages[1].Letters) != 3 {
		t.Errorf("%d messages, %v", len(messages), err)
	}
	if messages, err = lambda.Messages(letters); err != nil || len(messages) != 1 {
		t.Errorf("%d messages without payload, %v", len(messages), err)
	}
}
