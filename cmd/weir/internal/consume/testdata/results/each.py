#!/usr/bin/env python3
import json, os, sys

def charge(order):
    print(order["n"], flush=True)

def answer(record):
    try:
        charge(json.loads(record["data"]))
    except json.JSONDecodeError as e:
        return {"id": record["id"], "result": "rejected", "error": str(e)}
    except Exception as e:
        return {"id": record["id"], "result": "failed", "error": repr(e)}
    return {"id": record["id"], "result": "done"}

with os.fdopen(int(os.environ["WEIR_RESULTS_FD"]), "w") as results:
    for line in sys.stdin:
        said = answer(json.loads(line))
        print(json.dumps(said), file=results)
        if said["result"] != "done":
            break
    print('{"end":true}', file=results)
