# SPDX-License-Identifier: Apache-2.0
"""A generator and a discriminator, each with an optimizer: one step is both."""
import parts
import torch
from own_timer import tick

first, second = parts.model(), parts.model()
optimizers = [torch.optim.Adam(net.parameters(), lr=0.001) for net in (first, second)]
loader = torch.utils.data.DataLoader(parts.data(), batch_size=parts.BATCH)
for _ in range(1000):
    for x, y in loader:
        for net, optimizer in zip((first, second), optimizers):
            optimizer.zero_grad()
            parts.loss_of(net(x), y).backward()
            optimizer.step()
        tick()
