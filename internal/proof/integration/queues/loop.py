"""Receives and acknowledges records of a queue until it has as many as the last argument says.

It prints JSON with the number of records and calls, and the CPU time and time in nanoseconds."""
import json
import sys
import time

import boto3
from botocore.config import Config

url, arn, most = sys.argv[1], sys.argv[2], int(sys.argv[3])
kinesis = boto3.client("kinesis", endpoint_url=url, config=Config(inject_host_prefix=False))
records = calls = 0
cpu, began = time.process_time_ns(), time.perf_counter_ns()
while records < most:
    got = kinesis.receive_queue_records(QueueARN=arn, Limit=10, WaitTimeSeconds=1, VisibilityTimeoutSeconds=30)["QueueRecords"]
    out = kinesis.acknowledge_queue_records(QueueARN=arn, Entries=[{"ReceiptHandle": r["ReceiptHandle"]} for r in got])
    if out.get("Failed"):
        raise SystemExit(out)
    records += len(got)
    calls += 2
print(json.dumps({
    "Records": records, "Calls": calls, "CPU": time.process_time_ns() - cpu, "Took": time.perf_counter_ns() - began,
}))
