# SPDX-License-Identifier: Apache-2.0
"""The JSON Lines file of a rank: OUT/rank<r>.<pid>.jsonl. benches/script/ranks.h reads it.

{"kind": "start", "rank": 0, ...}    when the first step has ended
{"kind": "step", "step": 0, "s": seconds, "wait_s": ..., "samples": ...}    one per step
{"kind": "turn", "workers": 2, "first": a, "last": b, ...}    steps a to b had 2 loader workers
{"kind": "collective", "step": 7, "op": "all_reduce", "bytes": ..., "at_s": since the step began, "s": T, ...}
{"kind": "end", "complete": true, "first": w, "last": k, ...}    steps w to k were timed
{"kind": "failed", "why": "..."}    the hook failed; the script went on

All but the first and the last kind are written together, when the measurement is complete or the script ends.
A process that an exception ends also writes OUT/raised.<pid>.json: {"at": Unix time, "why": "ValueError: no data"}.
"""

import json
import os
import sys
import time
import traceback


FAILED = "failed"  # a file: script_bench then ends the command, because nothing can be measured any more


def path_of(out, rank):
    return os.path.join(out, f"rank{rank}.{os.getpid()}.jsonl")


def append(path, lines):
    with open(path, "a", encoding="utf-8") as file:
        file.writelines(json.dumps(line) + "\n" for line in lines)


def _describe(error):
    kind = type(error)
    name = kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"
    frames = traceback.extract_tb(error.__traceback__)
    if str(error) or not frames:
        return f"{name}: {error}"
    last = frames[-1]  # an assertion without a text
    return f"{name}: {os.path.basename(last.filename)}, line {last.lineno}: {last.line}"


def write_failure(settings, error):
    """Does nothing if the folder cannot be written."""
    rank = getattr(settings, "rank", 0)
    out = getattr(settings, "out", None) or os.environ.get("HOWMANY_SCRIPT_OUT")
    try:
        if out:
            append(path_of(out, rank), [{"kind": "failed", "rank": rank, "why": f"{type(error).__name__}: {error}"}])
            append(os.path.join(out, FAILED), [])
    except OSError:
        pass


def write_exception(out):
    """Call at the exit of the interpreter, which keeps the exception that ends it."""
    error = getattr(sys, "last_value", None)
    if isinstance(error, Exception):
        append(os.path.join(out, f"raised.{os.getpid()}.json"), [{"at": time.time(), "why": _describe(error)}])
