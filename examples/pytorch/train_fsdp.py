# SPDX-License-Identifier: Apache-2.0
"""A small language model whose parameters, gradients and optimizer state are divided over ranks by FSDP2, started by
torchrun."""

import os

import torch
from torch.distributed.fsdp import fully_shard
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

WORDS, WIDTH, LENGTH = 8192, 512, 64

cuda = torch.cuda.is_available()
torch.distributed.init_process_group("nccl" if cuda else "gloo")
device = f"cuda:{os.environ['LOCAL_RANK']}" if cuda else "cpu"
tokens = TensorDataset(torch.randint(0, WORDS, (2048, LENGTH + 1)))
sampler = DistributedSampler(tokens)
loader = DataLoader(tokens, batch_size=8, sampler=sampler)
blocks = [torch.nn.TransformerEncoderLayer(WIDTH, 8, 4 * WIDTH, batch_first=True, norm_first=True) for _ in range(8)]
model = torch.nn.Sequential(torch.nn.Embedding(WORDS, WIDTH), *blocks, torch.nn.Linear(WIDTH, WORDS)).to(device)
for block in model[1:-1]:
    fully_shard(block)
fully_shard(model)
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4)

for epoch in range(200):
    sampler.set_epoch(epoch)
    for (batch,) in loader:
        batch = batch.to(device)
        loss = torch.nn.functional.cross_entropy(model(batch[:, :-1]).flatten(0, 1), batch[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    if torch.distributed.get_rank() == 0:
        print(f"Epoch {epoch + 1}, Loss: {loss.item():.4f}")
torch.distributed.destroy_process_group()
