package model

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"slices"
	"strings"
	"time"
)

// This file contains fan-out: the consumers of a stream and their subscriptions. Each shard has at
// most one subscription.

// Subscription is a subscription to a shard. It lasts until it ends or another one replaces it.
type Subscription struct {
	st     *Stream
	sh     *Shard
	began  time.Time
	after  uint64
	taken  bool // another subscription has replaced it
	over   bool // the end of the shard was sent
	last   []byte
	Stream string
	Shard  string
}

const (
	consumerAfter    = 2 * time.Second // time until a consumer is ACTIVE
	takeoverAfter    = 5 * time.Second // time after a subscription during which another one is refused
	subscriptionLife = 5 * time.Minute
)

// consumers carries out calls about consumers.
func (st *Stream) consumers(c Call, now time.Time) Answer {
	since, known := st.made[c.consumer]
	describe := func() map[string]any {
		status := "CREATING"
		if now.Sub(since) >= consumerAfter {
			status = "ACTIVE"
		}
		return map[string]any{
			"ConsumerName": c.consumer, "ConsumerARN": st.consumerARN(c.consumer), "ConsumerStatus": status,
			"ConsumerCreationTimestamp": float64(since.UnixMilli()) / 1000,
		}
	}
	switch {
	case c.Op == "DescribeStreamConsumer" && !known:
		return Fail(400, "ResourceNotFoundException", "no consumer "+c.consumer)
	case c.Op == "DescribeStreamConsumer":
		d := describe()
		d["StreamARN"] = st.arn()
		return answer(map[string]any{"ConsumerDescription": d})
	case known:
		return Fail(400, "ResourceInUseException", "there is a consumer "+c.consumer)
	}
	if st.made == nil {
		st.made = map[string]time.Time{}
	}
	since = now
	st.made[c.consumer] = now
	return answer(map[string]any{"Consumer": describe()})
}

func (st *Stream) arn() string { return arnPrefix + st.Name }

func (st *Stream) consumerARN(name string) string {
	return fmt.Sprintf("%s/consumer/%s:%d", st.arn(), name, st.Life)
}

const arnPrefix = "arn:aws:kinesis:us-east-1:123456789012:stream/"

// streamOf returns the name of the stream in the ARN of a stream or consumer.
func streamOf(arn string) string {
	name, _, _ := strings.Cut(strings.TrimPrefix(arn, arnPrefix), "/")
	return name
}

// Subscribe carries out SubscribeToShard. It returns an error answer, or a subscription and the
// beginning of its stream.
func (s *Service) Subscribe(c Call, w Whim, now time.Time) (*Subscription, Answer) {
	st := s.streams[c.Stream]
	if st == nil {
		return nil, Fail(400, "ResourceNotFoundException", "no stream "+c.Stream)
	}
	sh := st.shard(c.Shard)
	made, known := time.Time{}, false
	for name, at := range st.made {
		if c.consumer == st.consumerARN(name) {
			made, known = at, true
		}
	}
	switch {
	case sh == nil || !known:
		return nil, Fail(400, "ResourceNotFoundException", "no shard "+c.Shard+" or no consumer "+c.consumer)
	case now.Sub(made) < consumerAfter:
		return nil, Fail(400, "ResourceInUseException", "the consumer is not ACTIVE")
	case sh.sub != nil && now.Sub(sh.sub.began) < takeoverAfter:
		return nil, Fail(400, "ResourceInUseException", "another subscription has just begun")
	}
	c.loose = true
	after, fail := sh.place(c, w)
	if fail.Status != 0 {
		return nil, fail
	}
	if sh.sub != nil {
		sh.sub.taken = true
	}
	sh.sub = &Subscription{st: st, sh: sh, began: now, after: after, Stream: c.Stream, Shard: c.Shard}
	return sh.sub, Answer{Status: 200, Body: message("initial-response", []byte("{}"))}
}

