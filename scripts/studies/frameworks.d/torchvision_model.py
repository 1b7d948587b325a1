# SPDX-License-Identifier: Apache-2.0
"""torchvision's resnet18 on FakeData, with the group of its references: from RANK and WORLD_SIZE."""
import os

import torch
import torchvision

distributed = "RANK" in os.environ and "WORLD_SIZE" in os.environ
if distributed:
    torch.distributed.init_process_group("gloo", init_method="env://")
model = torchvision.models.resnet18(num_classes=10)
if distributed:
    model = torch.nn.parallel.DistributedDataParallel(model)
data = torchvision.datasets.FakeData(512, (3, 64, 64), 10, torchvision.transforms.ToTensor())
sampler = torch.utils.data.DistributedSampler(data) if distributed else None
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for _ in range(1000):
    for x, y in torch.utils.data.DataLoader(data, batch_size=8, sampler=sampler):
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()
