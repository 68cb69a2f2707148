package engine

import (
	"crypto/rand"
	"maps"
	mathrand "math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/weir-go/weir/kinesistest/internal/codec"
)

const (
	builtIn = "BUILT_IN"
	noDead  = "NONE"
)

// attributeFields are the QueueAttributes of a request.
type attributeFields struct {
	set         bool
	visibility  optInt
	deadSet     bool
	target      optText
	maxReceives optInt
}

func (a *attributeFields) decode(d codec.Decoder) error {
	a.set = true
	return codec.Fields{
		{Name: "VisibilityTimeoutSeconds", Into: &a.visibility},
		{Name: "DeadLetterConfiguration", Into: func(d codec.Decoder) error {
			a.deadSet = true
			return codec.Fields{{Name: "TargetType", Into: &a.target}, {Name: "MaxReceiveCount", Into: &a.maxReceives}}.Decode(d)
		}},
	}.Decode(d)
}

func (a *attributeFields) validate(v *validator) {
	const dead = "queueAttributes.deadLetterConfiguration."
	v.intRange(a.visibility, "queueAttributes.visibilityTimeoutSeconds", 0, maxVisibility)
	if a.deadSet && v.required(a.target.Set, dead+"targetType") {
		v.enum(a.target, dead+"targetType", builtIn, noDead)
	}
	v.intRange(a.maxReceives, dead+"maxReceiveCount", 1, maxReceiveCount)
}

// check checks the rules that concern two fields.
func (a *attributeFields) check() error {
	if a.deadSet && a.target.V == builtIn && !a.maxReceives.Set {
		return validation("MaxReceiveCount is required with TargetType BUILT_IN.")
	}
	return nil
}

// apply returns the attributes after the change. Omitted attributes stay.
func (a *attributeFields) apply(to queueAttributes) queueAttributes {
	if a.visibility.Set {
		to.visibility = time.Duration(a.visibility.V) * time.Second
	}
	switch {
	case a.deadSet && a.target.V == noDead:
		to.most = 0
	case a.deadSet:
		to.most = int(a.maxReceives.V)
	}
	return to
}

// CreateQueue creates a queue on a stream.
type CreateQueue struct {
	name       optText
	streams    []streamConfiguration
	streamsSet bool
	attributes attributeFields
	tags       map[string]string

	ARN string // the ARN of the new queue
}

// streamConfiguration is an element of a StreamConfigurationList.
type streamConfiguration struct {
	streamRef
	positioned bool
	kind       optText
	at         codec.Opt[time.Time]
}

func (s *streamConfiguration) decode(d codec.Decoder) error {
	return codec.Fields{
		{Name: "StreamARN", Into: &s.arn},
		{Name: "StartingPosition", Into: func(d codec.Decoder) error {
			s.positioned = true
			return codec.Fields{{Name: "Type", Into: &s.kind}, {Name: "Timestamp", Into: &s.at}}.Decode(d)
		}},
	}.Decode(d)
}

func (r *CreateQueue) Fields() codec.Fields {
	return codec.Fields{
		{Name: "QueueName", Into: &r.name},
		{Name: "StreamConfigurationList", Into: func(d codec.Decoder) error {
			r.streamsSet, r.streams = true, nil
			if err := codec.Expect(d, codec.TypeList); err != nil {
				return err
			}
			return d.Array(func() error {
				if len(r.streams) > 1 {
					return d.Skip() // the request is refused anyway
				}
				r.streams = append(r.streams, streamConfiguration{})
				return r.streams[len(r.streams)-1].decode(d)
			})
		}},
		{Name: "QueueAttributes", Into: r.attributes.decode},
		{Name: "Tags", Into: &r.tags},
	}
}

func (r *CreateQueue) target(*Engine) Target {
	t := Target{Queue: r.name.V}
	if len(r.streams) == 1 {
		t.Stream = r.streams[0].stream()
	}
	return t
}

