"""Calls that cover every Kinesis operation of the embedded server, with the names of boto3.

The calls run in order on one server. They use two streams: s, which starts with two shards and is
scaled, split and merged, and od, which is on-demand."""

S = "s"


def arn(name):
    return "arn:aws:kinesis:eu-central-1:000000000000:stream/" + name


def shard(n):
    return "shardId-%012d" % n


def queue_calls(last):
    """Returns the calls of queues, like calls. Two records are put into the stream od of the queue."""

    def queue(**more):
        return lambda: dict(QueueARN=last["CreateQueue"]["QueueDescription"]["QueueARN"], **more)

    def entries(receive, **more):
        return lambda: queue(Entries=[dict(ReceiptHandle=last[receive]["QueueRecords"][0]["ReceiptHandle"], **more)])()

    normal, dead = "ReceiveQueueRecords", "ReceiveDeadLetterQueueRecords"
    return [
        ("CreateQueue", dict(
            QueueName="q",
            StreamConfigurationList=[dict(StreamARN=arn("od"), StartingPosition={"Type": "TRIM_HORIZON"})],
            QueueAttributes=dict(VisibilityTimeoutSeconds=30, DeadLetterConfiguration=dict(TargetType="BUILT_IN", MaxReceiveCount=1)),
            Tags={"made": "by hand"},
        )),
        ("DescribeQueue", queue()),
        ("ListQueues", dict(StreamFilter=[dict(StreamARN=arn("od"))])),
        ("PutRecords", dict(StreamName="od", Records=[dict(Data=b"four", PartitionKey="k"), dict(Data=b"five", PartitionKey="l")])),
        (normal, queue(Limit=1)),
        ("UpdateQueueRecordsVisibility", entries(normal, VisibilityTimeoutSeconds=60)),
        ("AcknowledgeQueueRecords", entries(normal)),
        (normal, queue(Limit=1, WaitTimeSeconds=1, VisibilityTimeoutSeconds=9)),
        ("UpdateQueueRecordsVisibility", entries(normal, VisibilityTimeoutSeconds=0)),  # a dead letter now
        (dead, queue(Limit=1)),
        ("UpdateDeadLetterQueueRecordsVisibility", entries(dead, VisibilityTimeoutSeconds=60)),
        ("RestoreDeadLetterQueueRecords", entries(dead)),
        (normal, queue(Limit=1)),
        ("UpdateQueueRecordsVisibility", entries(normal, VisibilityTimeoutSeconds=0)),
        (dead, queue(Limit=1)),
        ("AcknowledgeDeadLetterQueueRecords", entries(dead)),
        ("TagResource", lambda: dict(ResourceARN=queue()()["QueueARN"], Tags={"c": "3"})),
        ("UpdateQueue", queue(QueueAttributes=dict(VisibilityTimeoutSeconds=5))),
        ("DeleteQueue", queue()),
    ]


def calls(consumer, iterator, last):
    """Returns (operation, arguments) pairs in order.

    The arguments can be a function that returns them. The parameter consumer is a function that
    returns the ARN of the registered consumer. The parameter iterator is a function that returns a
    shard iterator. They are functions because these values come from the answers of earlier calls.
    The parameter last maps each operation to its last answer."""
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
        *queue_calls(last),
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
