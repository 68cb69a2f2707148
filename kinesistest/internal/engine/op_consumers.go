package engine

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/weir-go/weir/kinesistest/internal/codec"
)

// consumer is a registered consumer of enhanced fan-out.
type consumer struct {
	name, arn string
	created   time.Time // precise to the second, because it is part of the ARN
	status    status
	until     time.Time // end of the status CREATING or DELETING
	tags      map[string]string
	holds     map[uint32]*hold // by shard number
}

// settle applies a change of the status that is due. It returns false if the consumer has been
// deleted.
func (c *consumer) settle(now time.Time) bool {
	if c.status == active || c.until.After(now) {
		return true
	}
	if c.status == deleting {
		return false
	}
	c.status = active
	return true
}

// forget removes the consumer's policy, which the engine stores under the consumer's ARN.
func (c *consumer) forget(e *Engine) { delete(e.policies, c.arn) }

func (c *consumer) write(out *codec.Encoder, stream string) {
	out.Map()
	out.Key("ConsumerName").Text(c.name)
	out.Key("ConsumerARN").Text(c.arn)
	out.Key("ConsumerStatus").Text(string(c.status))
	out.Key("ConsumerCreationTimestamp").Time(c.created)
	if stream != "" {
		out.Key("StreamARN").Text(stream)
	}
	out.End()
}

// RegisterStreamConsumer registers a consumer.
type RegisterStreamConsumer struct {
	streamRef
	Name optText
	tags map[string]string
}

func (r *RegisterStreamConsumer) Fields() codec.Fields {
	return codec.Fields{{Name: "StreamARN", Into: &r.arn}, {Name: "ConsumerName", Into: &r.Name}, {Name: "Tags", Into: &r.tags}}
}

func (r *RegisterStreamConsumer) target(*Engine) Target {
	return Target{Stream: r.stream(), Consumer: r.Name.V}
}

func (r *RegisterStreamConsumer) do(c *call) error {
	var v validator
	r.validateARN(&v)
	v.requiredName(r.Name, "consumerName")
	v.tags(r.tags, 0)
	if err := v.err(); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	s, err := c.active(&r.streamRef)
	if err != nil {
		return err
	}
	if err := c.checkTags(s.name, r.tags, nil); err != nil {
		return err
	}
	c.settleQueues(s, c.now)
	switch {
	case s.consumers[r.Name.V] != nil:
		return inUse("Consumer %s of stream %s under account %s already exists.", r.Name.V, s.name, c.cfg.Account)
	case c.creatingConsumers() >= maxStreamsInWork:
		return limitExceeded("This request would exceed the limit of %d consumers in state CREATING.", maxStreamsInWork)
	}
	if err := c.roomForConsumer(s); err != nil {
		return err
	}
	created := c.now.Truncate(time.Second)
	made := &consumer{
		name: r.Name.V, created: created, status: creating, until: c.now.Add(c.stateDelay), tags: maps.Clone(r.tags), holds: map[uint32]*hold{},
		arn: fmt.Sprintf("%s/consumer/%s:%d", s.arn, r.Name.V, created.Unix()),
	}
	if made.tags == nil {
		made.tags = map[string]string{}
	}
	s.consumers[made.name] = made
	c.out.Map()
	c.out.Key("Consumer")
	made.write(c.out, "")
	c.out.End()
	return nil
}

func (c *call) creatingConsumers() (n int) {
	for _, s := range c.streams {
		for _, other := range s.consumers {
			if other.settle(c.now) && other.status == creating {
				n++
			}
		}
	}
	return n
}

// consumerRef is the part of a request that names a consumer: by the consumer's ARN, by the
// stream's ARN and the consumer's name, or by all three.
type consumerRef struct {
	streamRef
	name, consumer optText
}

func (r *consumerRef) Fields() codec.Fields {
	return codec.Fields{
		{Name: "StreamARN", Into: &r.arn},
		{Name: "ConsumerName", Into: &r.name},
		{Name: "ConsumerARN", Into: &r.consumer},
	}
}

func (r *consumerRef) target(*Engine) Target {
	t := Target{Stream: r.stream(), Consumer: r.name.V}
	if r.consumer.Set {
		t.Stream, t.Consumer = nameOfARN(r.consumer.V), nameOfConsumer(r.consumer.V)
	}
	return t
}

func nameOfConsumer(arn string) string {
	_, rest, _ := strings.Cut(arn, "/consumer/")
	name, _, _ := strings.Cut(rest, ":")
	return name
}

