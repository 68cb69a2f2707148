"""Calls the operations of operations.py with the AWS CLI, and prints the outcomes as JSON:
{"served": [...], "refused": {command: output}, "unknown": [...], "failed": {command: output}}.

All calls run in one process, because a process for each call would take a second. "unknown" lists
the commands that this CLI does not have. The CLI has no event streams, so SubscribeToShard is
skipped."""
import contextlib
import io
import json
import sys

from awscli.clidriver import create_clidriver
from botocore import xform_name

import operations

endpoint = sys.argv[1]
last = {}


def run(*args):
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            code = create_clidriver().main(["--endpoint-url", endpoint, "--output", "json", "kinesis", *args])
        except SystemExit as e:  # the CLI does not know the command
            code = e.code
    return code, out.getvalue(), err.getvalue()


def bytes_as_text(o):
    return o.decode() if isinstance(o, bytes) else o


served, refused, failed, unknown = [], {}, {}, set()
for name, args in operations.calls(
    consumer=lambda: last["RegisterStreamConsumer"]["Consumer"]["ConsumerARN"],
    iterator=lambda: last["GetShardIterator"]["ShardIterator"],
    last=last,
):
    if name == "SubscribeToShard":
        continue
    command = xform_name(name, "-")
    try:
        args = args() if callable(args) else args
    except KeyError:  # needs the answer to a command that this CLI does not have
        unknown.add(command)
        continue
    code, out, err = run(command, "--cli-input-json", json.dumps(args, default=lambda b: bytes_as_text(b)))
    if "Invalid choice" in err:
        unknown.add(command)
        continue
    if code != 0 or '"ErrorCode"' in out:
        failed[command] = err + out
    last[name] = json.loads(out) if out.strip() else {}
    served.append(command)
for command, args in (
    ("list-channels", ()),
    ("delete-channel", ("--channel-arn", "arn:aws:kinesis:eu-central-1:000000000000:channel/x")),
):
    code, out, err = run(command, *args)
    if "Invalid choice" not in err:
        refused[command] = err
for waiter in ("stream-not-exists",):
    code, out, err = run("wait", waiter, "--stream-name", operations.S)
    if code != 0:
        failed["wait " + waiter] = err
json.dump({"served": sorted(set(served)), "refused": refused, "unknown": sorted(unknown - set(served)), "failed": failed}, sys.stdout)
