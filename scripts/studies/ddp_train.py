# SPDX-License-Identifier: Apache-2.0
"""A small training script under DistributedDataParallel, on a GPU if there is one: what scripts/check-gpu measures and
rehearses through the hook."""

import os

import torch
import torch.distributed as dist

cuda = torch.cuda.is_available()
dist.init_process_group("nccl" if cuda else "gloo")
device = torch.device("cuda", int(os.environ["LOCAL_RANK"])) if cuda else torch.device("cpu")
net = torch.nn.Sequential(*[torch.nn.Linear(2048, 2048) for _ in range(8)]).to(device)
net = torch.nn.parallel.DistributedDataParallel(net)
optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
batch = torch.randn(512, 2048, device=device)
for _ in range(100_000):
    optimizer.zero_grad()
    net(batch).square().mean().backward()
    optimizer.step()
