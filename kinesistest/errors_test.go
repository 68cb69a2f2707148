package kinesistest_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math/big"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weir-go/weir/kinesistest"
	"github.com/weir-go/weir/kinesistest/internal/engine"
)

// The texts with which the service describes violated constraints.
const (
	notNull  = "Member must not be null"
	nameForm = "Member must satisfy regular expression pattern: [a-zA-Z0-9_.-]+"
	atLeast1 = "Member must have length greater than or equal to 1"
	from1    = "Member must have value greater than or equal to 1"
	most128  = "Member must have length less than or equal to 128"
	tagWords = "Some tags contain invalid characters. Valid characters: Unicode letters, digits, white space, _ . / = + - % @ :."
	account  = "000000000000"
)

// faults returns the text of a ValidationException. parts contains the value, the field and the
// constraint of each fault, in turn.
func faults(parts ...string) string {
	var all []string
	for p := range slices.Chunk(parts, 3) {
		if p[0] != "null" {
			p[0] = "'" + p[0] + "'"
		}
		all = append(all, "Value "+p[0]+" at '"+p[1]+"' failed to satisfy constraint: "+p[2])
	}
	if len(all) == 1 {
		return "1 validation error detected: " + all[0]
	}
	return fmt.Sprintf("%d validation errors detected: %s", len(all), strings.Join(all, "; "))
}

// sameFaults reports whether two texts of a ValidationException contain the same faults. The
// service lists faults in any order.
func sameFaults(a, b string) bool {
	head, as, _ := strings.Cut(a, ": ")
	other, bs, _ := strings.Cut(b, ": ")
	x, y := strings.Split(as, "; "), strings.Split(bs, "; ")
	slices.Sort(x)
	slices.Sort(y)
	return head == other && slices.Equal(x, y)
}

type errorCase struct {
	action, body string
	code, text   string // an empty text is not compared
}

const (
	invalidArgument = "InvalidArgumentException"
	missing         = "ResourceNotFoundException"
	overLimit       = "LimitExceededException"
	taken           = "ResourceInUseException"
	unfit           = "ValidationException"
	mistyped        = "SerializationException"
)

// noStream is the text with which every operation reports a missing stream.
const noStream = "Stream none under account " + account + " not found."