func (r *CreateQueue) check() error {
	var v validator
	v.requiredName(r.name, "queueName")
	if v.required(r.streamsSet, "streamConfigurationList") && len(r.streams) == 0 {
		v.fault("[]", "streamConfigurationList", "Member must have length greater than or equal to 1")
	}
	for i := range r.streams {
		const member = "streamConfigurationList.1.member."
		s := &r.streams[i]
		s.validateARN(&v)
		if s.positioned && v.required(s.kind.Set, member+"startingPosition.type") {
			v.enum(s.kind, member+"startingPosition.type", trimHorizon, latest, atTimestamp)
		}
	}
	r.attributes.validate(&v)
	v.tags(r.tags, 0)
	if err := v.err(); err != nil {
		return err
	}
	if len(r.streams) > 1 {
		return validation("StreamConfigurationList must contain exactly one stream.")
	}
	switch s := &r.streams[0]; {
	case s.kind.V == atTimestamp && !s.at.Set:
		return validation("Timestamp is required with StartingPosition Type AT_TIMESTAMP.")
	case s.kind.V != atTimestamp && s.at.Set:
		return validation("Timestamp can be specified only with StartingPosition Type AT_TIMESTAMP.")
	}
	return r.attributes.check()
}

func (r *CreateQueue) do(c *call) error {
	if err := r.check(); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	of := &r.streams[0]
	s, err := c.active(&of.streamRef)
	if err != nil {
		return err
	}
	if err := c.mayCreate(s, r); err != nil {
		return err
	}
	c.lastSerial++
	id := strings.ToLower(rand.Text())
	q := &queue{
		name: r.name.V, id: id, arn: c.queueARN(id), serial: c.lastSerial, stream: s,
		created: c.now.Truncate(time.Millisecond), status: creating, until: c.now.Add(c.stateDelay),
		kind: latest, asked: of.at.V,
		attributes: r.attributes.apply(queueAttributes{defaultVisibility, defaultReceives}),
		tags:       maps.Clone(r.tags), cursors: map[uint32]uint64{},
		random: mathrand.New(mathrand.NewPCG(c.lastSerial, 0)),
		ledger: newLedger(c.cfg.Queues), swept: c.now,
	}
	if of.kind.Set {
		q.kind = of.kind.V
	}
	if q.tags == nil {
		q.tags = map[string]string{}
	}
	if c.cfg.Queues.LatestAtCreation || c.stateDelay == 0 {
		q.startLatest()
	}
	c.queues[id], s.queues[q.name] = q, q
	r.ARN = q.arn
	writeQueueDescription(c.out, q) // CREATING, whatever the delay
	c.settleQueue(q, c.now)
	return nil
}

// mayCreate returns why the queue cannot be created, or nil.
func (c *call) mayCreate(s *stream, r *CreateQueue) error {
	if !s.onDemand {
		return invalid("Stream %s under account %s is in PROVISIONED mode. Queues need a stream in ON_DEMAND mode.", s.name, c.cfg.Account)
	}
	if err := c.checkTags(r.name.V, r.tags, nil); err != nil {
		return err
	}
	if at := r.streams[0].at; at.Set && at.V.After(c.now.Add(time.Millisecond)) {
		return invalid("The Timestamp %s of the StartingPosition is in the future.", stamp(at.V))
	}
	inWork := 0
	for _, q := range slices.Collect(maps.Values(c.queues)) {
		if !c.settleQueue(q, c.now) {
			continue
		}
		if q.name == r.name.V {
			return inUse("Queue %s under account %s already exists.", q.name, c.cfg.Account)
		}
		if q.status == creating || q.status == deleting {
			inWork++
		}
	}
	switch {
	case len(r.tags) > maxTags:
		return invalid("Queue %s cannot have more than %d tags.", r.name.V, maxTags)
	case inWork >= maxQueuesInWork:
		return limitExceeded("This request would exceed the limit of %d queues in state CREATING or DELETING for account %s.", maxQueuesInWork, c.cfg.Account)
	}
	return c.roomForConsumer(s)
}

