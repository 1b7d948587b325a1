# SPDX-License-Identifier: Apache-2.0
"""A training script under DistributedDataParallel whose layers compute on one core per rank:
computing_ddp.py [WIDTH [BATCH]]. Six linear layers of WIDTH, BATCH samples per rank."""

import sys

import torch
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

width, batch = (int(word) for word in (sys.argv[1:] + ["1024", "64"][len(sys.argv) - 1:])[:2])
torch.distributed.init_process_group("gloo")
data = TensorDataset(torch.randn(batch * 400, width), torch.randint(0, 10, (batch * 400,)))
loader = DataLoader(data, batch_size=batch, sampler=DistributedSampler(data))
layers = [part for _ in range(6) for part in (torch.nn.Linear(width, width), torch.nn.ReLU())]
net = torch.nn.parallel.DistributedDataParallel(torch.nn.Sequential(*layers, torch.nn.Linear(width, 10)))
optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
for _ in range(1000):
    for x, y in loader:
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(net(x), y).backward()
        optimizer.step()
