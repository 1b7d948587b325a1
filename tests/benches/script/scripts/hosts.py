# SPDX-License-Identifier: Apache-2.0
"""DistributedDataParallel in steps of about 1 ms. Prints what its process saw of the store."""

import argparse
import atexit
import json
import os
import random
import time

import torch

parser = argparse.ArgumentParser()
parser.add_argument("--steps", type=int, default=1_000_000)
parser.add_argument("--passes", type=int, default=1, help="of a step, with accumulated gradients")
parser.add_argument("--hook-fails", action="store_true", help="in all ranks but 0")
parser.add_argument("--raises-after", type=int, help="in rank 0")
parser.add_argument("--seed", type=int, help="of uneven times, and a slow rank")
options = parser.parse_args()

rank = int(os.environ["RANK"])
seen = {"seed": options.seed, "rank": rank, "steps": 0, "calls": 0}
check = torch.distributed.Store.check


def counted(store, keys):
    seen["calls"] += 1
    seen.setdefault("first_call_s", time.perf_counter() - trained)
    return check(store, keys)


def show():
    if torch.distributed.is_initialized():
        store = torch.distributed.distributed_c10d._get_default_store()
        seen["shared"] = check(store, ["howmany/host"])
    os.write(1, (json.dumps(seen) + "\n").encode())  # at once: ranks may share the pipe


torch.distributed.Store.check = counted
torch.distributed.init_process_group("gloo")
atexit.register(show)
if options.raises_after is not None:
    import howmany_hook.record

    howmany_hook.record.PATIENCE = 3600  # a rank that waits is not to be taken for one on a busy machine
if options.hook_fails and rank > 0:
    torch.get_num_threads = lambda: 1 / 0
net = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(8, 8))
optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
noise = random.Random(f"{options.seed} {rank}")
slow = options.seed is not None and options.seed % torch.distributed.get_world_size() == rank
trained = time.perf_counter()
for step in range(options.steps):
    for micro_batch in range(options.passes):
        net(torch.ones(4, 8)).sum().backward()
    if options.seed is not None:
        time.sleep(noise.expovariate(300 if slow else 2000))
    seen["steps"] += 1
    if rank == 0 and options.raises_after == step:
        raise ValueError("no more data")
    optimizer.step()
    optimizer.zero_grad()
torch.distributed.destroy_process_group()
