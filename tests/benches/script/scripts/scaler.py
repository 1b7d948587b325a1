# SPDX-License-Identifier: Apache-2.0
"""Mixed precision with a GradScaler, which skips the first steps: its first scale overflows."""
import parts
import torch
from own_timer import tick

net = parts.model()
optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
scaler = torch.amp.GradScaler("cpu", init_scale=2.0**127)
loader = torch.utils.data.DataLoader(parts.data(), batch_size=parts.BATCH)
for _ in range(1000):
    for x, y in loader:
        optimizer.zero_grad()
        with torch.autocast("cpu", dtype=torch.bfloat16):
            loss = parts.loss_of(net(x), y)
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        tick()
