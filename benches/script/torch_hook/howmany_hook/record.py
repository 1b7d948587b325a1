# SPDX-License-Identifier: Apache-2.0
"""The JSON Lines file of a rank: OUT/rank<r>.<pid>.jsonl. benches/script/ranks.h reads it.

{"kind": "start", "rank": 0, ...}    when the first step has ended
{"kind": "step", "step": 0, "s": seconds, "wait_s": ..., "samples": ...}    one per step
{"kind": "turn", "workers": 2, "first": a, "last": b, ...}    steps a to b had 2 loader workers
{"kind": "collective", "step": 7, "op": "all_reduce", "bytes": ..., "at_s": since the step began, "s": T, ...}
{"kind": "end", "complete": true, "first": w, "last": k, ...}    steps w to k were timed
{"kind": "failed", "why": "..."}    the hook failed; the script went on

All but the first and the last kind are written together, when the measurement is complete or the script ends.
"""

import json
import os


FAILED = "failed"  # a file: script_bench then ends the command, because nothing can be measured any more


def path_of(out, rank):
    return os.path.join(out, f"rank{rank}.{os.getpid()}.jsonl")


def append(path, lines):
    with open(path, "a", encoding="utf-8") as file:
        file.writelines(json.dumps(line) + "\n" for line in lines)


def write_failure(settings, error):
    rank = getattr(settings, "rank", 0)
    out = getattr(settings, "out", None) or os.environ.get("HOWMANY_SCRIPT_OUT")
    if out:
        why = f"{type(error).__name__}: {error}"
        append(path_of(out, rank), [{"kind": "failed", "rank": rank, "why": why}])
        append(os.path.join(out, FAILED), [])
