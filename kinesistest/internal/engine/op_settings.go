package engine

import (
	"slices"
	"strconv"
	"time"

	"github.com/weir-go/weir/kinesistest/internal/codec"
)

// Limits of the retention period, in hours.
const (
	minRetention = 24
	maxRetention = 8760
)

// ChangeRetention carries out IncreaseStreamRetentionPeriod and DecreaseStreamRetentionPeriod.
type ChangeRetention struct {
	streamRef
	hours    optInt
	decrease bool
}

func (r *ChangeRetention) Fields() codec.Fields {
	return r.fields(codec.Field{Name: "RetentionPeriodHours", Into: &r.hours})
}

func (r *ChangeRetention) do(c *call) error {
	var v validator
	v.required(r.hours.Set, "retentionPeriodHours")
	v.intRange(r.hours, "retentionPeriodHours", 1, 1<<31-1)
	r.validate(&v)
	if err := v.err(); err != nil {
		return err
	}
	switch {
	case r.hours.V < minRetention:
		return invalid("Minimum allowed retention period is 24 hours. Requested retention period (%d hours) is too short.", r.hours.V)
	case r.hours.V > maxRetention:
		return invalid("Maximum allowed retention period is 8760 hours. Requested retention period (%d hours) is too long.", r.hours.V)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	s, err := c.active(&r.streamRef)
	if err != nil {
		return err
	}
	have := int64(s.retention / time.Hour)
	switch {
	case r.hours.V == have:
		return nil // like the service, accept the current value without a change
	case r.decrease && r.hours.V > have:
		return invalid("Requested retention period (%d hours) for stream %s can not be longer than existing retention period (%d hours). Use IncreaseRetentionPeriod API.", r.hours.V, s.name, have)
	case !r.decrease && r.hours.V < have:
		return invalid("Requested retention period (%d hours) for stream %s can not be shorter than existing retention period (%d hours). Use DecreaseRetentionPeriod API.", r.hours.V, s.name, have)
	}
	c.expireAll(s, c.now) // a longer period must not restore expired records
	c.change(s, c.now, updating, func(at time.Time) {
		c.expireAll(s, at)
		s.retention = time.Duration(r.hours.V) * time.Hour
		c.expireAll(s, at)
	})
	return nil
}

// ChangeEncryption carries out StartStreamEncryption and StopStreamEncryption.
type ChangeEncryption struct {
	streamRef
	kind, key optText
	stop      bool
}

func (r *ChangeEncryption) Fields() codec.Fields {
	return r.fields(codec.Field{Name: "EncryptionType", Into: &r.kind}, codec.Field{Name: "KeyId", Into: &r.key})
}

// changesPerDay is how often encryption can be started, and how often it can be stopped, in 24
// hours.
const changesPerDay = 25

func (r *ChangeEncryption) do(c *call) error {
	var v validator
	if v.required(r.kind.Set, "encryptionType") {
		v.enum(r.kind, "encryptionType", "NONE", "KMS")
	}
	if v.required(r.key.Set, "keyId") {
		v.length(r.key.V, "keyId", 1, 2048)
	}
	r.validate(&v)
	if err := v.err(); err != nil {
		return err
	}
	if r.kind.V != "KMS" {
		return invalid("EncryptionType has to be KMS.")
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	s, err := c.active(&r.streamRef)
	if err != nil {
		return err
	}
	count := &s.encryptStarts
	if r.stop {
		count = &s.encryptStops
	}
	if !c.unlimited && count.full(c.now, changesPerDay) {
		return limitExceeded("The encryption of stream %s was changed %d times within 24 hours.", s.name, changesPerDay)
	}
	count.add(c.now)
	c.change(s, c.now, updating, func(time.Time) {
		if s.kms = !r.stop; s.kms {
			s.keyID = r.key.V
		} else {
			s.keyID = ""
		}
	})
	return nil
}

// shardMetrics are the metrics of enhanced monitoring.
var shardMetrics = []string{
	"IncomingBytes", "IncomingRecords", "OutgoingBytes", "OutgoingRecords",
	"WriteProvisionedThroughputExceeded", "ReadProvisionedThroughputExceeded", "IteratorAgeMilliseconds",
}

// ChangeMonitoring carries out EnableEnhancedMonitoring and DisableEnhancedMonitoring.
type ChangeMonitoring struct {
	streamRef
	metrics []string
	disable bool
}

func (r *ChangeMonitoring) Fields() codec.Fields {
	return r.fields(codec.Field{Name: "ShardLevelMetrics", Into: &r.metrics})
}

func (r *ChangeMonitoring) do(c *call) error {
	var v validator
	if v.required(r.metrics != nil, "shardLevelMetrics") {
		v.lengthOf(len(r.metrics), func() string { return listed(r.metrics) }, "shardLevelMetrics", 1, len(shardMetrics))
		for i, m := range r.metrics {
			v.enum(codec.Some(m), "shardLevelMetrics."+strconv.Itoa(i+1)+".member", append(slices.Clone(shardMetrics), "ALL")...)
		}
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
	before := s.metrics
	var after []string
	for _, m := range shardMetrics {
		named := slices.Contains(r.metrics, m) || slices.Contains(r.metrics, "ALL")
		if on := slices.Contains(before, m); r.disable && on && !named || !r.disable && (on || named) {
			after = append(after, m)
		}
	}
	s.metrics = after
	c.out.Map()
	c.out.Key("StreamName").Text(s.name)
	c.out.Key("StreamARN").Text(s.arn)
	writeMetrics(c.out, "CurrentShardLevelMetrics", before)
	writeMetrics(c.out, "DesiredShardLevelMetrics", after)
	c.out.End()
	return nil
}

func writeMetrics(out *codec.Encoder, key string, metrics []string) {
	out.Key(key).Array(len(metrics))
	for _, m := range metrics {
		out.Elem().Text(m)
	}
	out.End()
}

// UpdateMaxRecordSize sets the maximum size of a record in a stream.
type UpdateMaxRecordSize struct {
	streamRef
	kib optInt
}

func (r *UpdateMaxRecordSize) Fields() codec.Fields {
	return r.fields(codec.Field{Name: "MaxRecordSizeInKiB", Into: &r.kib})
}

func (r *UpdateMaxRecordSize) do(c *call) error {
	var v validator
	if v.required(r.kib.Set, "maxRecordSizeInKiB") {
		v.intRange(r.kib, "maxRecordSizeInKiB", 1024, 10240)
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
	c.change(s, c.now, updating, func(time.Time) { s.maxRecordKiB = r.kib.V })
	return nil
}
