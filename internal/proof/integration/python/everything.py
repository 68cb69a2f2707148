"""Calls every operation that boto3 knows, and prints the outcomes as JSON:
{"served": [...], "refused": {name: [error code, message]}}."""
import json
import sys

import boto3
from botocore.config import Config
from botocore.exceptions import ClientError

import operations

client = boto3.client("kinesis", endpoint_url=sys.argv[1], config=Config(parameter_validation=False, retries={"max_attempts": 1}))
model = client.meta.service_model
methods = {api: name for name, api in client.meta.method_to_api_mapping.items()}
last = {}


def call(name, args):
    last[name] = getattr(client, methods[name])(**args)
    if last[name].get("Failed"):
        raise RuntimeError("%s: %s" % (name, last[name]["Failed"]))
    if name == "SubscribeToShard":
        next(iter(last[name]["EventStream"]))
        last[name]["EventStream"].close()


served, refused = [], {}
for name, args in operations.calls(
    consumer=lambda: last["RegisterStreamConsumer"]["Consumer"]["ConsumerARN"],
    iterator=lambda: last["GetShardIterator"]["ShardIterator"],
    last=last,
):
    call(name, args() if callable(args) else args)
    served.append(name)
for name in model.operation_names:
    if name not in served:
        try:
            call(name, {})
            served.append(name)
        except ClientError as e:
            refused[name] = [e.response["Error"]["Code"], e.response["Error"].get("Message", "")]
json.dump({"served": sorted(set(served)), "refused": refused}, sys.stdout)
