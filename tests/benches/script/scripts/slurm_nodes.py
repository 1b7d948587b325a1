# SPDX-License-Identifier: Apache-2.0
"""DistributedDataParallel in steps of 40 ms, on ranks of torchrun or of srun. Prints where each rank is."""

import argparse
import os
import time

import torch

parser = argparse.ArgumentParser()
parser.add_argument("--epochs", type=int, default=10_000)
parser.add_argument("--rank-of-srun", action="store_true")
parser.add_argument("--alone", action="store_true", help="each rank is the only one of its group")
options = parser.parse_args()

if options.rank_of_srun:
    os.environ.update(RANK=os.environ["SLURM_PROCID"], WORLD_SIZE=os.environ["SLURM_NTASKS"])
if options.alone:
    torch.distributed.init_process_group("gloo", store=torch.distributed.HashStore(), rank=0, world_size=1)
else:
    torch.distributed.init_process_group("gloo")
net = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(8, 8))
optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
samples = torch.utils.data.TensorDataset(torch.ones(64, 8))
sampler = torch.utils.data.DistributedSampler(samples)
loader = torch.utils.data.DataLoader(samples, batch_size=8, sampler=sampler)
for epoch in range(options.epochs):
    for (x,) in loader:
        time.sleep(0.04)
        optimizer.zero_grad()
        net(x).sum().backward()
        optimizer.step()
rank, world = torch.distributed.get_rank(), torch.distributed.get_world_size()
print(f"rank {rank} of {world} on {os.uname().nodename}", flush=True)
torch.distributed.destroy_process_group()
