# SPDX-License-Identifier: Apache-2.0
import parts
import torch
from own_timer import tick

net = parts.model()
optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
loader = torch.utils.data.DataLoader(parts.data(), batch_size=parts.BATCH, shuffle=True)
for _ in range(1000):
    for x, y in loader:
        optimizer.zero_grad()
        parts.loss_of(net(x), y).backward()
        optimizer.step()
        tick()
