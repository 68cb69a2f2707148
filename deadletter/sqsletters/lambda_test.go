package sqsletters

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/weir-go/weir/deadletter"
)

var form = deadletter.Lambda{
	FunctionARN: "arn:aws:lambda:eu-west-1:111122223333:function:f", StreamARN: "arn:aws:kinesis:eu-west-1:111122223333:stream/s",
}

// lambda returns a destination in a queue with the given name on a fake server.
func lambda(t *testing.T, f *fake, name string) *Lambda {
	t.Helper()
	l, err := NewLambda(new(sqs.Client), "https://host/q", form)
	if err != nil {
		t.Fatal(err)
	}
	l.queue = queue(t, f, name)
	return l
}

func TestLettersOfAShardAreOneMessageOfLambdasForm(t *testing.T) {
	f := &fake{}
	l := lambda(t, f, "dead")
	letters := []deadletter.Letter{letter(1, "a"), letter(2, "b\uFFFE"), letter(3, "a")}
	letters[2].Shard = "shardId-000000000001"
	if err := l.Check(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := l.Put(t.Context(), letters); err != nil {
		t.Fatal(err)
	}
	if len(f.messages) != 2 || len(f.sends) != 1 {
		t.Fatalf("%d messages in %d requests", len(f.messages), len(f.sends))
	}
	var m struct {
		KinesisBatchInfo struct {
			BatchSize int
			ShardID   string
		}
		Payload *string
	}
	if err := json.Unmarshal([]byte(f.messages[0].body), &m); err != nil || m.KinesisBatchInfo.ShardID != letters[0].Shard || m.Payload != nil {
		t.Errorf("%s, %v", f.messages[0].body, err)
	}
	_, err := l.queue.Peek(t.Context(), 10)
	if err == nil || !strings.Contains(err.Error(), "message m0 is not a dead letter: it is in Lambda's form") || f.visible() != 2 {
		t.Errorf("%v", err)
	}
}

// Dead letters that the same worker or the next owner of the shard puts again have the same message
// group and deduplication ID.
func TestAMessageOfLambdasFormIsInAFIFOQueueOnce(t *testing.T) {
	f := &fake{}
	l := lambda(t, f, "dead.fifo")
	one, again := letter(1, "a"), letter(1, "a")
	again.GivenUp = one.GivenUp.AddDate(0, 0, 1)
	for _, letters := range [][]deadletter.Letter{{one}, {again}, {letter(2, "b")}} {
		if err := l.Put(t.Context(), letters); err != nil {
			t.Fatal(err)
		}
	}
	group, _, _ := strings.Cut(f.groups[0], " ")
	if f.groups[0] != f.groups[1] || f.groups[2] == f.groups[0] || !strings.HasPrefix(f.groups[2], group+" ") {
		t.Errorf("%q", f.groups)
	}
}

func TestWhatNewLambdaRefuses(t *testing.T) {
	with := form
	with.Payload = true
	for want, of := range map[string]deadletter.Lambda{
		"FunctionARN is empty": {StreamARN: form.StreamARN}, "Payload is for a bucket": with,
	} {
		if _, err := NewLambda(new(sqs.Client), "https://host/q", of); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v", of, err)
		}
	}
	if _, err := NewLambda(new(sqs.Client), "dead", form); err == nil {
		t.Error("no URL is needed")
	}
}
