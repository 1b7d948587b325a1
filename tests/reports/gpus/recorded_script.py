# SPDX-License-Identifier: Apache-2.0
"""Stands in for a training script under the hook: recorded_script.py N [--batch B] [--world W].
Writes the records of N ranks whose steps take RECORDED_STEP seconds on one device, and
RECORDED_STEP / RECORDED_SPEED on several."""

import argparse
import json
import os
import pathlib
import random

parser = argparse.ArgumentParser()
parser.add_argument("ranks", type=int)
parser.add_argument("--batch", type=int, default=16, help="per rank on one device")
parser.add_argument("--strong", action="store_true")
parser.add_argument("--fail", type=int, default=0, help="fail with this number of ranks")
given = parser.parse_args()
if given.ranks == given.fail:
    raise SystemExit("the disk is full")
ranks = given.ranks
batch = given.batch // ranks if given.strong else given.batch
seconds = float(os.environ.get("RECORDED_STEP", "0.01"))
if ranks > 1:
    seconds /= float(os.environ.get("RECORDED_SPEED", "1"))


def turns_of(workers):
    """Steps 2 to 19 in turns of three; a step with w workers takes 1 / min(w + 1, 3) of the time."""
    lines, first = [], 2
    for round_, order in enumerate((workers, workers[::-1])):
        for w in order:
            lines.append({"kind": "turn", "round": round_, "workers": w, "own": w == 0, "prefetch": 2, "first": first,
                          "last": first + 2, "batch_bytes": 4096, "first_batch_s": 0.1,
                          "alone_samples_per_s": 1e5, "bytes_per_worker": 1e6 if w else None})
            first += 3
    return lines


workers = [int(one) for one in os.environ.get("HOWMANY_SCRIPT_WORKERS", "").split(",") if one][:3]
turns = turns_of(workers)
for rank in range(ranks):
    start = {"kind": "start", "rank": rank, "world": ranks, "threads": 1, "device": "cpu", "parallel": "ddp" if ranks > 1 else "single",
             "backend": "gloo" if ranks > 1 else "", "gradient_bytes": 400}
    steps = [{"kind": "step", "step": i, "s": seconds * random.uniform(0.99, 1.01), "wait_s": 0, "backward_s": 0,
              "optimizer_s": 0, "samples": batch, "backwards": 1} for i in range(20)]
    for turn in turns:
        for step in steps[turn["first"]:turn["last"] + 1]:
            step["s"] /= min(turn["workers"] + 1, 3)
            step["wait_s"] = 0.0 if turn["workers"] > 1 else step["s"] / 2
    end = {"kind": "end", "complete": True, "loader": True, "peak_bytes": 1000, "ddp": None, "first": 2, "last": 19}
    file = pathlib.Path(os.environ["HOWMANY_SCRIPT_OUT"]) / f"rank{rank}.1.jsonl"
    file.write_text("".join(json.dumps(line) + "\n" for line in [start, *steps, *turns, end]))
