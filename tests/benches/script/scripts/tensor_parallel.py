# SPDX-License-Identifier: Apache-2.0
"""Tensor parallelism: every rank gets the same batch."""
import parts
import torch
from own_timer import tick
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module

torch.distributed.init_process_group("gloo")
mesh = torch.distributed.init_device_mesh("cpu", (torch.distributed.get_world_size(),))
net = parallelize_module(parts.model(), mesh, {"0": ColwiseParallel(), "2": RowwiseParallel()})
optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
loader = torch.utils.data.DataLoader(parts.data(), batch_size=parts.BATCH)
for _ in range(1000):
    for x, y in loader:
        optimizer.zero_grad()
        parts.loss_of(net(x), y).backward()
        optimizer.step()
        tick()
