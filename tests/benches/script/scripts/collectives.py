# SPDX-License-Identifier: Apache-2.0
"""Checks every collective of a rehearsal on 4 ranks, of which this is rank 0, and then trains."""
import os

import torch
import torch.distributed as dist

assert os.environ["WORLD_SIZE"] == "4" and os.environ["RANK"] == "0"
dist.init_process_group("gloo")
assert (dist.get_rank(), dist.get_world_size()) == (0, 4)
own = torch.arange(8.0)


def same(found, expected):
    assert torch.equal(found, expected), (found, expected)


total = own.clone()
dist.all_reduce(total)
same(total, 4 * own)
largest = own.clone()
dist.all_reduce(largest, dist.ReduceOp.MAX, async_op=True).wait()
same(largest, own)
parts = [torch.empty(8) for _ in range(4)]
dist.all_gather(parts, own)
for part in parts:
    same(part, own)
whole = torch.empty(32)
dist.all_gather_into_tensor(whole, own)
same(whole, own.repeat(4))
quarter = torch.empty(2)
dist.reduce_scatter_tensor(quarter, own)
same(quarter, own[:2])
dist.reduce_scatter(quarter, list(own.chunk(4)))
same(quarter, own[:2])
dist.broadcast(own, 0)
dist.reduce(own, 0)
objects = [None] * 4
dist.all_gather_object(objects, {"loss": 1.5})
assert objects == [{"loss": 1.5}] * 4
sent = ["from rank 0"]
dist.broadcast_object_list(sent, 0)
assert sent == ["from rank 0"]
dist.barrier()
pair = dist.new_group([0, 2], backend="gloo")
assert dist.get_world_size(pair) == 2
total = own.clone()
dist.all_reduce(total, group=pair)
same(total, 2 * own)

import ddp  # noqa: E402, F401
