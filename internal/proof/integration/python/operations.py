"""The calls that cover every operation of Kinesis that the embedded server has, each with boto3's names. They run in order on
one server: a stream s with two shards, which is scaled, split and merged, and an on-demand one."""

S = "s"


def arn(name):
    return "arn:aws:kinesis:eu-central-1:000000000000:stream/" + name


def shard(n):
    return "shardId-%012d" % n


def calls(consumer, iterator):
    """consumer and iterator are functions, because their values come of earlier calls."""
    return [
        ("CreateStream", dict(StreamName=S, ShardCount=2, Tags={"made": "by hand"})),
        ("CreateStream", dict(StreamName="od", StreamModeDetails={"StreamMode": "ON_DEMAND"})),
        ("DescribeLimits", {}),
        ("DescribeAccountSettings", {}),
        ("UpdateAccountSettings", dict(MinimumThroughputBillingCommitment={"Status": "ENABLED"})),
        ("ListStreams", {}),
        ("DescribeStream", dict(StreamName=S)),
        ("DescribeStreamSummary", dict(StreamARN=arn(S))),
        ("AddTagsToStream", dict(StreamName=S, Tags={"a": "1", "b": "2"})),
        ("ListTagsForStream", dict(StreamName=S)),
        ("RemoveTagsFromStream", dict(StreamName=S, TagKeys=["a"])),
        ("TagResource", dict(ResourceARN=arn(S), Tags={"c": "3"})),
        ("ListTagsForResource", dict(ResourceARN=arn(S))),
        ("UntagResource", dict(ResourceARN=arn(S), TagKeys=["c"])),
        ("PutResourcePolicy", dict(ResourceARN=arn(S), Policy='{"Version":"2012-10-17","Statement":[]}')),
        ("GetResourcePolicy", dict(ResourceARN=arn(S))),
        ("DeleteResourcePolicy", dict(ResourceARN=arn(S))),
        ("IncreaseStreamRetentionPeriod", dict(StreamName=S, RetentionPeriodHours=24)),
        ("IncreaseStreamRetentionPeriod", dict(StreamName=S, RetentionPeriodHours=48)),
        ("DecreaseStreamRetentionPeriod", dict(StreamName=S, RetentionPeriodHours=24)),
        ("EnableEnhancedMonitoring", dict(StreamName=S, ShardLevelMetrics=["ALL"])),
        ("DisableEnhancedMonitoring", dict(StreamName=S, ShardLevelMetrics=["ALL"])),
        ("StartStreamEncryption", dict(StreamName=S, EncryptionType="KMS", KeyId="alias/aws/kinesis")),
        ("StopStreamEncryption", dict(StreamName=S, EncryptionType="KMS", KeyId="alias/aws/kinesis")),
        ("UpdateMaxRecordSize", dict(StreamARN=arn(S), MaxRecordSizeInKiB=2048)),
        ("UpdateStreamRecordDistributionStrategy", dict(StreamARN=arn("od"), RecordDistributionStrategy="AUTO")),
        ("UpdateStreamWarmThroughput", dict(StreamName="od", WarmThroughputMiBps=5)),
        ("UpdateStreamMode", dict(StreamARN=arn("od"), StreamModeDetails={"StreamMode": "PROVISIONED"})),
        ("PutRecord", dict(StreamName=S, Data=b"one", PartitionKey="k")),
        ("PutRecords", dict(StreamName=S, Records=[dict(Data=b"two", PartitionKey="k"), dict(Data=b"three", PartitionKey="l")])),
        ("GetShardIterator", dict(StreamName=S, ShardId=shard(0), ShardIteratorType="TRIM_HORIZON")),
        ("GetRecords", lambda: dict(ShardIterator=iterator())),
        ("ListShards", dict(StreamName=S)),
        ("RegisterStreamConsumer", dict(StreamARN=arn(S), ConsumerName="c")),
        ("ListStreamConsumers", dict(StreamARN=arn(S))),
        ("DescribeStreamConsumer", dict(StreamARN=arn(S), ConsumerName="c")),
        ("SubscribeToShard", lambda: dict(ConsumerARN=consumer(), ShardId=shard(0), StartingPosition={"Type": "TRIM_HORIZON"})),
        ("DeregisterStreamConsumer", dict(StreamARN=arn(S), ConsumerName="c")),
        ("SplitShard", dict(StreamName=S, ShardToSplit=shard(0), NewStartingHashKey="1000")),
        ("MergeShards", dict(StreamName=S, ShardToMerge=shard(2), AdjacentShardToMerge=shard(3))),
        ("UpdateShardCount", dict(StreamName=S, TargetShardCount=4, ScalingType="UNIFORM_SCALING")),
        ("DeleteStream", dict(StreamName=S)),
        ("DeleteStream", dict(StreamName="od")),
    ]
