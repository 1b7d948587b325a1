# SPDX-License-Identifier: Apache-2.0
"""Stands in for a training script whose step is counted: counted_script.py N [--group] [--strong] ...
Writes the record of the hook. A step has 20 layers of COUNTED_FLOP each in the forward pass and twice that in the
backward pass, and 8 MiB of gradients each."""

import argparse
import json
import os
import pathlib

parser = argparse.ArgumentParser()
parser.add_argument("ranks", type=int)
parser.add_argument("--group", action="store_true", help="under DistributedDataParallel")
parser.add_argument("--strong", action="store_true", help="the ranks share the batch")
parser.add_argument("--batch", type=int, default=32)
parser.add_argument("--unknown", action="store_true", help="half of the time is of an unknown operation")
parser.add_argument("--refuse", default="", help="why nothing follows from the count")
parser.add_argument("--raise-refused", default="", help="why, as the hook raises it")
parser.add_argument("--needs-values", action="store_true")
parser.add_argument("--fail-alone", action="store_true")
parser.add_argument("--fail-in-group", action="store_true")
parser.add_argument("--reserve", type=float, default=10, help="GB")
parser.add_argument("--loader", type=float, default=0, help="CPU seconds of a batch")
parser.add_argument("--silent", action="store_true", help="count nothing")
given = parser.parse_args()

LAYERS, GRADIENT = 20, 8 << 20
gpu = json.loads(os.environ["HOWMANY_SCRIPT_COUNT"])
costs = os.environ.get("HOWMANY_SCRIPT_REHEARSE")
world = json.loads(pathlib.Path(costs).read_text())["world"] if costs else 1
assert gpu["devices"] <= world, gpu
if given.raise_refused:
    raise type("Refused", (Exception,), {"__module__": "howmany_hook.pretend"})(given.raise_refused)
if given.needs_values and not gpu.get("real"):
    raise NotImplementedError("Cannot copy out of meta tensor; no data!")
if given.fail_in_group and world > 1:
    raise SystemExit("it trains alone")
if given.fail_alone and world == 1:
    raise SystemExit("it needs a group")
if not given.group:
    world = 1
share = world if given.strong else 1
flop = float(os.environ.get("COUNTED_FLOP", "1e12")) / share


def layer(phase, factor):
    return {"op": "addmm", "work": "product", "dtype": "bf16", "flop": factor * flop, "read": 1e6, "written": 1e6,
            "phase": phase}


kinds = [layer("forward", 1), layer("backward", 2),
         {"op": "_fused_adamw_", "work": "memory", "dtype": "f32", "flop": 0, "read": 16 * LAYERS * GRADIENT,
          "written": 12 * LAYERS * GRADIENT, "phase": "optimizer"}]
if given.unknown:
    kinds.append({"op": "mylib::scan", "work": "unknown", "dtype": "f32", "flop": 0, "read": 1e12, "written": 0,
                  "phase": "forward"})
order, collectives, gradients = [0] * LAYERS + [3] * given.unknown, [], []
for _ in range(LAYERS):
    order.append(1)
    gradients.append([len(order), GRADIENT])
    if world > 1:
        collectives.append({"op": "all_reduce", "bytes": GRADIENT, "ranks": world, "stride": 1})
        order.append(-len(collectives))
order.append(2)
counted = {"kind": "counted", "way": "real" if gpu.get("real") else "shapes", "device": gpu["name"], "world": world, "samples": given.batch // share,
           "micro_batches": 1, "parallel": "ddp" if world > 1 else "none", "compiled": False, "kinds": kinds,
           "order": order, "collectives": collectives, "gradients": gradients, "host_ops": 400,
           "memory": {"parameters": 1e9, "gradients": 1e9, "optimizer": 2e9, "peak": 0.9e9 * given.reserve,
                      "reserved": 1e9 * given.reserve},
           "answered": {"item": 1}, "refused": None}
if given.loader:
    counted["loader"] = {"core_s_per_batch": given.loader, "samples": given.batch // share, "workers": 2}
if given.refuse:
    counted = {"kind": "counted", "refused": given.refuse}
start = {"kind": "start", "rank": 0, "world": world, "threads": 1, "device": "cuda", "parallel": counted.get("parallel", ""),
         "backend": "nccl" if world > 1 else ""}
file = pathlib.Path(os.environ["HOWMANY_SCRIPT_OUT"]) / "rank0.1.jsonl"
lines = [start] + [counted] * (not given.silent)
file.write_text("".join(json.dumps(line) + "\n" for line in lines))
