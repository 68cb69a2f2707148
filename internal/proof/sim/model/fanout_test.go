package model

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"hash/crc32"
	"testing"
	"time"
)

// payloadOf parses a message and returns its payload.
func payloadOf(t *testing.T, m []byte) []byte {
	t.Helper()
	total, headers := int(binary.BigEndian.Uint32(m)), int(binary.BigEndian.Uint32(m[4:]))
	if total != len(m) || crc32.ChecksumIEEE(m[:8]) != binary.BigEndian.Uint32(m[8:]) || crc32.ChecksumIEEE(m[:total-4]) != binary.BigEndian.Uint32(m[total-4:]) {
		t.Fatalf("no message: %q", m)
	}
	return m[12+headers : total-4]
}

func TestSubscriptions(t *testing.T) {
	s := New()
	st := s.Create("s", 1, start)
	_, first := s.Put(st, "k", []byte("one"), nil, start)
	s.Put(st, "k", []byte("two"), nil, start)
	asks := func(after string, now time.Time) (*Subscription, Answer) {
		in := `{"ConsumerARN":"` + st.consumerARN("c") + `","ShardId":"shardId-000000000000","StartingPosition":{` + after + `}}`
		c, err := Read("Kinesis_20131202.SubscribeToShard", "application/x-amz-json-1.1", []byte(in))
		if err != nil {
			t.Fatal(err)
		}
		return s.Subscribe(c, Whim{}, now)
	}
	oldest := `"Type":"TRIM_HORIZON"`
	if sub, a := asks(oldest, start); sub != nil || a.Status != 400 {
		t.Errorf("without a consumer: %s", a.Body)
	}
	for _, op := range []string{"RegisterStreamConsumer", "DescribeStreamConsumer"} {
		if out, status := s.ask(t, op, `{"StreamARN":"`+st.arn()+`","ConsumerName":"c"}`, start); status != 200 {
			t.Errorf("%s: %v", op, out)
		}
	}
	if sub, a := asks(oldest, start.Add(time.Second)); sub != nil || a.Status != 400 {
		t.Errorf("before the consumer is ACTIVE: %s", a.Body)
	}
	now := start.Add(time.Minute)
	sub, a := asks(`"Type":"AFTER_SEQUENCE_NUMBER","SequenceNumber":"`+Number(first.Seq)+`"`, now)
	if sub == nil || a.Status != 200 {
		t.Fatalf("no subscription: %s", a.Body)
	}
	payloadOf(t, a.Body)
	var event struct {
		Records                    []struct{ Data []byte }
		ContinuationSequenceNumber string
		ChildShards                []any
	}
	m := sub.Next(Whim{}, now)
	if err := json.Unmarshal(payloadOf(t, m), &event); err != nil || len(event.Records) != 1 || string(event.Records[0].Data) != "two" || event.ContinuationSequenceNumber == "" {
		t.Errorf("%+v, %v", event, err)
	}
	if !bytes.Equal(sub.Again(), m) || !sub.Quiet(now) {
		t.Error("the event is not that of before, or there is another")
	}
	if other, _ := asks(oldest, now.Add(time.Second)); other != nil {
		t.Error("a second subscription right after the first")
	}
	later := now.Add(10 * time.Second)
	other, _ := asks(oldest, later)
	if other == nil || sub.Quiet(later) || !bytes.Contains(sub.Next(Whim{}, later), []byte("ResourceInUseException")) || sub.Next(Whim{}, later) != nil {
		t.Error("nobody takes over")
	}
	s.Split(st, st.Shards[0], later)
	event.ContinuationSequenceNumber = ""
	if err := json.Unmarshal(payloadOf(t, other.Next(Whim{}, later)), &event); err != nil || len(event.ChildShards) != 2 || event.ContinuationSequenceNumber != "" {
		t.Errorf("the end of the shard: %+v, %v", event, err)
	}
	if other.Next(Whim{}, later) != nil {
		t.Error("something comes after the end")
	}
	if sub, _ = asks(oldest, later); sub == nil || sub.Next(Whim{}, later.Add(6*time.Minute)) != nil {
		t.Error("it lasts for more than five minutes")
	}
}
