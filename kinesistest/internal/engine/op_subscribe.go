package engine

import (
	"time"

	"github.com/weir-go/weir/kinesistest/internal/codec"
)

// takeoverAfter is the age at which a subscription can be taken over. Before that age, another call
// is refused.
const takeoverAfter = 5 * time.Second

// SubscribeToShard creates a subscription. It writes the payload of the initial-response.
// [Engine.Next] returns the events that follow.
type SubscribeToShard struct {
	consumerRef
	shard, kind, sequence optText
	at                    codec.Opt[time.Time]
	positioned            bool
	dryRun                optBool

	// Subscription is the created subscription, or nil. The caller must pass it to
	// [Engine.Unsubscribe].
	Subscription *Subscription
	// Busy is closed when the subscription that blocked the call ends. It is nil if no subscription
	// blocked the call.
	Busy <-chan struct{}
}

func (r *SubscribeToShard) Fields() codec.Fields {
	position := codec.Fields{
		{Name: "Type", Into: &r.kind},
		{Name: "SequenceNumber", Into: &r.sequence},
		{Name: "Timestamp", Into: &r.at},
	}
	return codec.Fields{
		{Name: "ConsumerARN", Into: &r.consumer},
		{Name: "ShardId", Into: &r.shard},
		{Name: "StartingPosition", Into: func(d codec.Decoder) error {
			r.positioned = true
			return position.Decode(d)
		}},
		{Name: "DryRun", Into: &r.dryRun},
	}
}

func (r *SubscribeToShard) target(e *Engine) Target {
	t := r.consumerRef.target(e)
	t.Shard = r.shard.V
	return t
}

func (r *SubscribeToShard) check() error {
	var v validator
	if v.required(r.consumer.Set, "consumerARN") {
		v.consumerARN(r.consumer, "consumerARN")
	}
	v.requiredName(r.shard, "shardId")
	if v.required(r.positioned, "startingPosition") && v.required(r.kind.Set, "startingPosition.type") {
		v.enum(r.kind, "startingPosition.type", afterSequenceNumber, latest, atTimestamp, atSequenceNumber, trimHorizon)
	}
	if r.sequence.Set {
		v.pattern(r.sequence.V, "startingPosition.sequenceNumber", sequencePattern)
	}
	return v.err()
}

func (r *SubscribeToShard) do(c *call) error {
	r.Subscription, r.Busy = nil, nil
	if err := r.check(); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	s, con, err := c.consumerOf(&r.consumerRef)
	if err != nil {
		return err
	}
	if con.status != active {
		return inUse("Consumer %s of stream %s under account %s is not ACTIVE, instead in state %s", con.name, s.name, c.cfg.Account, con.status)
	}
	_, sh, err := c.anyShard(s.name, r.shard.V)
	if err != nil {
		return err
	}
	if err := checkPosition(r.kind.V, r.sequence, r.at); err != nil {
		return err
	}
	index, err := c.position(s, sh, r.kind.V, r.sequence.V, r.at.V)
	if err != nil {
		return err
	}
	h := con.holds[sh.number]
	if h == nil {
		h = &hold{}
		con.holds[sh.number] = h
	}
	if h.refuses(c.now, c.cfg.HoldSubscriptions) {
		if h.sub != nil {
			r.Busy = h.sub.ended
		}
		return inUse("Consumer %s of stream %s under account %s has a subscription to shard %s that is %v old. It can be taken over after %v.",
			con.name, s.name, c.cfg.Account, sh.id, c.now.Sub(h.last).Round(time.Millisecond), takeoverAfter)
	}
	if r.dryRun.V {
		return dryRun()
	}
	if !c.unlimited {
		if !h.calls.has(c.now, subscribeCallsPerSecond, 1) {
			return limitExceeded("Rate exceeded for consumer %s and shard %s in stream %s under account %s.", con.name, sh.id, s.name, c.cfg.Account)
		}
		h.calls.use(c.now, subscribeCallsPerSecond, 1)
	}
	r.Subscription = c.subscribe(s, con, sh, h, index)
	c.out.Map()
	c.out.End()
	return nil
}