// errorCases returns wrong calls of each operation. Stream "s" has 3 shards, "od" is on-demand,
// "busy" is UPDATING, and "none" does not exist. Other projects recorded the texts from the
// service, or the texts follow the model of its API.
func errorCases(n map[string]string) []errorCase {
	long := strings.Repeat("a", 129)
	longer := strings.Repeat("a", 257)
	named := func(action, rest string) []errorCase {
		return []errorCase{
			{action, `{"StreamName":"none"` + rest + `}`, missing, noStream},
			{action, `{"StreamName":1` + rest + `}`, mistyped, "class com.amazon.coral.value.json.numbers.TruncatingBigNumber can not be converted to an String"},
			{action, `{"StreamName":"` + long + `"` + rest + `}`, unfit, faults(long, "streamName", most128)},
			{action, `{"StreamName":"a b"` + rest + `}`, unfit, faults("a b", "streamName", nameForm)},
			{action, `{"StreamARN":"x"` + rest + `}`, unfit, faults("x", "streamARN", `Member must satisfy regular expression pattern: arn:aws.*:kinesis:.*:\d{12}:stream/\S+`)},
			{action, `{"StreamARN":"arn:aws:kinesis:us-east-1:111111111111:stream/s"` + rest + `}`, missing, ""},
		}
	}
	inUse := func(action, rest string) errorCase {
		return errorCase{action, `{"StreamName":"busy"` + rest + `}`, taken, "Stream busy under account " + account + " not ACTIVE, instead in state UPDATING"}
	}
	arn := `"arn:aws:kinesis:us-east-1:000000000000:stream/`
	byARN := func(action, rest string) []errorCase {
		return []errorCase{
			{action, `{"StreamARN":` + arn + `none"` + rest + `}`, missing, noStream},
			{action, `{"StreamARN":[]` + rest + `}`, mistyped, "Start of list found where not expected"},
			{action, `{"StreamARN":"x"` + rest + `}`, unfit, faults("x", "streamARN", `Member must satisfy regular expression pattern: arn:aws.*:kinesis:.*:\d{12}:stream/\S+`)},
		}
	}
	noShard := func(id, stream string) string {
		return "Shard " + id + " in stream " + stream + " under account " + account + " does not exist"
	}
	notFound := func(id, stream string) string {
		return "Could not find shard " + id + " in stream " + stream + " under account " + account + "."
	}
	position := "Must either specify (1) AT_SEQUENCE_NUMBER or AFTER_SEQUENCE_NUMBER and StartingSequenceNumber or " +
		"(2) TRIM_HORIZON or LATEST and no StartingSequenceNumber. Request specified "
	tags := " because some tags contained illegal characters. The allowed characters are Unicode letters, white-spaces, '_',',','/','=','+','-','@',':'."
	kinds := "Member must satisfy enum value set: [AFTER_SEQUENCE_NUMBER, LATEST, AT_TIMESTAMP, AT_SEQUENCE_NUMBER, TRIM_HORIZON]"
	consumer := arn + `s/consumer/c:1"`
	noConsumer := []string{"DescribeStreamConsumer", "DeregisterStreamConsumer"}

	cases := slices.Concat(
		[]errorCase{
			{"AddTagsToStream", `{}`, unfit, faults("null", "tags", notNull, "null", "streamName", notNull)},
			{"AddTagsToStream", `{"StreamName":"","Tags":{}}`, unfit, faults("{}", "tags", atLeast1, "", "streamName", nameForm, "", "streamName", atLeast1)},
			{"AddTagsToStream", `{"StreamName":"s","Tags":{"a":"1","` + long + `":"3"}}`, unfit, faults("{a=1, "+long+"=3}", "tags",
				"Map keys must satisfy constraint: [Member must have length less than or equal to 128, Member must have length greater than or equal to 1]")},
			{"AddTagsToStream", `{"StreamName":"s","Tags":{"a":"1","c":"` + longer + `"}}`, unfit, faults("{a=1, c="+longer+"}", "tags",
				"Map value must satisfy constraint: [Member must have length less than or equal to 256, Member must have length greater than or equal to 0]")},
			{"AddTagsToStream", `{"StreamName":"s","Tags":"x"}`, mistyped, "Expected map or null"},
			{"AddTagsToStream", `{"StreamName":"s","Tags":{"a;b":""}}`, invalidArgument, tagWords},
			{"AddTagsToStream", `{"StreamName":"s","Tags":{"a":"b\tc"}}`, invalidArgument, tagWords},
			{"AddTagsToStream", `{"StreamName":"s","Tags":{"a":"b,c"}}`, invalidArgument, tagWords},
			{"AddTagsToStream", `{"StreamName":"s","Tags":{"a%b":""}}`, invalidArgument, "Failed to add tags to stream s under account " + account + tags},
			{"AddTagsToStream", `{"StreamName":"s","Tags":{"aws:x":""}}`, invalidArgument, ""},
			{"AddTagsToStream", `{"StreamName":"s","Tags":` + n["51 tags"] + `}`, invalidArgument, "Failed to add tags to stream s under account " + account + " because a given stream cannot have more than 50 tags associated with it."},
		}, named("AddTagsToStream", `,"Tags":{"a":"b"}`),

		[]errorCase{
			{"CreateStream", `{}`, unfit, faults("null", "shardCount", notNull, "null", "streamName", notNull)},
			{"CreateStream", `{"StreamName":"","ShardCount":0}`, unfit, faults("0", "shardCount", from1, "", "streamName", nameForm, "", "streamName", atLeast1)},
			{"CreateStream", `{"StreamName":"` + long + `","ShardCount":100001}`, unfit, faults("100001", "shardCount", "Member must have value less than or equal to 100000", long, "streamName", most128)},
			{"CreateStream", `{"StreamName":"x","ShardCount":"1"}`, mistyped, "class java.lang.String can not be converted to an Integer"},
			{"CreateStream", `{"StreamName":"s","ShardCount":1}`, taken, "Stream s under account " + account + " already exists."},
			{"CreateStream", `{"StreamName":"x","ShardCount":1000}`, overLimit, "This request would exceed the shard limit for the account " + account + " in us-east-1. " +
				"Current shard count for the account: 7. Limit: 50. Number of additional shards that would have resulted from this request: 1000. Refer to the AWS Service Limits page " +
				"(http://docs.aws.amazon.com/general/latest/gr/aws_service_limits.html) for current limits and how to request higher limits."},
			{"CreateStream", `{"StreamName":"x","StreamModeDetails":{"StreamMode":"BOTH"},"ShardCount":1}`, unfit, faults("BOTH", "streamModeDetails.streamMode", "Member must satisfy enum value set: [PROVISIONED, ON_DEMAND]")},
			{"CreateStream", `{"StreamName":"x","StreamModeDetails":[],"ShardCount":1}`, mistyped, "Start of list found where not expected"},
			{"CreateStream", `{"StreamName":"x","ShardCount":1,"Tags":{"a;b":""}}`, invalidArgument, tagWords},
		},

		[]errorCase{
			{"DecreaseStreamRetentionPeriod", `{}`, unfit, faults("null", "retentionPeriodHours", notNull, "null", "streamName", notNull)},
			{"DecreaseStreamRetentionPeriod", `{"StreamName":"s","RetentionPeriodHours":-1}`, unfit, faults("-1", "retentionPeriodHours", from1)},
			{"DecreaseStreamRetentionPeriod", `{"StreamName":"s","RetentionPeriodHours":23}`, invalidArgument, "Minimum allowed retention period is 24 hours. Requested retention period (23 hours) is too short."},
			{"DecreaseStreamRetentionPeriod", `{"StreamName":"s","RetentionPeriodHours":25}`, invalidArgument, "Requested retention period (25 hours) for stream s can not be longer than existing retention period (24 hours). Use IncreaseRetentionPeriod API."},
			inUse("DecreaseStreamRetentionPeriod", `,"RetentionPeriodHours":24`),
		}, named("DecreaseStreamRetentionPeriod", `,"RetentionPeriodHours":24`),
		[]errorCase{
			{"IncreaseStreamRetentionPeriod", `{}`, unfit, faults("null", "retentionPeriodHours", notNull, "null", "streamName", notNull)},
			{"IncreaseStreamRetentionPeriod", `{"StreamName":"s","RetentionPeriodHours":8761}`, invalidArgument, "Maximum allowed retention period is 8760 hours. Requested retention period (8761 hours) is too long."},
			{"IncreaseStreamRetentionPeriod", `{"StreamName":"long","RetentionPeriodHours":24}`, invalidArgument, "Requested retention period (24 hours) for stream long can not be shorter than existing retention period (25 hours). Use DecreaseRetentionPeriod API."},
			inUse("IncreaseStreamRetentionPeriod", `,"RetentionPeriodHours":25`),
		}, named("IncreaseStreamRetentionPeriod", `,"RetentionPeriodHours":25`),

		[]errorCase{{"DeleteStream", `{}`, unfit, faults("null", "streamName", notNull)}, {"DeleteStream", `{"StreamName":""}`, unfit, faults("", "streamName", nameForm, "", "streamName", atLeast1)}, {"DeleteStream", `{"StreamName":"fan"}`, taken, ""}, inUse("DeleteStream", "")},
		named("DeleteStream", ""),
		[]errorCase{
			{"DescribeStream", `{}`, unfit, faults("null", "streamName", notNull)},
			{"DescribeStream", `{"StreamName":"s","Limit":0,"ExclusiveStartShardId":""}`, unfit, faults("0", "limit", from1, "", "exclusiveStartShardId", nameForm, "", "exclusiveStartShardId", atLeast1)},
			{"DescribeStream", `{"StreamName":"s","Limit":100000}`, unfit, faults("100000", "limit", "Member must have value less than or equal to 10000")},
		}, named("DescribeStream", ""), named("DescribeStreamSummary", ""),
		[]errorCase{{"DescribeStreamSummary", `{}`, unfit, faults("null", "streamName", notNull)}},

		[]errorCase{
			{"EnableEnhancedMonitoring", `{}`, unfit, faults("null", "shardLevelMetrics", notNull, "null", "streamName", notNull)},
			{"EnableEnhancedMonitoring", `{"StreamName":"s","ShardLevelMetrics":[]}`, unfit, faults("[]", "shardLevelMetrics", atLeast1)},
			{"EnableEnhancedMonitoring", `{"StreamName":"s","ShardLevelMetrics":"ALL"}`, mistyped, "Expected list or null"},
			{"EnableEnhancedMonitoring", `{"StreamName":"s","ShardLevelMetrics":["x"]}`, unfit, ""},
			{"DisableEnhancedMonitoring", `{"StreamName":"s","ShardLevelMetrics":[1]}`, mistyped, "class com.amazon.coral.value.json.numbers.TruncatingBigNumber can not be converted to an String"},
		}, named("EnableEnhancedMonitoring", `,"ShardLevelMetrics":["ALL"]`), named("DisableEnhancedMonitoring", `,"ShardLevelMetrics":["ALL"]`),

		[]errorCase{
			{"GetRecords", `{}`, unfit, faults("null", "shardIterator", notNull)},
			{"GetRecords", `{"ShardIterator":"","Limit":0}`, unfit, faults("0", "limit", from1, "", "shardIterator", atLeast1)},
			{"GetRecords", `{"ShardIterator":"` + strings.Repeat("a", 513) + `","Limit":100000}`, unfit, faults("100000", "limit", "Member must have value less than or equal to 10000",
				strings.Repeat("a", 513), "shardIterator", "Member must have length less than or equal to 512")},
			{"GetRecords", `{"ShardIterator":"a"}`, invalidArgument, "Invalid ShardIterator."},
			{"GetRecords", `{"ShardIterator":"` + n["gone"] + `"}`, missing, noShard("shardId-000000000000", "gone")},
			{"GetRecords", `{"ShardIterator":true}`, mistyped, "class java.lang.Boolean can not be converted to an String"},
		},
		[]errorCase{
			{"GetShardIterator", `{}`, unfit, faults("null", "shardId", notNull, "null", "shardIteratorType", notNull, "null", "streamName", notNull)},
			{"GetShardIterator", `{"StreamName":"","ShardId":"","ShardIteratorType":"","StartingSequenceNumber":""}`, unfit, faults("", "shardId", nameForm, "", "shardId", atLeast1, "", "shardIteratorType", kinds,
				"", "startingSequenceNumber", `Member must satisfy regular expression pattern: 0|([1-9]\d{0,128})`, "", "streamName", nameForm, "", "streamName", atLeast1)},
			{"GetShardIterator", `{"StreamName":"none","ShardId":"2147483647","ShardIteratorType":"LATEST"}`, missing, noShard("shardId-002147483647", "none")},
			{"GetShardIterator", `{"StreamName":"none","ShardId":"a-00002147483647","ShardIteratorType":"LATEST"}`, missing, noShard("shardId-002147483647", "none")},
			{"GetShardIterator", `{"StreamName":"none","ShardId":"2147483648","ShardIteratorType":"LATEST"}`, missing, notFound("2147483648", "none")},
			{"GetShardIterator", `{"StreamName":"none","ShardId":"ABKLFD8","ShardIteratorType":"LATEST"}`, missing, notFound("ABKLFD8", "none")},
			{"GetShardIterator", `{"StreamName":"s","ShardId":"2.14E4","ShardIteratorType":"LATEST"}`, missing, notFound("2.14E4", "s")},
			{"GetShardIterator", `{"StreamName":"s","ShardId":"shardId-5","ShardIteratorType":"AT_SEQUENCE_NUMBER","StartingSequenceNumber":"5"}`, missing, noShard("shardId-000000000005", "s")},
			{"GetShardIterator", `{"StreamName":"s","ShardId":"0","ShardIteratorType":"AT_SEQUENCE_NUMBER"}`, invalidArgument, position + "AT_SEQUENCE_NUMBER and no StartingSequenceNumber."},
			{"GetShardIterator", `{"StreamName":"s","ShardId":"0","ShardIteratorType":"LATEST","StartingSequenceNumber":"5"}`, invalidArgument, position + "LATEST and also a StartingSequenceNumber."},
			{"GetShardIterator", `{"StreamName":"s","ShardId":"0","ShardIteratorType":"AT_TIMESTAMP"}`, invalidArgument, "Must specify timestampInMillis parameter for iterator of type AT_TIMESTAMP. Current request has no timestamp parameter."},
			{"GetShardIterator", `{"StreamName":"s","ShardId":"0","ShardIteratorType":"AT_TIMESTAMP","Timestamp":"x"}`, mistyped, "class java.lang.String can not be converted to milliseconds since epoch"},
			{"GetShardIterator", `{"StreamName":"s","ShardId":"0","ShardIteratorType":"AT_TIMESTAMP","Timestamp":99999999999}`, invalidArgument, ""},
			{"GetShardIterator", `{"StreamName":"s","ShardId":"0","ShardIteratorType":"AT_SEQUENCE_NUMBER","StartingSequenceNumber":"5"}`, invalidArgument, "Invalid StartingSequenceNumber. It encodes shardId-000000000005, while it was used in a call to a shard with shardId-000000000000"},
			{"GetShardIterator", `{"StreamName":"s","ShardId":"0","ShardIteratorType":"AT_SEQUENCE_NUMBER","StartingSequenceNumber":"` + n["first of 1"] + `"}`, invalidArgument, "Invalid StartingSequenceNumber. It encodes shardId-000000000001, while it was used in a call to a shard with shardId-000000000000"},
			{"GetShardIterator", `{"StreamName":"long","ShardId":"0","ShardIteratorType":"AT_SEQUENCE_NUMBER","StartingSequenceNumber":"` + n["of another stream"] + `"}`, invalidArgument,
				"StartingSequenceNumber " + n["of another stream"] + " used in GetShardIterator on shard shardId-000000000000 in stream long under account " + account + " is invalid because it did not come from this stream."},
			{"GetShardIterator", `{"StreamName":"s","ShardId":"0","ShardIteratorType":"AT_SEQUENCE_NUMBER","StartingSequenceNumber":"` + n["8 in index"] + `"}`, invalidArgument,
				"StartingSequenceNumber " + n["8 in index"] + " used in GetShardIterator on shard shardId-000000000000 in stream s under account " + account + " is invalid."},
			{"GetShardIterator", `{"StreamName":"s","ShardId":"0","ShardIteratorType":"AT_SEQUENCE_NUMBER","StartingSequenceNumber":"` + n["large date"] + `"}`, invalidArgument,
				"StartingSequenceNumber " + n["large date"] + " used in GetShardIterator on shard shardId-000000000000 in stream s under account " + account + " is invalid."},
		},

		[]errorCase{
			{"ListShards", `{}`, invalidArgument, "Either NextToken or StreamName should be provided."},
			{"ListShards", `{"StreamName":"s","NextToken":"x"}`, invalidArgument, "NextToken and StreamName cannot be provided together."},
			{"ListShards", `{"NextToken":"x"}`, invalidArgument, ""},
			{"ListShards", `{"StreamName":"","MaxResults":0,"ExclusiveStartShardId":""}`, unfit, faults("0", "maxResults", from1, "", "exclusiveStartShardId", nameForm, "", "exclusiveStartShardId", atLeast1, "", "streamName", nameForm, "", "streamName", atLeast1)},
			{"ListShards", `{"StreamName":"s","MaxResults":100000}`, unfit, faults("100000", "maxResults", "Member must have value less than or equal to 10000")},
			{"ListShards", `{"StreamName":"s","ShardFilter":{"Type":"X"}}`, unfit, faults("X", "shardFilter.type", "Member must satisfy enum value set: [AFTER_SHARD_ID, AT_TRIM_HORIZON, FROM_TRIM_HORIZON, AT_LATEST, AT_TIMESTAMP, FROM_TIMESTAMP]")},
			{"ListShards", `{"StreamName":"s","ShardFilter":{"Type":"AFTER_SHARD_ID"}}`, invalidArgument, ""},
		}, named("ListShards", ""),
		[]errorCase{
			{"ListStreams", `{"ExclusiveStartStreamName":"","Limit":0}`, unfit, faults("0", "limit", from1, "", "exclusiveStartStreamName", nameForm, "", "exclusiveStartStreamName", atLeast1)},
			{"ListStreams", `{"Limit":"1"}`, mistyped, "class java.lang.String can not be converted to an Integer"},
			{"ListStreams", `{"NextToken":"x"}`, invalidArgument, ""},
			{"ListTagsForStream", `{}`, unfit, faults("null", "streamName", notNull)},
			{"ListTagsForStream", `{"StreamName":"s","Limit":0,"ExclusiveStartTagKey":""}`, unfit, faults("0", "limit", from1, "", "exclusiveStartTagKey", atLeast1)},
			{"ListTagsForStream", `{"StreamName":"s","Limit":51,"ExclusiveStartTagKey":"` + long + `"}`, unfit, faults("51", "limit", "Member must have value less than or equal to 50", long, "exclusiveStartTagKey", most128)},
		}, named("ListTagsForStream", ""),

		[]errorCase{
			{"MergeShards", `{}`, unfit, faults("null", "shardToMerge", notNull, "null", "adjacentShardToMerge", notNull, "null", "streamName", notNull)},
			{"MergeShards", `{"StreamName":"none","ShardToMerge":"ABKLFD8","AdjacentShardToMerge":"0"}`, missing, notFound("ABKLFD8", "none")},
			{"MergeShards", `{"StreamName":"none","ShardToMerge":"0","AdjacentShardToMerge":"2147483648"}`, missing, notFound("2147483648", "none")},
			{"MergeShards", `{"StreamName":"s","ShardToMerge":"shardId-5","AdjacentShardToMerge":"x-0"}`, missing, notFound("shardId-000000000005", "s")},
			{"MergeShards", `{"StreamName":"s","ShardToMerge":"x-0","AdjacentShardToMerge":"x-2"}`, invalidArgument, "Shards shardId-000000000000 and shardId-000000000002 in stream s under account " + account + " are not an adjacent pair of shards eligible for merging"},
			{"MergeShards", `{"StreamName":"s","ShardToMerge":"1","AdjacentShardToMerge":"0"}`, invalidArgument, "Shards shardId-000000000001 and shardId-000000000000 in stream s under account " + account + " are not an adjacent pair of shards eligible for merging"},
			{"MergeShards", `{"StreamName":"od","ShardToMerge":"0","AdjacentShardToMerge":"1"}`, unfit, ""},
			inUse("MergeShards", `,"ShardToMerge":"0","AdjacentShardToMerge":"1"`),
		}, named("MergeShards", `,"ShardToMerge":"0","AdjacentShardToMerge":"1"`),
		[]errorCase{
			{"SplitShard", `{}`, unfit, faults("null", "newStartingHashKey", notNull, "null", "streamName", notNull, "null", "shardToSplit", notNull)},
			{"SplitShard", `{"StreamName":"s","ShardToSplit":"0","NewStartingHashKey":""}`, unfit, faults("", "newStartingHashKey", `Member must satisfy regular expression pattern: 0|([1-9]\d{0,38})`)},
			{"SplitShard", `{"StreamName":"none","ShardToSplit":"2.14E4","NewStartingHashKey":"0"}`, missing, notFound("2.14E4", "none")},
			{"SplitShard", `{"StreamName":"s","ShardToSplit":"shardId-5","NewStartingHashKey":"0"}`, missing, notFound("shardId-000000000005", "s")},
			{"SplitShard", `{"StreamName":"s","ShardToSplit":"shard-0","NewStartingHashKey":"1"}`, invalidArgument, "NewStartingHashKey 1 used in SplitShard() on shard shardId-000000000000 in stream s under account " + account +
				" is not both greater than one plus the shard's StartingHashKey 0 and less than the shard's EndingHashKey 113427455640312821154458202477256070484."},
			{"SplitShard", `{"StreamName":"od","ShardToSplit":"0","NewStartingHashKey":"100"}`, unfit, ""},
			inUse("SplitShard", `,"ShardToSplit":"0","NewStartingHashKey":"100"`),
		}, named("SplitShard", `,"ShardToSplit":"0","NewStartingHashKey":"100"`),
		[]errorCase{
			{"UpdateShardCount", `{}`, unfit, faults("null", "scalingType", notNull, "null", "streamName", notNull, "null", "targetShardCount", notNull)},
			{"UpdateShardCount", `{"StreamName":"s","ScalingType":"","TargetShardCount":0}`, unfit, faults("", "scalingType", "Member must satisfy enum value set: [UNIFORM_SCALING]", "0", "targetShardCount", from1)},
			{"UpdateShardCount", `{"StreamName":"s","ScalingType":"UNIFORM_SCALING","TargetShardCount":7}`, overLimit, "UpdateShardCount cannot scale up over double your current open shard count. Current open shard count: 3 Target shard count: 7"},
			{"UpdateShardCount", `{"StreamName":"s","ScalingType":"UNIFORM_SCALING","TargetShardCount":1}`, overLimit, "UpdateShardCount cannot scale down below half your current open shard count. Current open shard count: 3 Target shard count: 1"},
			inUse("UpdateShardCount", `,"ScalingType":"UNIFORM_SCALING","TargetShardCount":2`),
		}, named("UpdateShardCount", `,"ScalingType":"UNIFORM_SCALING","TargetShardCount":2`),

		[]errorCase{
			{"PutRecord", `{}`, unfit, faults("null", "partitionKey", notNull, "null", "data", notNull, "null", "streamName", notNull)},
			{"PutRecord", `{"StreamName":"","PartitionKey":"","Data":"","ExplicitHashKey":"","SequenceNumberForOrdering":""}`, unfit, faults("", "sequenceNumberForOrdering", `Member must satisfy regular expression pattern: 0|([1-9]\d{0,128})`,
				"", "partitionKey", atLeast1, "", "explicitHashKey", `Member must satisfy regular expression pattern: 0|([1-9]\d{0,38})`, "", "streamName", nameForm, "", "streamName", atLeast1)},
			{"PutRecord", `{"StreamName":"` + long + `","PartitionKey":"` + longer + `","Data":"` + n["1 MiB and 1 byte"] + `"}`, unfit, faults(longer, "partitionKey", "Member must have length less than or equal to 256",
				"java.nio.HeapByteBuffer[pos=0 lim=1048577 cap=1048577]", "data", "Member must have length less than or equal to 1048576", long, "streamName", most128)},
			{"PutRecord", `{"StreamName":"s","PartitionKey":"a","Data":"=+/="}`, mistyped, "'=+/=' can not be converted to a Blob: Invalid Base64 character: '='"},
			{"PutRecord", `{"StreamName":"s","PartitionKey":"a","Data":"","ExplicitHashKey":"340282366920938463463374607431768211456"}`, invalidArgument,
				"Invalid ExplicitHashKey. ExplicitHashKey must be in the range: [0, 2^128-1]. Specified value was 340282366920938463463374607431768211456"},
			{"PutRecord", `{"StreamName":"s","PartitionKey":"a","Data":"","SequenceNumberForOrdering":"` + n["of the future"] + `"}`, invalidArgument,
				"ExclusiveMinimumSequenceNumber " + n["of the future"] + " used in PutRecord on stream s under account " + account + " is invalid."},
			{"PutRecord", `{"StreamName":"s","PartitionKey":"a","Data":"","SequenceNumberForOrdering":"` + n["first of 1"] + `"}`, invalidArgument,
				"ExclusiveMinimumSequenceNumber " + n["first of 1"] + " used in PutRecord on stream s under account " + account + " is invalid."},
			{"PutRecord", `{"StreamName":"s","PartitionKey":"a","Data":"","SequenceNumberForOrdering":"` + n["version 4"] + `"}`, invalidArgument,
				"ExclusiveMinimumSequenceNumber " + n["version 4"] + " used in PutRecord on stream s under account " + account + " is invalid."},
			{"PutRecord", `{"StreamName":"s","PartitionKey":"a","Data":"","SequenceNumberForOrdering":"` + n["8 in index"] + `"}`, invalidArgument,
				"ExclusiveMinimumSequenceNumber " + n["8 in index"] + " used in PutRecord on stream s under account " + account + " is invalid."},
			{"PutRecord", `{"StreamName":"s","PartitionKey":"a","Data":"","DryRun":true}`, "DryRunOperationException", ""},
		}, named("PutRecord", `,"PartitionKey":"a","Data":""`),
		[]errorCase{
			{"PutRecords", `{}`, unfit, faults("null", "records", notNull, "null", "streamName", notNull)},
			{"PutRecords", `{"StreamName":"","Records":[]}`, unfit, faults("[]", "records", atLeast1, "", "streamName", nameForm, "", "streamName", atLeast1)},
			{"PutRecords", `{"StreamName":"s","Records":[{"PartitionKey":"a","Data":""},{"ExplicitHashKey":""}]}`, unfit, faults("null", "records.2.member.partitionKey", notNull, "null", "records.2.member.data", notNull,
				"", "records.2.member.explicitHashKey", `Member must satisfy regular expression pattern: 0|([1-9]\d{0,38})`)},
			{"PutRecords", `{"StreamName":"s","Records":{}}`, mistyped, "Start of structure or map found where not expected."},
			{"PutRecords", `{"StreamName":"s","Records":["x"]}`, mistyped, "Expected null"},
			{"PutRecords", `{"StreamName":"s","Records":[{"PartitionKey":1}]}`, mistyped, "class com.amazon.coral.value.json.numbers.TruncatingBigNumber can not be converted to an String"},
			{"PutRecords", `{"StreamName":"s","Records":[{"PartitionKey":"a","Data":"23456"}]}`, mistyped, "'23456' can not be converted to a Blob: Base64 encoded length is expected a multiple of 4 bytes but found: 5"},
			{"PutRecords", `{"StreamName":"s","Records":[` + strings.TrimSuffix(strings.Repeat(`{"PartitionKey":"a","Data":""},`, 501), ",") + `]}`, unfit,
				faults("["+strings.TrimSuffix(strings.Repeat("com.amazonaws.kinesis.v20131202.PutRecordsRequestEntry@c965e310, ", 501), ", ")+"]", "records", "Member must have length less than or equal to 500")},
		}, named("PutRecords", `,"Records":[{"PartitionKey":"a","Data":""}]`),

		[]errorCase{
			{"RemoveTagsFromStream", `{}`, unfit, faults("null", "tagKeys", notNull, "null", "streamName", notNull)},
			{"RemoveTagsFromStream", `{"StreamName":"","TagKeys":[]}`, unfit, faults("[]", "tagKeys", atLeast1, "", "streamName", nameForm, "", "streamName", atLeast1)},
			{"RemoveTagsFromStream", `{"StreamName":"s","TagKeys":["a","` + long + `","b"]}`, unfit, faults("[a, "+long+", b]", "tagKeys",
				"Member must satisfy constraint: [Member must have length less than or equal to 128, Member must have length greater than or equal to 1]")},
			{"RemoveTagsFromStream", `{"StreamName":"s","TagKeys":["a,b"]}`, invalidArgument, tagWords},
			{"RemoveTagsFromStream", `{"StreamName":"s","TagKeys":["a%b"]}`, invalidArgument, "Failed to remove tags from stream s under account " + account + tags},
		}, named("RemoveTagsFromStream", `,"TagKeys":["a"]`),

		[]errorCase{
			{"StartStreamEncryption", `{}`, unfit, faults("null", "encryptionType", notNull, "null", "keyId", notNull, "null", "streamName", notNull)},
			{"StartStreamEncryption", `{"StreamName":"s","EncryptionType":"X","KeyId":""}`, unfit, faults("X", "encryptionType", "Member must satisfy enum value set: [NONE, KMS]", "", "keyId", atLeast1)},
			inUse("StartStreamEncryption", `,"EncryptionType":"KMS","KeyId":"k"`),
			inUse("StopStreamEncryption", `,"EncryptionType":"KMS","KeyId":"k"`),
		}, named("StartStreamEncryption", `,"EncryptionType":"KMS","KeyId":"k"`), named("StopStreamEncryption", `,"EncryptionType":"KMS","KeyId":"k"`),

		[]errorCase{
			{"RegisterStreamConsumer", `{}`, unfit, faults("null", "streamARN", notNull, "null", "consumerName", notNull)},
			{"RegisterStreamConsumer", `{"StreamARN":` + arn + `s","ConsumerName":"a b"}`, unfit, faults("a b", "consumerName", nameForm)},
			{"RegisterStreamConsumer", `{"StreamARN":` + arn + `fan","ConsumerName":"c"}`, taken, ""},
			{"ListStreamConsumers", `{}`, unfit, faults("null", "streamARN", notNull)},
			{"ListStreamConsumers", `{"StreamARN":` + arn + `s","MaxResults":0}`, unfit, faults("0", "maxResults", from1)},
			{"SubscribeToShard", `{}`, unfit, faults("null", "consumerARN", notNull, "null", "shardId", notNull, "null", "startingPosition", notNull)},
			{"SubscribeToShard", `{"ConsumerARN":` + consumer + `,"ShardId":"0","StartingPosition":{"Type":"LATEST"}}`, missing, ""},
			{"SubscribeToShard", `{"ConsumerARN":"` + n["consumer"] + `","ShardId":"7","StartingPosition":{"Type":"LATEST"}}`, missing, noShard("shardId-000000000007", "fan")},
			{"SubscribeToShard", `{"ConsumerARN":"` + n["consumer"] + `","ShardId":"0","StartingPosition":{"Type":"X"}}`, unfit, faults("X", "startingPosition.type", kinds)},
			{"SubscribeToShard", `{"ConsumerARN":"` + n["consumer"] + `","ShardId":"0","StartingPosition":"LATEST"}`, mistyped, "Expected null"},
		}, byARN("RegisterStreamConsumer", `,"ConsumerName":"c"`), byARN("ListStreamConsumers", ""),

		byARN("UpdateMaxRecordSize", `,"MaxRecordSizeInKiB":2048`), byARN("UpdateStreamMode", `,"StreamModeDetails":{"StreamMode":"ON_DEMAND"}`),
		byARN("UpdateStreamRecordDistributionStrategy", `,"RecordDistributionStrategy":"AUTO"`), byARN("UpdateStreamWarmThroughput", `,"WarmThroughputMiBps":1`),
		[]errorCase{
			{"UpdateMaxRecordSize", `{"StreamARN":` + arn + `s","MaxRecordSizeInKiB":1}`, unfit, faults("1", "maxRecordSizeInKiB", "Member must have value greater than or equal to 1024")},
			{"UpdateStreamMode", `{}`, unfit, faults("null", "streamARN", notNull, "null", "streamModeDetails", notNull)},
			{"UpdateStreamRecordDistributionStrategy", `{"StreamARN":` + arn + `s","RecordDistributionStrategy":"AUTO"}`, invalidArgument, ""},
			{"UpdateAccountSettings", `{}`, unfit, faults("null", "minimumThroughputBillingCommitment", notNull)},
			{"TagResource", `{}`, unfit, faults("null", "resourceARN", notNull, "null", "tags", notNull)},
			{"TagResource", `{"ResourceARN":` + arn + `none","Tags":{"a":"b"}}`, missing, noStream},
			{"UntagResource", `{"ResourceARN":` + arn + `none","TagKeys":["a"]}`, missing, noStream},
			{"UntagResource", `{"ResourceARN":"x","TagKeys":["a"]}`, unfit, faults("x", "resourceARN", `Member must satisfy regular expression pattern: arn:aws.*:kinesis:.*:\d{12}:.*(stream|channel|queue)/\S+`)},
			{"ListTagsForResource", `{}`, unfit, faults("null", "resourceARN", notNull)},
			{"ListTagsForResource", `{"ResourceARN":` + arn + `none"}`, missing, noStream},
			{"PutResourcePolicy", `{}`, unfit, faults("null", "resourceARN", notNull, "null", "policy", notNull)},
			{"PutResourcePolicy", `{"ResourceARN":` + arn + `s","Policy":"x"}`, invalidArgument, ""},
			{"GetResourcePolicy", `{"ResourceARN":` + arn + `none"}`, missing, noStream},
			{"DeleteResourcePolicy", `{"ResourceARN":` + arn + `s"}`, missing, ""},
			{"DescribeAccountSettings", `[]`, mistyped, "Start of list found where not expected"},
			{"DescribeAccountSettings", `{`, mistyped, ""},
			{"DescribeLimits", `[]`, mistyped, "Start of list found where not expected"},
			{"DescribeLimits", `7`, mistyped, "Expected null"},
			{"DeleteResourcePolicy", `{}`, unfit, faults("null", "resourceARN", notNull)},
			{"GetResourcePolicy", `{}`, unfit, faults("null", "resourceARN", notNull)},
			{"UpdateAccountSettings", `{"MinimumThroughputBillingCommitment":{"Status":"X"}}`, unfit, faults("X", "minimumThroughputBillingCommitment.status", "Member must satisfy enum value set: [ENABLED, DISABLED]")},
		},
	)
	for _, action := range noConsumer {
		cases = append(cases,
			errorCase{action, `{}`, invalidArgument, ""},
			errorCase{action, `{"ConsumerARN":` + consumer + `}`, missing, ""},
			errorCase{action, `{"ConsumerARN":true}`, mistyped, "class java.lang.Boolean can not be converted to an String"},
			errorCase{action, `{"StreamARN":` + arn + `none","ConsumerName":"c"}`, missing, noStream},
		)
	}
	return cases
}

