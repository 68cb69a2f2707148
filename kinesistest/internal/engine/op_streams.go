package engine

import (
	"maps"
	"slices"
	"time"

	"github.com/weir-go/weir/kinesistest/internal/codec"
)

const (
	provisioned = "PROVISIONED"
	onDemand    = "ON_DEMAND"

	spreadAuto  = "AUTO"
	spreadByKey = "USER_PARTITION_KEY"

	onDemandShards      = 4 // shards of a new on-demand stream
	onDemandStreamLimit = 50
)

// CreateStream creates a stream.
type CreateStream struct {
	Name    optText
	Shards  optInt
	mode    optText
	record  optInt
	spread  optText
	warm    optInt
	tags    map[string]string
	modeSet bool
}

func (r *CreateStream) Fields() codec.Fields {
	return codec.Fields{
		{Name: "StreamName", Into: &r.Name},
		{Name: "ShardCount", Into: &r.Shards},
		{Name: "StreamModeDetails", Into: modeDetails(&r.mode, &r.modeSet)},
		{Name: "MaxRecordSizeInKiB", Into: &r.record},
		{Name: "RecordDistributionStrategy", Into: &r.spread},
		{Name: "WarmThroughputMiBps", Into: &r.warm},
		{Name: "Tags", Into: &r.tags},
	}
}

// modeDetails returns a function that decodes the structure that contains a stream mode.
func modeDetails(mode *optText, set *bool) func(codec.Decoder) error {
	return func(d codec.Decoder) error {
		*set = true
		return codec.Fields{{Name: "StreamMode", Into: mode}}.Decode(d)
	}
}

func (r *CreateStream) target(*Engine) Target { return Target{Stream: r.Name.V} }

func (r *CreateStream) validate() error {
	var v validator
	onOwn := r.modeSet && r.mode.V == onDemand
	v.required(r.Shards.Set || onOwn, "shardCount")
	v.intRange(r.Shards, "shardCount", 1, 100_000)
	if r.modeSet && v.required(r.mode.Set, "streamModeDetails.streamMode") {
		v.enum(r.mode, "streamModeDetails.streamMode", provisioned, onDemand)
	}
	v.intRange(r.record, "maxRecordSizeInKiB", 1024, 10240)
	v.enum(r.spread, "recordDistributionStrategy", spreadAuto, spreadByKey)
	v.intRange(r.warm, "warmThroughputMiBps", 0, 10<<10)
	v.tags(r.tags, 0)
	v.requiredName(r.Name, "streamName")
	if err := v.err(); err != nil {
		return err
	}
	if r.mode.V == onDemand {
		if r.Shards.Set {
			return validation("ShardCount cannot be given for a stream in ON_DEMAND mode.")
		}
		return nil
	}
	switch {
	case r.spread.V == spreadAuto:
		return invalid("RecordDistributionStrategy AUTO is for streams in ON_DEMAND mode.")
	case r.warm.Set:
		return validation("WarmThroughputMiBps is for streams in ON_DEMAND mode.")
	}
	return nil
}

func (r *CreateStream) do(c *call) error {
	if err := r.validate(); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	u := c.usage(c.now)
	count := int64(onDemandShards)
	if r.mode.V != onDemand {
		count = r.Shards.V
	}
	if err := c.checkTags(r.Name.V, r.tags, nil); err != nil {
		return err
	}
	switch {
	case len(r.tags) > maxTags:
		return invalid("Failed to add tags to stream %s under account %s because a given stream cannot have more than %d tags associated with it.", r.Name.V, c.cfg.Account, maxTags)
	case c.streams[r.Name.V] != nil:
		return inUse("Stream %s under account %s already exists.", r.Name.V, c.cfg.Account)
	case u.creating >= maxStreamsInWork:
		return limitExceeded("This request would exceed the limit of %d streams in state CREATING for account %s.", maxStreamsInWork, c.cfg.Account)
	case r.mode.V == onDemand && u.onDemand >= onDemandStreamLimit:
		return limitExceeded("This request would exceed the limit of %d on-demand streams for account %s.", onDemandStreamLimit, c.cfg.Account)
	case r.mode.V == onDemand && r.warm.Set && !c.commitment.enabled():
		return validation("WarmThroughputMiBps needs the account's MinimumThroughputBillingCommitment.")
	case r.mode.V != onDemand && int64(u.shards)+count > int64(c.cfg.ShardLimit):
		return c.tooManyShards(u.shards, count)
	}
	c.lastSerial++
	s := &stream{
		name: r.Name.V, arn: c.arnPrefix() + r.Name.V, serial: c.lastSerial,
		created: c.now.Truncate(time.Millisecond), byNumber: map[uint32]*shard{},
		onDemand: r.mode.V == onDemand, auto: r.spread.V == spreadAuto,
		retention: 24 * time.Hour, maxRecordKiB: 1024, warm: r.warm.V,
		tags: maps.Clone(r.tags), consumers: map[string]*consumer{}, queues: map[string]*queue{},
	}
	if r.record.Set {
		s.maxRecordKiB = r.record.V
	}
	if s.tags == nil {
		s.tags = map[string]string{}
	}
	c.streams[s.name], c.bySerial[s.serial] = s, s
	// The shards have the creation time of the stream, not the time at which it becomes ACTIVE.
	c.change(s, c.now, creating, func(time.Time) {
		for _, r := range uniformRanges(int(count)) {
			s.newShard(r, s.created, 0)
		}
	})
	return nil
}