// roomForConsumer returns an error if the stream has no room for another consumer or queue.
func (c *call) roomForConsumer(s *stream) error {
	limit := maxConsumers
	if s.onDemand && c.commitment.enabled() {
		limit = maxConsumersAdvantage
	}
	if len(s.consumers)+len(s.queues) >= limit {
		return limitExceeded("This request would exceed the limit of %d registered consumers and queues of stream %s.", limit, s.name)
	}
	return nil
}

// DescribeQueue describes a queue.
type DescribeQueue struct{ queueRef }

func (r *DescribeQueue) Fields() codec.Fields { return r.fields() }

func (r *DescribeQueue) do(c *call) error {
	var v validator
	if r.validate(&v); v.err() != nil {
		return v.err()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	q, err := c.queueOf(r.arn.V)
	if err != nil {
		return err
	}
	writeQueueDescription(c.out, q)
	return nil
}

// DeleteQueue deletes a queue.
type DeleteQueue struct{ queueRef }

func (r *DeleteQueue) Fields() codec.Fields { return r.fields() }

func (r *DeleteQueue) do(c *call) error {
	var v validator
	if r.validate(&v); v.err() != nil {
		return v.err()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	q, err := c.queueOf(r.arn.V)
	if err != nil {
		return err
	}
	if q.status != deleting {
		q.status, q.until = deleting, c.now.Add(c.stateDelay)
		q.wakeAll()
		c.settleQueue(q, c.now)
	}
	return nil
}

// UpdateQueue changes the attributes of a queue.
type UpdateQueue struct {
	queueRef
	attributes attributeFields
}

func (r *UpdateQueue) Fields() codec.Fields {
	return r.fields(codec.Field{Name: "QueueAttributes", Into: r.attributes.decode})
}

func (r *UpdateQueue) do(c *call) error {
	var v validator
	r.validate(&v)
	if v.required(r.attributes.set, "queueAttributes") {
		r.attributes.validate(&v)
	}
	if err := v.err(); err != nil {
		return err
	}
	if err := r.attributes.check(); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	q, err := c.queueOf(r.arn.V)
	if err != nil {
		return err
	}
	if q.status != active {
		return inUse("Queue %s under account %s not ACTIVE, instead in state %s", q.name, c.cfg.Account, q.status)
	}
	q.status, q.until = updating, c.now.Add(c.stateDelay)
	q.updated = r.attributes.apply(q.attributes)
	writeQueueDescription(c.out, q)
	c.settleQueue(q, c.now)
	return nil
}

// writeQueueDescription writes an answer with the description of a queue.
func writeQueueDescription(out *codec.Encoder, q *queue) {
	out.Map()
	out.Key("QueueDescription").Map()
	writeQueue(out, q)
	out.Key("StreamConfigurationList").Array(1)
	out.Elem().Map()
	out.Key("StreamARN").Text(q.stream.arn)
	out.Key("StartingPosition").Map()
	out.Key("Type").Text(q.kind)
	switch {
	case !q.start.IsZero():
		out.Key("Timestamp").Time(q.start)
	case q.kind == atTimestamp:
		out.Key("Timestamp").Time(q.asked)
	}
	out.End()
	out.End()
	out.End()
	a := q.attributes
	if q.status == updating {
		a = q.updated
	}
	out.Key("QueueAttributes").Map()
	out.Key("VisibilityTimeoutSeconds").Int(int64(a.visibility / time.Second))
	out.Key("DeadLetterConfiguration").Map()
	if a.most == 0 {
		out.Key("TargetType").Text(noDead)
	} else {
		out.Key("TargetType").Text(builtIn)
		out.Key("MaxReceiveCount").Int(int64(a.most))
	}
	out.End()
	out.End()
	out.End()
	out.End()
}

// writeQueue writes the fields that descriptions and summaries have in common.
func writeQueue(out *codec.Encoder, q *queue) {
	out.Key("QueueName").Text(q.name)
	out.Key("QueueARN").Text(q.arn)
	out.Key("QueueStatus").Text(string(q.status))
	out.Key("QueueCreationTimestamp").Time(q.created)
}
