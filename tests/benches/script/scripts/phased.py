# SPDX-License-Identifier: Apache-2.0
"""Trains with DistributedDataParallel. Each batch sleeps for 4 ms, and 3 ms lie between steps."""

import argparse
import time

import torch
from torch.distributed.algorithms.ddp_comm_hooks.default_hooks import allreduce_hook
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, Dataset

parser = argparse.ArgumentParser()
parser.add_argument("--slow-rank", type=int, default=-1)
parser.add_argument("--workers", type=int, default=0)
parser.add_argument("--epoch", type=int, default=1000)
parser.add_argument("--threads", type=int, default=0)
parser.add_argument("--own-hook", action="store_true")
options = parser.parse_args()


class Samples(Dataset):
    def __len__(self):
        return 4 * options.epoch

    def __getitem__(self, index):
        time.sleep(0.001)
        return torch.randn(256)


torch.distributed.init_process_group("gloo")
if options.threads:
    torch.set_num_threads(options.threads)
model = DistributedDataParallel(torch.nn.Linear(256, 256), gradient_as_bucket_view=True)
if options.own_hook:
    model.register_comm_hook(None, allreduce_hook)
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
loader = DataLoader(Samples(), batch_size=4, num_workers=options.workers)
for _ in range(10_000):
    for batch in loader:
        loss = model(batch).square().mean()
        if torch.distributed.get_rank() == options.slow_rank:
            time.sleep(0.02)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        time.sleep(0.003)
