# SPDX-License-Identifier: Apache-2.0
"""The data are one large tensor on the host, of which each batch is a slice."""
import parts
import torch

net = parts.model()
optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
data = torch.randn(100_000, parts.FEATURES)  # 102 MB
loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(data), batch_size=parts.BATCH)
while True:
    for (x,) in loader:
        optimizer.zero_grad()
        net(x).square().mean().backward()
        optimizer.step()
    for i in range(0, 640, parts.BATCH):
        optimizer.zero_grad()
        net(data[i:i + parts.BATCH]).square().mean().backward()
        optimizer.step()
