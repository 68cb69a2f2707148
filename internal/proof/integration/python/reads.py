"""Writes records, splits the stream, and reads it back with GetRecords and with SubscribeToShard.

It waits with boto3's waiters and lists with its paginators. It prints JSON with these members:
"pages" has the lists of the paginators. "polled" has the records of each shard that GetRecords
returned, and "pushed" those of SubscribeToShard. "ends" has the child shards of each shard."""
import base64
import json
import sys

import boto3

kinesis = boto3.client("kinesis", endpoint_url=sys.argv[1])
NAME, RECORDS = "orders", 600
text = lambda b: base64.b64encode(b).decode()

kinesis.create_stream(StreamName=NAME, ShardCount=2)
kinesis.get_waiter("stream_exists").wait(StreamName=NAME, WaiterConfig={"Delay": 1})
stream = kinesis.describe_stream_summary(StreamName=NAME)["StreamDescriptionSummary"]["StreamARN"]


def put(numbers):
    records = [{"Data": bytes([n % 256]) * 3 + b"#%d" % n, "PartitionKey": "key-%d" % (n % 13)} for n in numbers]
    while records:
        out = kinesis.put_records(StreamARN=stream, Records=records)
        records = [r for r, done in zip(records, out["Records"]) if "ErrorCode" in done]


for start in range(0, RECORDS // 2, 100):
    put(range(start, start + 100))
kinesis.split_shard(StreamName=NAME, ShardToSplit="shardId-000000000000", NewStartingHashKey=str(2**126))
kinesis.get_waiter("stream_exists").wait(StreamName=NAME, WaiterConfig={"Delay": 1})
while kinesis.describe_stream_summary(StreamName=NAME)["StreamDescriptionSummary"]["StreamStatus"] != "ACTIVE":
    pass
for start in range(RECORDS // 2, RECORDS, 100):
    put(range(start, start + 100))

consumer = kinesis.register_stream_consumer(StreamARN=stream, ConsumerName="reader")["Consumer"]["ConsumerARN"]
while kinesis.describe_stream_consumer(ConsumerARN=consumer)["ConsumerDescription"]["ConsumerStatus"] != "ACTIVE":
    pass



def list_shards():
    """Lists the shards page by page, without boto3's paginator.

    The paginator sends StreamName together with NextToken. The embedded server refuses this, as the
    real service does."""
    page = kinesis.list_shards(StreamName=NAME, MaxResults=1)
    yield from page["Shards"]
    while page.get("NextToken"):
        page = kinesis.list_shards(NextToken=page["NextToken"], MaxResults=1)
        yield from page["Shards"]


pages = {
    "list_shards": [s["ShardId"] for s in list_shards()],
    "describe_stream": [
        s["ShardId"] for p in kinesis.get_paginator("describe_stream").paginate(StreamName=NAME, PaginationConfig={"PageSize": 1}) for s in p["StreamDescription"]["Shards"]
    ],
    "list_streams": [n for p in kinesis.get_paginator("list_streams").paginate(PaginationConfig={"PageSize": 1}) for n in p["StreamNames"]],
    "list_stream_consumers": [
        c["ConsumerName"] for p in kinesis.get_paginator("list_stream_consumers").paginate(StreamARN=stream, PaginationConfig={"PageSize": 1}) for c in p["Consumers"]
    ],
}


def of(record):
    return [record["SequenceNumber"], record["PartitionKey"], text(record["Data"])]


polled, pushed, ends = {}, {}, {}
for shard in kinesis.list_shards(StreamName=NAME)["Shards"]:
    id = shard["ShardId"]
    closed = "EndingSequenceNumber" in shard["SequenceNumberRange"]
    iterator = kinesis.get_shard_iterator(StreamName=NAME, ShardId=id, ShardIteratorType="TRIM_HORIZON")["ShardIterator"]
    polled[id] = []
    while True:
        page = kinesis.get_records(ShardIterator=iterator, Limit=50)
        polled[id] += [of(r) for r in page["Records"]]
        iterator = page.get("NextShardIterator")
        if not iterator or not closed and page["MillisBehindLatest"] == 0 and not page["Records"]:
            break
    ends[id] = [c["ShardId"] for c in page.get("ChildShards", [])]
    pushed[id] = []
    events = kinesis.subscribe_to_shard(ConsumerARN=consumer, ShardId=id, StartingPosition={"Type": "TRIM_HORIZON"})["EventStream"]
    for event in events:
        event = event["SubscribeToShardEvent"]
        pushed[id] += [of(r) for r in event["Records"]]
        if event.get("ChildShards") or not closed and len(pushed[id]) >= len(polled[id]):
            break
    events.close()

kinesis.deregister_stream_consumer(ConsumerARN=consumer)
kinesis.delete_stream(StreamName=NAME, EnforceConsumerDeletion=True)
kinesis.get_waiter("stream_not_exists").wait(StreamName=NAME, WaiterConfig={"Delay": 1})
json.dump({"pages": pages, "polled": polled, "pushed": pushed, "ends": ends}, sys.stdout)
