# SPDX-License-Identifier: Apache-2.0
"""Stands in for a training script under the hook: recorded_script.py N [--batch B] [--world W].
Writes the records of N ranks whose steps take RECORDED_STEP seconds on one device, and
RECORDED_STEP / RECORDED_SPEED on several. They wait for data for RECORDED_WAIT of a step. In a rehearsal, two buckets of 1 MiB are ready after 0.4 and
0.8 of the step, and the optimizer takes the rest."""

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
batch = given.batch
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


def rehearse(costs, steps):
    """Returns the collectives, and makes the steps as long as they take."""
    lines = []
    (small, low), (large, high) = [point for point in costs["all_reduce"] if point[0] in (1 << 19, 1 << 20)]
    assert small < large and low <= high
    for step in steps:
        work, end = step["s"], 0
        for share in (0.4, 0.8):
            end = max(end, share * work) + high
            lines.append({"kind": "collective", "step": step["step"], "op": "all_reduce", "bytes": large,
                          "ranks": costs["world"], "stride": 1, "at_s": share * work, "s": high, "backward": 0})
        step["s"] = end + 0.2 * work
    return lines


costs = json.loads(pathlib.Path(os.environ["HOWMANY_SCRIPT_REHEARSE"]).read_text()) if (
    "HOWMANY_SCRIPT_REHEARSE" in os.environ) else None
world = costs["world"] if costs else ranks
if given.strong:
    batch = given.batch // world
workers = [int(one) for one in os.environ.get("HOWMANY_SCRIPT_WORKERS", "").split(",") if one][:3]
turns = turns_of(workers)
wait = float(os.environ.get("RECORDED_WAIT", "0"))
for rank in range(ranks):
    start = {"kind": "start", "rank": rank, "world": world, "threads": 1, "device": os.environ.get("RECORDED_DEVICE", "cpu"),
             "parallel": "ddp" if world > 1 else "single", "backend": "gloo" if world > 1 else ""}
    steps = [{"kind": "step", "step": i, "s": seconds * random.uniform(0.99, 1.01), "wait_s": 0, "backward_s": 0,
              "optimizer_s": 0, "samples": batch, "forwarded": batch, "backwards": 1} for i in range(20)]
    for turn in turns:
        for step in steps[turn["first"]:turn["last"] + 1]:
            step["s"] /= min(turn["workers"] + 1, 3)
            step["wait_s"] = 0.0 if turn["workers"] > 1 else step["s"] / 2
    collectives = rehearse(costs, steps) if costs else []
    for step in steps:
        step["phases"] = dict.fromkeys(("epochs_s", "outside_s", "backward_s", "optimizer_s", "blocked_s"), 0)
        step["phases"]["data_s"] = wait * step["s"]
    end = {"kind": "end", "complete": True, "loader": True, "peak_bytes": 1000, "ddp": None, "first": 2, "last": 19,
           "gradient_bytes": 400, "optimizer_in_backward": False, "by_backward": False, "recording_s": seconds / 1e4,
           "persistent_workers": False, "loader_cpu_s": 0, "workers": 0}
    if "HOWMANY_SCRIPT_MEMORY" in os.environ:
        end["memory"] = {"parameters": 400, "gradients": 400, "optimizer": 800, "peak": 2000, "reserved": 2 << 20}
    file = pathlib.Path(os.environ["HOWMANY_SCRIPT_OUT"]) / f"rank{rank}.1.jsonl"
    file.write_text("".join(json.dumps(line) + "\n" for line in [start, *steps, *turns, *collectives, end]))