// TestEveryOperationsErrors makes all calls of errorCases on one server. No call may change the
// server, and each operation must have at least one call.
func TestEveryOperationsErrors(t *testing.T) {
	s, c := start(t, kinesistest.Config{InMemory: true, NoLimits: true, ShardLimit: 50})
	n := map[string]string{
		"8 in index":        hexNumber(t, "20000000000800000000000000000000000000000000002"),
		"version 4":         hexNumber(t, "20000000000000000000000000000000000000000000004"),
		"large date":        hexNumber(t, "13bb2cc3d80000000000000000000000"),
		"of another stream": hexNumber(t, "20000000010000000000000000000000000000000000002"),
		"of the future":     hexNumber(t, fmt.Sprintf("2%029d%08x000000002", 0, time.Now().Unix()+60)),
		"1 MiB and 1 byte":  strings.Repeat("AAAA", 1<<20/3) + "AAA=",
	}
	tags := map[string]string{}
	for i := range 51 {
		tags[fmt.Sprint(i)] = ""
	}
	n["51 tags"] = string(ok[[]byte](t)(json.Marshal(tags)))
	s.CreateStream("gone", 1)
	n["gone"] = *reader{t, t.Context(), c, "gone"}.iterator("0", oldest)
	s.DeleteStream("gone")
	s.CreateStream("s", 3)
	s.CreateStream("long", 1)
	s.CreateStream("busy", 2)
	s.CreateStream("fan", 1)
	n["consumer"] = s.RegisterConsumer("fan", "c")
	n["first of 1"] = *reader{t, t.Context(), c, "s"}.shards(nil)[1].SequenceNumberRange.StartingSequenceNumber
	must := func(action, body string) {
		t.Helper()
		if status, _, answer := post(t, s, action, jsonType, []byte(body)); status != 200 {
			t.Fatalf("%s: %s", action, answer)
		}
	}
	must("CreateStream", `{"StreamName":"od","StreamModeDetails":{"StreamMode":"ON_DEMAND"}}`)
	must("IncreaseStreamRetentionPeriod", `{"StreamName":"long","RetentionPeriodHours":25}`)
	s.SetStateDelay(time.Hour)
	must("SplitShard", `{"StreamName":"busy","ShardToSplit":"0","NewStartingHashKey":"1000"}`)

	seen := map[string]int{}
	for _, tc := range append(errorCases(n), queueErrorCases()...) {
		seen[tc.action]++
		status, _, answer := post(t, s, tc.action, jsonType, []byte(tc.body))
		var got struct {
			Type    string `json:"__type"`
			Message string // some answers use this name for the message
		}
		_ = json.Unmarshal(answer, &got) // other bodies have no type
		call := tc.action + " " + tc.body[:min(len(tc.body), 200)]
		switch same := got.Message == tc.text || tc.code == unfit && sameFaults(got.Message, tc.text); {
		case status != 400 || got.Type != tc.code:
			t.Errorf("%s: %d %.1000s, want %s", call, status, answer, tc.code)
		case tc.text == "" && got.Message == "" && tc.body != "{":
			t.Errorf("%s: %s does not say why", call, answer)
		case tc.text != "" && !same:
			t.Errorf("%s:\n got %.1500s\nwant %.1500s", call, got.Message, tc.text)
		}
	}
	for _, action := range engine.Operations() {
		if seen[action] < 2 {
			t.Errorf("%s has %d cases", action, seen[action])
		}
	}
}

