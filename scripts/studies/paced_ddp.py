# SPDX-License-Identifier: Apache-2.0
"""A training script under DistributedDataParallel whose layers sleep instead of computing, so that many ranks
fit on few cores: paced_ddp.py LAYERS WIDTH MILLISECONDS. A backward pass takes twice the time of a forward pass."""

import sys
import time

import torch
import torch.distributed as dist

layers, width, seconds = int(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3]) * 1e-3
torch.set_num_threads(1)


class Pace(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        time.sleep(seconds / layers / 3)
        return x.clone()

    @staticmethod
    def backward(ctx, gradient):
        time.sleep(2 * seconds / layers / 3)
        return gradient


class Layer(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.randn(width, width) * 0.01)

    def forward(self, x):
        return Pace.apply(x * self.weight[0] + self.weight.sum() * 0)


dist.init_process_group("gloo")
net = torch.nn.parallel.DistributedDataParallel(torch.nn.Sequential(*[Layer() for _ in range(layers)]))
optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
try:
    for _ in range(100_000):
        optimizer.zero_grad()
        net(torch.ones(8, width)).sum().backward()
        optimizer.step()
finally:
    dist.destroy_process_group()
