# SPDX-License-Identifier: Apache-2.0
import parts
import torch
from own_timer import tick
from torch.utils.data.distributed import DistributedSampler

if not torch.distributed.is_initialized():
    torch.distributed.init_process_group("gloo")
net = torch.nn.parallel.DistributedDataParallel(parts.model())
optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
samples = parts.data()
sampler = DistributedSampler(samples)
loader = torch.utils.data.DataLoader(samples, batch_size=parts.BATCH, sampler=sampler)
for epoch in range(1000):
    sampler.set_epoch(epoch)
    for x, y in loader:
        optimizer.zero_grad()
        parts.loss_of(net(x), y).backward()
        optimizer.step()
        tick()
torch.distributed.destroy_process_group()
