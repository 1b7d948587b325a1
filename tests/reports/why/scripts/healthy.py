# SPDX-License-Identifier: Apache-2.0
"""Healthy training scripts of different kinds: healthy.py KIND. Their gradients are few for their compute."""

import contextlib
import os
import sys

import torch
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, Dataset, DistributedSampler

BATCH, KEPT, PASSES = 320, 256, 4


class Transformer(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.words = torch.nn.Embedding(256, 64)
        layer = torch.nn.TransformerEncoderLayer(64, 4, 128, dropout=0, batch_first=True)
        self.layers = torch.nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.head = torch.nn.Linear(64, 10)

    def forward(self, x):
        return self.head(self.layers(self.words(x)).mean(1))


class Mlp(torch.nn.Module):
    def __init__(self):
        super().__init__()
        sizes = [160, 192, 192]
        layers = [[torch.nn.Linear(a, b), torch.nn.ReLU()] for a, b in zip(sizes, sizes[1:])]
        self.layers, self.head = torch.nn.Sequential(*sum(layers, [])), torch.nn.Linear(192, 10)

    def forward(self, x):
        return self.head(self.layers(x).mean(1))


def convolutions():
    def block(a, b):
        return [torch.nn.Conv2d(a, b, 3, stride=2, padding=1, bias=False), torch.nn.BatchNorm2d(b), torch.nn.ReLU()]

    return torch.nn.Sequential(*block(3, 32), *block(32, 64), torch.nn.AdaptiveAvgPool2d(1), torch.nn.Flatten(),
                               torch.nn.Linear(64, 10))


class Samples(Dataset):
    def __init__(self, x):
        self.x, self.y = x, torch.randint(0, 10, (KEPT,))

    def __len__(self):
        return 100_000

    def __getitem__(self, index):
        return self.x[index % KEPT], self.y[index % KEPT]


def build(kind):
    if kind == "transformer":
        return Transformer(), torch.randint(0, 256, (KEPT, 48))
    if kind == "conv":
        return convolutions(), torch.randn(KEPT, 3, 64, 64)
    return Mlp(), torch.randn(KEPT, 32 if kind == "accumulation" else 128, 160)


def main(kind):
    distributed = "RANK" in os.environ
    if distributed:
        torch.distributed.init_process_group("gloo")
    torch.manual_seed(0)
    model, x = build(kind)
    samples = Samples(x)
    sampler = DistributedSampler(samples) if distributed else None
    loader = DataLoader(samples, BATCH, sampler=sampler, shuffle=not distributed, drop_last=True)
    wrapped = distributed and kind != "manual"
    net = DistributedDataParallel(model) if wrapped else model
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    passes = PASSES if kind == "accumulation" else 1
    for _ in range(1000):
        for index, (inputs, labels) in enumerate(loader):
            ends = (index + 1) % passes == 0
            with contextlib.nullcontext() if ends or not wrapped else net.no_sync():
                (torch.nn.functional.cross_entropy(net(inputs), labels) / passes).backward()
            if not ends:
                continue
            if distributed and not wrapped:
                flat = torch.cat([p.grad.view(-1) for p in model.parameters()])
                torch.distributed.all_reduce(flat)
                flat /= torch.distributed.get_world_size()
                for p, grad in zip(model.parameters(), flat.split([p.numel() for p in model.parameters()])):
                    p.grad.copy_(grad.view_as(p))
            optimizer.step()
            optimizer.zero_grad()


main(sys.argv[1])  # mlp, conv, transformer, manual, accumulation
