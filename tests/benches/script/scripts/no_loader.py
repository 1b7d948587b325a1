# SPDX-License-Identifier: Apache-2.0
"""Random batches without a DataLoader."""
import parts
import torch
from own_timer import tick

net = parts.model()
optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
while True:
    x, y = torch.randn(parts.BATCH, parts.FEATURES), torch.randint(0, parts.CLASSES, (parts.BATCH,))
    optimizer.zero_grad()
    parts.loss_of(net(x), y).backward()
    optimizer.step()
    tick()
