# SPDX-License-Identifier: Apache-2.0
"""accelerate. Its loader fetches one batch ahead."""
import accelerate
import parts
import torch
from own_timer import tick

accelerator = accelerate.Accelerator(cpu=True)
net = parts.model()
loader = torch.utils.data.DataLoader(parts.data(), batch_size=parts.BATCH)
net, optimizer, loader = accelerator.prepare(net, torch.optim.SGD(net.parameters(), lr=0.01), loader)
for _ in range(1000):
    for x, y in loader:
        optimizer.zero_grad()
        accelerator.backward(parts.loss_of(net(x), y))
        optimizer.step()
        tick()
