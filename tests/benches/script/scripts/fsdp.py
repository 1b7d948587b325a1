# SPDX-License-Identifier: Apache-2.0
"""FSDP2."""
import parts
import torch
from own_timer import tick
from torch.distributed.fsdp import fully_shard

torch.distributed.init_process_group("gloo")
mesh = torch.distributed.init_device_mesh("cpu", (torch.distributed.get_world_size(),))
net = parts.model()
fully_shard(net, mesh=mesh)
optimizer = torch.optim.Adam(net.parameters(), lr=0.001)
loader = torch.utils.data.DataLoader(parts.data(), batch_size=parts.BATCH)
for _ in range(1000):
    for x, y in loader:
        optimizer.zero_grad()
        parts.loss_of(net(x), y).backward()
        optimizer.step()
        tick()
