package engine

import (
	"cmp"
	"slices"
	"time"

	"github.com/weir-go/weir/kinesistest/internal/codec"
)

// DescribeStreamSummary describes a stream without its shards.
type DescribeStreamSummary struct{ streamRef }

func (r *DescribeStreamSummary) Fields() codec.Fields { return r.fields() }

func (r *DescribeStreamSummary) do(c *call) error {
	var v validator
	if r.validate(&v); v.err() != nil {
		return v.err()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	s, err := c.lookup(&r.streamRef)
	if err != nil {
		return err
	}
	out := c.out
	out.Map()
	out.Key("StreamDescriptionSummary").Map()
	writeStream(out, s)
	out.Key("OpenShardCount").Int(int64(len(s.open)))
	out.Key("ConsumerCount").Int(int64(len(s.consumers)))
	out.Key("ChannelCount").Int(0)
	c.settleQueues(s, c.now)
	out.Key("QueueCount").Int(int64(len(s.queues)))
	out.Key("MaxRecordSizeInKiB").Int(s.maxRecordKiB)
	if s.onDemand {
		spread := spreadByKey
		if s.auto {
			spread = spreadAuto
		}
		out.Key("RecordDistributionStrategy").Text(spread)
	}
	if s.warm > 0 {
		out.Key("WarmThroughput").Map()
		writeWarm(out, s)
		out.End()
	}
	out.End()
	out.End()
	return nil
}

// writeStream writes the fields that DescribeStream and DescribeStreamSummary have in common.
func writeStream(out *codec.Encoder, s *stream) {
	out.Key("StreamName").Text(s.name)
	out.Key("StreamARN").Text(s.arn)
	out.Key("StreamStatus").Text(string(s.status))
	out.Key("StreamCreationTimestamp").Time(s.created)
	out.Key("RetentionPeriodHours").Int(int64(s.retention / time.Hour))
	writeMode(out, s)
	out.Key("EnhancedMonitoring").Array(1)
	out.Elem().Map()
	writeMetrics(out, "ShardLevelMetrics", s.metrics)
	out.End()
	out.End()
	encryption := "NONE"
	if s.kms {
		encryption = "KMS"
		out.Key("KeyId").Text(s.keyID)
	}
	out.Key("EncryptionType").Text(encryption)
}

func writeWarm(out *codec.Encoder, s *stream) {
	out.Key("TargetMiBps").Int(s.warm)
	out.Key("CurrentMiBps").Int(s.warm)
}

// DescribeStream describes a stream and a page of its shards.
type DescribeStream struct {
	streamRef
	limit optInt
	start optText
}

func (r *DescribeStream) Fields() codec.Fields {
	return r.fields(codec.Field{Name: "Limit", Into: &r.limit}, codec.Field{Name: "ExclusiveStartShardId", Into: &r.start})
}

func (r *DescribeStream) do(c *call) error {
	var v validator
	v.intRange(r.limit, "limit", 1, 10_000)
	v.name(r.start, "exclusiveStartShardId")
	r.validate(&v)
	if err := v.err(); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	s, err := c.lookup(&r.streamRef)
	if err != nil {
		return err
	}
	shards, err := c.shardsAfter(s, r.start)
	if err != nil {
		return err
	}
	limit := pageSize(r.limit, 100)
	more := len(shards) > limit
	out := c.out
	out.Map()
	out.Key("StreamDescription").Map()
	writeStream(out, s)
	out.Key("HasMoreShards").Bool(more)
	writeShards(out, shards[:min(limit, len(shards))])
	out.End()
	out.End()
	return nil
}

// shardsAfter returns the existing shards of s that follow the shard start. Without start it
// returns all.
func (c *call) shardsAfter(s *stream, start optText) ([]*shard, error) {
	c.expireAll(s, c.now)
	if !start.Set {
		return s.shards, nil
	}
	number, ok := parseShardID(start.V)
	if !ok {
		return nil, notFound("Could not find shard %s in stream %s under account %s.", start.V, s.name, c.cfg.Account)
	}
	i, found := slices.BinarySearchFunc(s.shards, number, func(sh *shard, n uint32) int { return cmp.Compare(sh.number, n) })
	if found {
		i++
	}
	return s.shards[i:], nil
}

func writeShards(out *codec.Encoder, shards []*shard) {
	out.Key("Shards").Array(len(shards))
	for _, sh := range shards {
		out.Elem().Map()
		out.Key("ShardId").Text(sh.id)
		if len(sh.parents) > 0 {
			out.Key("ParentShardId").Text(sh.parents[0])
		}
		if len(sh.parents) > 1 {
			out.Key("AdjacentParentShardId").Text(sh.parents[1])
		}
		writeHashes(out, sh.hashes)
		out.Key("SequenceNumberRange").Map()
		out.Key("StartingSequenceNumber").Text(sh.first)
		if !sh.isOpen() {
			out.Key("EndingSequenceNumber").Text(sh.last)
		}
		out.End()
		out.End()
	}
	out.End()
}

func writeHashes(out *codec.Encoder, r hashRange) {
	out.Key("HashKeyRange").Map()
	out.Key("StartingHashKey").Text(r.start.String())
	out.Key("EndingHashKey").Text(r.end.String())
	out.End()
}