func (r *consumerRef) check() error {
	var v validator
	v.name(r.name, "consumerName")
	v.consumerARN(r.consumer, "consumerARN")
	if err := v.err(); err != nil {
		return err
	}
	if !r.consumer.Set && !(r.arn.Set && r.name.Set) {
		return invalid("Either ConsumerARN, or both StreamARN and ConsumerName have to be given.")
	}
	return nil
}

// consumerOf returns the consumer that a request names, and the consumer's stream. The caller holds
// e.mu.
func (c *call) consumerOf(r *consumerRef) (*stream, *consumer, error) {
	t := r.target(c.Engine)
	ref := streamRef{arn: r.arn}
	if r.consumer.Set {
		if r.name.Set && r.name.V != t.Consumer {
			return nil, nil, invalid("ConsumerName %s does not match ConsumerARN %s.", r.name.V, r.consumer.V)
		}
		of, _, _ := strings.Cut(r.consumer.V, "/consumer/")
		if r.arn.Set && r.arn.V != of {
			return nil, nil, invalid("StreamARN %s does not match ConsumerARN %s.", r.arn.V, r.consumer.V)
		}
		ref.arn = codec.Some(of)
	}
	s, err := c.lookup(&ref)
	if err != nil {
		return nil, nil, err
	}
	found := s.consumers[t.Consumer]
	if found == nil || r.consumer.Set && found.arn != r.consumer.V {
		return nil, nil, notFound("Consumer %s of stream %s under account %s not found.", t.Consumer, s.name, c.cfg.Account)
	}
	return s, found, nil
}

// DescribeStreamConsumer describes a consumer.
type DescribeStreamConsumer struct{ consumerRef }

func (r *DescribeStreamConsumer) do(c *call) error {
	if err := r.check(); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	s, found, err := c.consumerOf(&r.consumerRef)
	if err != nil {
		return err
	}
	c.out.Map()
	c.out.Key("ConsumerDescription")
	found.write(c.out, s.arn)
	c.out.End()
	return nil
}

// DeregisterStreamConsumer removes a consumer.
type DeregisterStreamConsumer struct{ consumerRef }

func (r *DeregisterStreamConsumer) do(c *call) error {
	if err := r.check(); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	s, found, err := c.consumerOf(&r.consumerRef)
	if err != nil {
		return err
	}
	if found.status == creating {
		return inUse("Consumer %s of stream %s under account %s is CREATING.", found.name, s.name, c.cfg.Account)
	}
	if found.status == active {
		found.status, found.until = deleting, c.now.Add(c.stateDelay)
		found.wake()
		c.settle(s, c.now)
	}
	return nil
}

// ListStreamConsumers lists the consumers of a stream, sorted by name.
type ListStreamConsumers struct {
	streamRef
	token   optText
	limit   optInt
	created codec.Opt[time.Time]
}

func (r *ListStreamConsumers) Fields() codec.Fields {
	return codec.Fields{
		{Name: "StreamARN", Into: &r.arn},
		{Name: "NextToken", Into: &r.token},
		{Name: "MaxResults", Into: &r.limit},
		{Name: "StreamCreationTimestamp", Into: &r.created},
	}
}

func (r *ListStreamConsumers) do(c *call) error {
	var v validator
	r.validateARN(&v)
	v.intRange(r.limit, "maxResults", 1, 10_000)
	if err := v.err(); err != nil {
		return err
	}
	after := ""
	if r.token.Set {
		if r.created.Set {
			return invalid("NextToken and StreamCreationTimestamp cannot be provided together.")
		}
		t, err := c.openPage(c.now, consumersTicket, r.token.V)
		if err != nil {
			return err
		}
		after = t.text
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	s, err := c.lookup(&r.streamRef)
	if err != nil {
		return err
	}
	if r.created.Set && !r.created.V.Truncate(time.Second).Equal(s.created.Truncate(time.Second)) {
		return notFound("Stream %s under account %s created at %s not found.", s.name, c.cfg.Account, stamp(r.created.V))
	}
	names := slices.DeleteFunc(slices.Sorted(maps.Keys(s.consumers)), func(name string) bool { return name <= after })
	limit := pageSize(r.limit, 100)
	out := c.out
	out.Map()
	out.Key("Consumers").Array(min(limit, len(names)))
	for _, name := range names[:min(limit, len(names))] {
		out.Elem()
		s.consumers[name].write(out, "")
	}
	out.End()
	if len(names) > limit {
		out.Key("NextToken").Text(c.sealer.seal(ticket{kind: consumersTicket, issued: c.now, stream: s.serial, text: names[limit-1]}))
	}
	out.End()
	return nil
}
