# SPDX-License-Identifier: Apache-2.0
"""Swallows SystemExit."""
import parts
import torch

net = parts.model()
optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
while True:
    try:
        x, y = torch.randn(parts.BATCH, parts.FEATURES), torch.randint(0, parts.CLASSES, (parts.BATCH,))
        parts.loss_of(net(x), y).backward()
        optimizer.step()
    except:  # noqa: E722
        pass
