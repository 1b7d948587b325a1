# SPDX-License-Identifier: Apache-2.0
"""Ends after three steps."""
import parts
import torch

net = parts.model()
optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
for x, y in torch.utils.data.DataLoader(parts.data(3 * parts.BATCH), batch_size=parts.BATCH):
    parts.loss_of(net(x), y).backward()
    optimizer.step()