// Quiet reports whether the service has nothing to send at this time.
func (sub *Subscription) Quiet(now time.Time) bool {
	n := len(sub.sh.Records)
	return !sub.taken && !sub.over && now.Sub(sub.began) < subscriptionLife && sub.st.shard(sub.Shard) != nil && sub.sh.Closed.IsZero() &&
		(n == 0 || sub.sh.Records[n-1].Seq <= sub.after || sub.sh.Trimmed == n)
}

// The content of an event. The fields are in alphabetical order.
type (
	event struct {
		ChildShards                []born `json:",omitempty"`
		ContinuationSequenceNumber string `json:",omitempty"`
		MillisBehindLatest         int64
		Records                    []pushed
	}
	born struct {
		HashKeyRange hashes
		ParentShards []string
		ShardId      string
	}
	pushed struct {
		ApproximateArrivalTimestamp float64
		Data                        []byte
		PartitionKey                string
		SequenceNumber              string
	}
)

// Next returns the next message. It returns nil at the end of the stream.
func (sub *Subscription) Next(w Whim, now time.Time) []byte {
	switch {
	case sub.over || now.Sub(sub.began) >= subscriptionLife || sub.st.shard(sub.Shard) == nil:
		return nil
	case sub.taken:
		sub.over = true
		return exception("ResourceInUseException")
	}
	page, to, behind := sub.sh.page(sub.after, 10000, w, now)
	if len(page) > 0 {
		sub.after = page[len(page)-1].Seq
	}
	e := event{MillisBehindLatest: behind, Records: make([]pushed, 0, len(page))}
	for _, r := range page {
		e.Records = append(e.Records, pushed{float64(r.Arrival.UnixMilli()) / 1000, slices.Concat(r.Data, r.Rest), r.Key, Number(r.Seq)})
	}
	if !sub.sh.Closed.IsZero() && to == len(sub.sh.Records) {
		for _, c := range sub.sh.Children {
			var parents []string
			for _, p := range c.Parents {
				parents = append(parents, p.ID)
			}
			e.ChildShards = append(e.ChildShards, born{c.hashes, parents, c.ID})
		}
		sub.over = true
		sub.sh.sub = nil
	} else {
		e.ContinuationSequenceNumber = Number(max(sub.after, sub.sh.Start))
	}
	body, err := json.Marshal(e)
	if err != nil {
		panic(err) // cannot fail: only texts and numbers
	}
	sub.last = message("SubscribeToShardEvent", body)
	return sub.last
}

// Again returns the event that was sent last, or nil.
func (sub *Subscription) Again() []byte { return sub.last }

// Reached returns the sequence number of the record that was sent last. If no record was sent, it
// returns the number at which the subscription began.
func (sub *Subscription) Reached() uint64 { return sub.after }

// Trouble returns a message with an error of the service.
func Trouble() []byte { return exception("InternalFailureException") }

func exception(code string) []byte {
	body, _ := json.Marshal(map[string]string{"message": "sim"}) // cannot fail: only strings
	return messageOf(body, ":message-type", "exception", ":exception-type", code, ":content-type", "application/x-amz-json-1.1")
}

func message(event string, payload []byte) []byte {
	return messageOf(payload, ":message-type", "event", ":event-type", event, ":content-type", "application/x-amz-json-1.1")
}

// messageOf returns a message of the event stream. It consists of the length of the message, the
// length of the headers, a checksum of both, the headers, the payload, and a checksum of
// everything. All headers are strings.
func messageOf(payload []byte, headers ...string) []byte {
	var h []byte
	for i := 0; i < len(headers); i += 2 {
		h = append(append(h, byte(len(headers[i]))), headers[i]...)
		h = append(binary.BigEndian.AppendUint16(append(h, 7), uint16(len(headers[i+1]))), headers[i+1]...)
	}
	b := binary.BigEndian.AppendUint32(nil, uint32(16+len(h)+len(payload)))
	b = binary.BigEndian.AppendUint32(b, uint32(len(h)))
	b = binary.BigEndian.AppendUint32(b, crc32.ChecksumIEEE(b))
	b = append(append(b, h...), payload...)
	return binary.BigEndian.AppendUint32(b, crc32.ChecksumIEEE(b))
}
