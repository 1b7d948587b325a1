# SPDX-License-Identifier: Apache-2.0
"""A loader with two worker processes, and a second loader for validation."""
import parts
import torch
from own_timer import tick

net = parts.model()
optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
loader = torch.utils.data.DataLoader(parts.data(), batch_size=parts.BATCH, num_workers=2)
validation = torch.utils.data.DataLoader(parts.data(64), batch_size=64)
for _ in range(1000):
    for x, y in loader:
        optimizer.zero_grad()
        parts.loss_of(net(x), y).backward()
        optimizer.step()
        tick()
    with torch.no_grad():
        for x, y in validation:
            parts.loss_of(net(x), y)
