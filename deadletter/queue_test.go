package deadletter_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/weir-go/weir/deadletter"
	"github.com/weir-go/weir/internal/proof/oldletters"
)

const queueARN = "arn:aws:kinesis:eu-west-1:111122223333:queue/q-1"

func ofQueue(position string) deadletter.Letter {
	l := deadletter.Letter{
		Version: deadletter.Version, Stream: queueARN, Shard: deadletter.QueueShard, Position: position, App: "billing",
		Reason: deadletter.Attempts, Attempts: 3, Error: "refused", Together: 1, Data: []byte("record"),
	}
	l.ID = deadletter.ID(l.App, l.RecordID())
	return l
}

func TestTheRecordOfAQueue(t *testing.T) {
	for _, c := range []struct {
		stream, shard, position string
		want                    deadletter.QueueRecord
		ok                      bool
	}{
		{queueARN, "queue", "r1", deadletter.QueueRecord{Queue: queueARN, ID: "r1"}, true},
		{queueARN, "queue", "r1+12", deadletter.QueueRecord{Queue: queueARN, ID: "r1", Sub: 12}, true},
		{queueARN, "queue", "", deadletter.QueueRecord{}, false},
		{queueARN, "queue", "r1+0", deadletter.QueueRecord{}, false},
		{queueARN, "queue", "r1+x", deadletter.QueueRecord{}, false},
		{queueARN, "shardId-000000000000", "r1", deadletter.QueueRecord{}, false},
		{"queue", "queue", "r1", deadletter.QueueRecord{}, false}, // a shard of a stream called queue
	} {
		l := deadletter.Letter{Stream: c.stream, Shard: c.shard, Position: c.position}
		got, ok := l.Queue()
		if ok != c.ok || ok && got != c.want {
			t.Errorf("%+v: %+v, %t", c, got, ok)
		}
	}
}

// Programs that read dead letters of shards find the same members, and can read them.
func TestALetterOfAQueueHasTheFormOfOthers(t *testing.T) {
	l := ofQueue("r1+2")
	text, err := json.Marshal(&l)
	if err != nil {
		t.Fatal(err)
	}
	var now, old map[string]any
	if err := json.Unmarshal(text, &now); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal([]byte(oldletters.Text), &old); err != nil {
		t.Fatal(err)
	}
	for name := range now {
		if _, known := old[name]; !known {
			t.Errorf("a letter of a queue has %s, which older versions do not know", name)
		}
	}
	if got, err := deadletter.Parse(text); err != nil || got.ID != "billing/"+queueARN+"/queue/r1+2" && got.ID != l.ID {
		t.Errorf("%+v, %v", got, err)
	}
}

// A message in Lambda's form names the queue as its source, and the record ID in place of the
// sequence number.
func TestLambdasFormOfAQueue(t *testing.T) {
	with := lambda
	with.Payload = true
	got, err := with.Message([]deadletter.Letter{ofQueue("r1+1"), ofQueue("r1+2"), ofQueue("r2")})
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		`"streamArn":"` + queueARN + `"`, `"startSequenceNumber":"r1+1"`, `"endSequenceNumber":"r2"`, `"batchSize":3`, `"shardId":"queue"`,
		`\"sequenceNumber\":\"r2\"`, `\"eventID\":\"queue:r1+2\"`, `\"awsRegion\":\"eu-west-1\"`, `\"eventSourceARN\":\"` + queueARN + `\"`,
	} {
		if !strings.Contains(string(got), want) {
			t.Errorf("no %s in %s", want, got)
		}
	}
}
