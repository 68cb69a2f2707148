"""Reads all shards of a stream and unpacks the records with aws-kinesis-agg.

It prints JSON: for each shard, in the order of the shards, a list of [key, data]."""
import base64
import json
import sys

import boto3
from aws_kinesis_agg.deaggregator import iter_deaggregate_records

kinesis = boto3.client("kinesis", endpoint_url=sys.argv[1])
NAME = sys.argv[2]
shards = sorted(s["ShardId"] for s in kinesis.list_shards(StreamName=NAME)["Shards"])
found = {shard: [] for shard in shards}
for shard in shards:
    iterator = kinesis.get_shard_iterator(StreamName=NAME, ShardId=shard, ShardIteratorType="TRIM_HORIZON")["ShardIterator"]
    while iterator:
        page = kinesis.get_records(ShardIterator=iterator)
        for r in iter_deaggregate_records(page["Records"], data_format="Boto3"):
            data = base64.b64decode(r["kinesis"]["data"]) if "kinesis" in r else r["Data"]
            key = r["kinesis"]["partitionKey"] if "kinesis" in r else r["PartitionKey"]
            found[shard].append([key, data.decode()])
        iterator = page.get("NextShardIterator")
        if page["MillisBehindLatest"] == 0 and not page["Records"]:
            break
json.dump(found, sys.stdout)
