# SPDX-License-Identifier: Apache-2.0
"""The same training with DistributedDataParallel, started by torchrun."""

import os

import torch
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

cuda = torch.cuda.is_available()
torch.distributed.init_process_group("nccl" if cuda else "gloo")
device = f"cuda:{os.environ['LOCAL_RANK']}" if cuda else "cpu"
images = TensorDataset(torch.randn(4096, 3, 32, 32), torch.randint(0, 10, (4096,)))
sampler = DistributedSampler(images)
loader = DataLoader(images, batch_size=64, sampler=sampler)
model = torch.nn.Sequential(
    torch.nn.Conv2d(3, 32, 3, padding=1), torch.nn.ReLU(), torch.nn.Conv2d(32, 64, 3, stride=2, padding=1),
    torch.nn.ReLU(), torch.nn.AdaptiveAvgPool2d(1), torch.nn.Flatten(), torch.nn.Linear(64, 10)).to(device)
model = DistributedDataParallel(model)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)

for epoch in range(200):
    sampler.set_epoch(epoch)
    for x, y in loader:
        loss = torch.nn.functional.cross_entropy(model(x.to(device)), y.to(device))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    if torch.distributed.get_rank() == 0:
        print(f"Epoch {epoch + 1}, Loss: {loss.item():.4f}")
torch.distributed.destroy_process_group()