func (c *call) tooManyShards(have int, more int64) error {
	return limitExceeded("This request would exceed the shard limit for the account %s in %s. Current shard count for the account: %d. Limit: %d. Number of additional shards that would have resulted from this request: %d. "+
		"Refer to the AWS Service Limits page (http://docs.aws.amazon.com/general/latest/gr/aws_service_limits.html) for current limits and how to request higher limits.",
		c.cfg.Account, c.cfg.Region, have, c.cfg.ShardLimit, more)
}

// usage contains the parts of the account's limits that are in use.
type usage struct{ creating, onDemand, shards int }

// usage applies changes that are due, and counts the usage. The caller holds e.mu.
func (e *Engine) usage(now time.Time) (u usage) {
	for _, s := range slices.Collect(maps.Values(e.streams)) {
		if !e.settle(s, now) {
			continue
		}
		if s.status == creating {
			u.creating++
		}
		if s.onDemand {
			u.onDemand++
		} else {
			u.shards += len(s.open)
		}
	}
	return u
}

// DeleteStream removes a stream.
type DeleteStream struct {
	streamRef
	enforce optBool
}

func (r *DeleteStream) Fields() codec.Fields {
	return r.fields(codec.Field{Name: "EnforceConsumerDeletion", Into: &r.enforce})
}

func (r *DeleteStream) do(c *call) error {
	var v validator
	if r.validate(&v); v.err() != nil {
		return v.err()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	s, err := c.lookup(&r.streamRef)
	if err == nil && s.status != creating { // like the service, also delete a stream in another state
		s, err = c.active(&r.streamRef)
	}
	if err != nil {
		return err
	}
	if len(s.consumers) > 0 && !r.enforce.V {
		return inUse("Stream %s under account %s has registered consumers. Deregister them, or set EnforceConsumerDeletion.", s.name, c.cfg.Account)
	}
	if err := c.withoutQueues(s, "deleted"); err != nil {
		return err
	}
	s.steps = nil // cancels a pending change to ACTIVE
	c.change(s, c.now, deleting)
	return nil
}

// ListStreams lists the streams of the account, sorted by name.
type ListStreams struct {
	limit        optInt
	start, token optText
}

func (r *ListStreams) Fields() codec.Fields {
	return codec.Fields{
		{Name: "Limit", Into: &r.limit},
		{Name: "ExclusiveStartStreamName", Into: &r.start},
		{Name: "NextToken", Into: &r.token},
	}
}

func (r *ListStreams) target(*Engine) Target { return Target{} }

func (r *ListStreams) do(c *call) error {
	var v validator
	v.intRange(r.limit, "limit", 1, 10_000)
	v.name(r.start, "exclusiveStartStreamName")
	if err := v.err(); err != nil {
		return err
	}
	after := r.start.V
	if r.token.Set {
		// The token takes precedence over a start name. A client may repeat the start name on each
		// page.
		t, err := c.openPage(c.now, streamsTicket, r.token.V)
		if err != nil {
			return err
		}
		after = t.text
	}
	limit := pageSize(r.limit, 100)

	c.mu.Lock()
	defer c.mu.Unlock()
	c.usage(c.now) // removes streams whose deletion is complete
	names := slices.Sorted(maps.Keys(c.streams))
	if i, found := slices.BinarySearch(names, after); found {
		names = names[i+1:]
	} else {
		names = names[i:]
	}
	more := len(names) > limit
	names = names[:min(limit, len(names))]

	out := c.out
	out.Map()
	out.Key("HasMoreStreams").Bool(more)
	out.Key("StreamNames").Array(len(names))
	for _, name := range names {
		out.Elem().Text(name)
	}
	out.End()
	out.Key("StreamSummaries").Array(len(names))
	for _, name := range names {
		s := c.streams[name]
		out.Elem().Map()
		out.Key("StreamName").Text(s.name)
		out.Key("StreamARN").Text(s.arn)
		out.Key("StreamStatus").Text(string(s.status))
		out.Key("StreamCreationTimestamp").Time(s.created)
		writeMode(out, s)
		out.End()
	}
	out.End()
	if more {
		out.Key("NextToken").Text(c.sealer.seal(ticket{kind: streamsTicket, issued: c.now, text: names[len(names)-1]}))
	}
	out.End()
	return nil
}

// pageSize returns the requested page size. It returns the service's maximum if the request has no
// size or a larger one.
func pageSize(asked optInt, most int) int {
	if asked.Set {
		return int(min(asked.V, int64(most)))
	}
	return most
}

func writeMode(out *codec.Encoder, s *stream) {
	out.Key("StreamModeDetails").Map()
	mode := provisioned
	if s.onDemand {
		mode = onDemand
	}
	out.Key("StreamMode").Text(mode)
	out.End()
}

// DescribeLimits returns the account's usage.
type DescribeLimits struct{}

func (*DescribeLimits) Fields() codec.Fields  { return nil }
func (*DescribeLimits) target(*Engine) Target { return Target{} }

func (*DescribeLimits) do(c *call) error {
	c.mu.Lock()
	u := c.usage(c.now)
	c.mu.Unlock()
	out := c.out
	out.Map()
	out.Key("ShardLimit").Int(int64(c.cfg.ShardLimit))
	out.Key("OpenShardCount").Int(int64(u.shards))
	out.Key("OnDemandStreamCount").Int(int64(u.onDemand))
	out.Key("OnDemandStreamCountLimit").Int(onDemandStreamLimit)
	out.Key("ChannelCount").Int(0)
	out.Key("ChannelCountLimit").Int(0)
	out.End()
	return nil
}
