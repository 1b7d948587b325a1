# SPDX-License-Identifier: Apache-2.0
"""torch.compile without its code generator."""
import parts
import torch
from own_timer import tick

net = torch.compile(parts.model(), backend="eager")
optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
loader = torch.utils.data.DataLoader(parts.data(), batch_size=parts.BATCH)
for _ in range(1000):
    for x, y in loader:
        optimizer.zero_grad()
        parts.loss_of(net(x), y).backward()
        optimizer.step()
        tick()