// hexNumber returns the sequence number that is written with these hexadecimal digits.
func hexNumber(tb testing.TB, hex string) string {
	tb.Helper()
	n, good := new(big.Int).SetString(hex, 16)
	if !good {
		tb.Fatal(hex)
	}
	return n.String()
}

// For ordering, the service accepts sequence numbers of its earlier formats, and those of closed or
// unknown shards.
func TestSequenceNumbersForOrderingThatAreTaken(t *testing.T) {
	s, _ := start(t)
	s.CreateStream("s", 3)
	_, number := s.Put("s", "a", nil)
	s.Split("s", shardID(0)) // "a" now belongs to the first child shard
	for _, n := range []string{
		number, "0", "17", hexNumber(t, "20000000000000000000000000000000000000000000002"),
		hexNumber(t, "20000000000000000000000000000000000000000000001"), hexNumber(t, "20000000000000000000000000000000000000800000002"),
	} {
		status, _, answer := post(t, s, "PutRecord", jsonType, []byte(`{"StreamName":"s","PartitionKey":"a","Data":"","SequenceNumberForOrdering":"`+n+`"}`))
		if status != 200 {
			t.Errorf("%s: %s", n, answer)
		}
	}
}

// The accepted short forms of shard IDs were recorded from the service.
func TestShortShardIDs(t *testing.T) {
	s, c := start(t)
	s.CreateStream("s", 2)
	for _, id := range []string{"0", "shardId-0", "x-0", "-000", shardID(0), "any-0-1"} {
		_, sequence := s.Put("s", "a", []byte(id))
		page := reader{t, t.Context(), c, "s"}
		it := page.iterator(id, from, at(sequence))
		if got := page.page(it).Records; len(got) != 1 || string(got[0].Data) != id {
			t.Errorf("%s: %v", id, got)
		}
	}
}

// An iterator has the size and the beginning of the service's iterators. The size grows with the
// length of the stream's name.
func TestIteratorsLookLikeTheServices(t *testing.T) {
	s, c := start(t)
	for _, n := range []int{1, 13, 14, 29, 30, 128} {
		name := strings.Repeat("a", n)
		s.CreateStream(name, 1)
		it := *reader{t, t.Context(), c, name}.iterator("0", newest)
		raw := ok[[]byte](t)(base64.StdEncoding.DecodeString(it))
		if want := 152 + (n+2)/16*16; len(raw) != want || !bytes.HasPrefix(raw, []byte{0, 0, 0, 0, 0, 0, 0, 1}) {
			t.Errorf("a name of %d: %d bytes, want %d: %x", n, len(raw), want, raw[:8])
		}
	}
}
