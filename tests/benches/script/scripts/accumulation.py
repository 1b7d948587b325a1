# SPDX-License-Identifier: Apache-2.0
"""Four micro-batches per optimizer step."""
import parts
import torch
from own_timer import tick

net = parts.model()
optimizer = torch.optim.AdamW(net.parameters(), lr=0.001)
loader = torch.utils.data.DataLoader(parts.data(), batch_size=parts.BATCH)
for _ in range(1000):
    for i, (x, y) in enumerate(loader):
        (parts.loss_of(net(x), y) / 4).backward()
        if i % 4 == 3:
            optimizer.step()
            tick()
            optimizer.zero_grad()
