# SPDX-License-Identifier: Apache-2.0
"""Tensor parallelism over pairs of neighbours, FSDP2 over every second rank."""
import parts
import torch
from own_timer import tick
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module

torch.distributed.init_process_group("gloo")
shape = (torch.distributed.get_world_size() // 2, 2)
mesh = torch.distributed.init_device_mesh("cpu", shape, mesh_dim_names=("data", "tensor"))
net = parallelize_module(parts.model(), mesh["tensor"], {"0": ColwiseParallel(), "2": RowwiseParallel()})
fully_shard(net, mesh=mesh["data"])
optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
loader = torch.utils.data.DataLoader(parts.data(), batch_size=parts.BATCH)
for _ in range(1000):
    for x, y in loader:
        optimizer.zero_grad()
        parts.loss_of(net(x), y).backward()
        optimizer.step()
        tick()
