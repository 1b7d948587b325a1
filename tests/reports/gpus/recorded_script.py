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
for rank in range(ranks):
    start = {"kind": "start", "rank": rank, "world": ranks, "threads": 1, "device": "cpu", "parallel": "ddp" if ranks > 1 else "single",
             "backend": "gloo" if ranks > 1 else "", "gradient_bytes": 400}
    steps = [{"kind": "step", "step": i, "s": seconds * random.uniform(0.99, 1.01), "wait_s": 0, "backward_s": 0,
              "optimizer_s": 0, "samples": batch, "backwards": 1} for i in range(20)]
    end = {"kind": "end", "complete": True, "loader": True, "peak_bytes": 1000, "ddp": None, "first": 2, "last": 19}
    file = pathlib.Path(os.environ["HOWMANY_SCRIPT_OUT"]) / f"rank{rank}.1.jsonl"
    file.write_text("".join(json.dumps(line) + "\n" for line in [start, *steps, end]))
