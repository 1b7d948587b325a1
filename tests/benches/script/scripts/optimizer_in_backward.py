# SPDX-License-Identifier: Apache-2.0
"""Each parameter has an optimizer that steps as soon as its gradient is complete, and then frees it."""
import parts
import torch
from own_timer import tick

net = parts.model()
optimizers = {p: torch.optim.SGD([p], lr=0.01) for p in net.parameters()}


def update(parameter):
    optimizers[parameter].step()
    optimizers[parameter].zero_grad()


for p in net.parameters():
    p.register_post_accumulate_grad_hook(update)
loader = torch.utils.data.DataLoader(parts.data(), batch_size=parts.BATCH)
for _ in range(1000):
    for x, y in loader:
        parts.loss_of(net(x), y).backward()
        tick()
