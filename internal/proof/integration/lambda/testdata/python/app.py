"""A Lambda function for flights that uses the batch utility of Powertools.

It appends the flights that it has handled to a file."""
import os
from pathlib import Path

from aws_lambda_powertools.utilities.batch import BatchProcessor, EventType, process_partial_response
from aws_lambda_powertools.utilities.data_classes.kinesis_stream_event import KinesisStreamRecord
from aws_lambda_powertools.utilities.typing import LambdaContext

processor = BatchProcessor(event_type=EventType.KinesisDataStreams)
handled = open(os.environ["FLIGHTS_HANDLED"], "a", encoding="utf-8", buffering=1)  # buffers one line


def first_time(flight):
    """Returns True for the first caller, in any process, that asks about this flight."""
    try:
        Path(os.environ["FLIGHTS_FAILED"], str(flight)).touch(exist_ok=False)
        return True
    except FileExistsError:
        return False


def record_handler(record: KinesisStreamRecord):
    flight = record.kinesis.data_as_json()
    fails = flight.get("fails")
    if fails == "always" or fails == "once" and first_time(flight["flight"]):
        raise ValueError(f"flight {flight['flight']} fails {fails}")
    handled.write(f"{flight['flight']} {record.kinesis.partition_key} {record.kinesis.sequence_number}\n")


def handler(event, context: LambdaContext):
    print(f"request {context.aws_request_id} of {context.invoked_function_arn}, {context.get_remaining_time_in_millis()} ms are left")
    return process_partial_response(event=event, record_handler=record_handler, processor=processor, context=context)
