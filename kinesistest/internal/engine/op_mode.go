package engine

import (
	"time"

	"github.com/weir-go/weir/kinesistest/internal/codec"
)

// modeChangesPerDay is how often the mode of a stream can change in 24 hours.
const modeChangesPerDay = 2

// UpdateStreamMode switches between provisioned and on-demand.
type UpdateStreamMode struct {
	streamRef
	mode    optText
	modeSet bool
	warm    optInt
}

func (r *UpdateStreamMode) Fields() codec.Fields {
	return codec.Fields{
		{Name: "StreamARN", Into: &r.arn},
		{Name: "StreamModeDetails", Into: modeDetails(&r.mode, &r.modeSet)},
		{Name: "WarmThroughputMiBps", Into: &r.warm},
	}
}

func (r *UpdateStreamMode) do(c *call) error {
	var v validator
	r.validateARN(&v)
	if v.required(r.modeSet, "streamModeDetails") && v.required(r.mode.Set, "streamModeDetails.streamMode") {
		v.enum(r.mode, "streamModeDetails.streamMode", provisioned, onDemand)
	}
	v.intRange(r.warm, "warmThroughputMiBps", 0, 10<<10)
	if err := v.err(); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	s, err := c.active(&r.streamRef)
	if err != nil {
		return err
	}
	toOnDemand := r.mode.V == onDemand
	if r.warm.Set && !(toOnDemand && c.commitment.enabled()) {
		return validation("WarmThroughputMiBps is for streams in ON_DEMAND mode, and needs the account's MinimumThroughputBillingCommitment.")
	}
	if toOnDemand == s.onDemand {
		if r.warm.Set {
			c.change(s, c.now, updating, func(time.Time) { s.warm = r.warm.V })
		}
		return nil
	}
	if !toOnDemand {
		if err := c.withoutQueues(s, "switched to PROVISIONED mode"); err != nil {
			return err
		}
	}
	u := c.usage(c.now)
	switch {
	case toOnDemand && u.onDemand >= onDemandStreamLimit:
		return limitExceeded("This request would exceed the limit of %d on-demand streams for account %s.", onDemandStreamLimit, c.cfg.Account)
	case !toOnDemand && u.shards+len(s.open) > c.cfg.ShardLimit:
		return c.tooManyShards(u.shards, int64(len(s.open)))
	case !c.unlimited && s.modeChanges.full(c.now, modeChangesPerDay):
		return limitExceeded("The mode of stream %s was changed %d times within 24 hours.", s.name, modeChangesPerDay)
	}
	s.modeChanges.add(c.now)
	c.change(s, c.now, updating, func(time.Time) {
		s.onDemand, s.warm = toOnDemand, r.warm.V
		if !toOnDemand {
			s.auto = false
		}
	})
	return nil
}

// UpdateStreamWarmThroughput sets the warm throughput of an on-demand stream.
type UpdateStreamWarmThroughput struct {
	streamRef
	warm optInt
}

func (r *UpdateStreamWarmThroughput) Fields() codec.Fields {
	return r.fields(codec.Field{Name: "WarmThroughputMiBps", Into: &r.warm})
}

func (r *UpdateStreamWarmThroughput) do(c *call) error {
	var v validator
	if v.required(r.warm.Set, "warmThroughputMiBps") {
		v.intRange(r.warm, "warmThroughputMiBps", 0, 10<<10)
	}
	r.validate(&v)
	if err := v.err(); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	s, err := c.active(&r.streamRef)
	if err != nil {
		return err
	}
	if !s.onDemand || !c.commitment.enabled() {
		return validation("Warm throughput is for streams in ON_DEMAND mode, and needs the account's MinimumThroughputBillingCommitment.")
	}
	current := s.warm
	c.change(s, c.now, updating, func(time.Time) { s.warm = r.warm.V })
	c.out.Map()
	c.out.Key("StreamName").Text(s.name)
	c.out.Key("StreamARN").Text(s.arn)
	c.out.Key("WarmThroughput").Map()
	c.out.Key("TargetMiBps").Int(r.warm.V)
	c.out.Key("CurrentMiBps").Int(current)
	c.out.End()
	c.out.End()
	return nil
}

// UpdateStreamRecordDistributionStrategy sets how records are assigned to shards.
type UpdateStreamRecordDistributionStrategy struct {
	streamRef
	spread optText
}

func (r *UpdateStreamRecordDistributionStrategy) Fields() codec.Fields {
	return codec.Fields{{Name: "StreamARN", Into: &r.arn}, {Name: "RecordDistributionStrategy", Into: &r.spread}}
}

func (r *UpdateStreamRecordDistributionStrategy) do(c *call) error {
	var v validator
	r.validateARN(&v)
	if v.required(r.spread.Set, "recordDistributionStrategy") {
		v.enum(r.spread, "recordDistributionStrategy", spreadAuto, spreadByKey)
	}
	if err := v.err(); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	s, err := c.active(&r.streamRef)
	if err != nil {
		return err
	}
	if !s.onDemand {
		return invalid("The record distribution strategy of stream %s cannot be set: it is in PROVISIONED mode.", s.name)
	}
	s.auto = r.spread.V == spreadAuto
	return nil
}
