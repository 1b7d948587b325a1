# SPDX-License-Identifier: Apache-2.0
"""Training scripts that differ in how they are started: python starts.py KIND. Each trains until it is ended."""

import os
import sys

import torch
import torch.distributed as dist
import torch.multiprocessing as mp

RANKS = int(os.environ.get("WORLD_SIZE", "1"))


def train(wrap=False):
    net = torch.nn.Linear(64, 64)
    if wrap:
        net = torch.nn.parallel.DistributedDataParallel(net)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
    data = torch.utils.data.TensorDataset(torch.randn(4096, 64))
    while True:
        for (batch,) in torch.utils.data.DataLoader(data, batch_size=16):
            optimizer.zero_grad()
            net(batch).square().mean().backward()
            optimizer.step()


def alone():
    train()


def always_a_group():
    for name, value in {"RANK": "0", "WORLD_SIZE": "1", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "29581"}.items():
        os.environ.setdefault(name, value)
    dist.init_process_group("gloo")
    train(wrap=True)


def group_if_many():
    if RANKS > 1:
        dist.init_process_group("gloo")
    train(wrap=RANKS > 1)


def group_if_launched():
    launched = "RANK" in os.environ
    if launched:
        dist.init_process_group("gloo")
    train(wrap=launched)


def needs_launcher():
    rank = int(os.environ["RANK"])
    dist.init_process_group("gloo", rank=rank)
    train(wrap=True)


def only_alone():
    if "RANK" in os.environ:
        raise RuntimeError("Found no NVIDIA driver")
    train()


def spawned(rank, world):
    os.environ["MASTER_ADDR"], os.environ["MASTER_PORT"] = "127.0.0.1", "29582"
    dist.init_process_group("gloo", rank=rank, world_size=world)
    train(wrap=True)


def spawns_two():
    mp.spawn(spawned, args=(2,), nprocs=2)


def spawns_three():
    mp.spawn(spawned, args=(3,), nprocs=3)


def spawns_given():
    mp.spawn(spawned, args=(int(sys.argv[2]),), nprocs=int(sys.argv[2]))


def no_step():
    while True:
        torch.ones(8).sum()


def ends():
    print("No GPU, nothing to do")


def asks():
    input("Which data? ")


def exits():
    sys.exit("No checkpoint found")


if __name__ == "__main__":
    globals()[sys.argv[1]]()
