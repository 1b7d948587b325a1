# SPDX-License-Identifier: Apache-2.0
"""A training script as its users write it. Without options it is healthy. Each option of `culprits` costs a time that
the script measures itself, or that the same script without the option shows."""

import argparse
import os
import tempfile
import time

import torch
from stopwatch import Stopwatch
from torch.distributed.algorithms.ddp_comm_hooks import default_hooks
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, Dataset, DistributedSampler

FEATURES, CLASSES, KEPT = 160, 10, 256


def arguments():
    parser = argparse.ArgumentParser()
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--width", type=int, default=192)
    parser.add_argument("--layers", type=int, default=3)
    parser.add_argument("--tokens", type=int, default=64, help="of a sample")
    parser.add_argument("--blocks", type=int, default=0, help="further small layers")
    parser.add_argument("--workers", type=int, default=0)
    parser.add_argument("--persistent", action="store_true")
    parser.add_argument("--epoch-steps", type=int, default=1000)
    parser.add_argument("--accumulate", type=int, default=1)
    parser.add_argument("--bucket-cap", type=float, default=25)
    parser.add_argument("--bucket-view", action="store_true")
    parser.add_argument("--static-graph", action="store_true")
    parser.add_argument("--bf16", action="store_true")
    parser.add_argument("--steps", type=int, default=100_000_000)
    culprits = parser.add_argument_group("culprits")
    culprits.add_argument("--slow-sample", type=float, default=0, help="seconds")
    culprits.add_argument("--slow-rank", type=float, default=0, help="seconds of a step, in rank 1")
    culprits.add_argument("--slow-turns", type=float, default=0, help="seconds of a step, in one rank after the other")
    culprits.add_argument("--uneven", type=float, default=0, help="seconds of every second step of a rank, also of one")
    culprits.add_argument("--tiny-parameters", type=int, default=0)
    culprits.add_argument("--threads", type=int)
    culprits.add_argument("--log-norms", action="store_true", help="the norm of each parameter, after each step")
    culprits.add_argument("--validate-every", type=int)
    culprits.add_argument("--validate-batches", type=int, default=16)
    culprits.add_argument("--save-every", type=int)
    culprits.add_argument("--frozen-mb", type=int, default=0, help="size of the weights that do not train")
    culprits.add_argument("--find-unused", action="store_true")
    culprits.add_argument("--unused-mb", type=float, default=0)
    return parser.parse_args()


class Samples(Dataset):
    def __init__(self, count, options, seconds=0.0):
        self.x = torch.randn(KEPT, options.tokens, FEATURES)
        self.y = torch.randint(0, CLASSES, (KEPT,))
        self.count, self.seconds = count, seconds

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        if self.seconds:
            with watch("data"):
                time.sleep(self.seconds)
        return self.x[index % KEPT], self.y[index % KEPT]


class Net(torch.nn.Module):
    def __init__(self, options):
        super().__init__()
        sizes = [FEATURES] + [options.width] * options.layers
        layers = [[torch.nn.Linear(a, b), torch.nn.ReLU()] for a, b in zip(sizes, sizes[1:])]
        self.layers = torch.nn.Sequential(*sum(layers, []))
        self.blocks = torch.nn.ModuleList(torch.nn.Linear(8, 8) for _ in range(options.blocks))
        self.tiny = torch.nn.ParameterList(torch.zeros(8) for _ in range(options.tiny_parameters))
        self.head = torch.nn.Linear(options.width, CLASSES)
        if options.unused_mb:
            self.unused = torch.nn.Parameter(torch.zeros(int(options.unused_mb * (1 << 18))))
        if options.frozen_mb:
            self.frozen = torch.nn.Parameter(torch.zeros(options.frozen_mb << 18), requires_grad=False)

    def forward(self, x, extra=0.0):
        if extra:
            with watch("forward"):
                time.sleep(extra)
        x = self.layers(x).mean(1)
        if len(self.tiny):
            x = x + torch.cat(tuple(self.tiny)).mean()
        if len(self.blocks):
            h = x[:1, :8]
            for block in self.blocks:
                h = h + block(h)
            x = x + 0 * h.mean()
        return self.head(x)


def extra_seconds(options, rank, world, step):
    """What the forward pass of this rank takes longer."""
    seconds = options.slow_rank if rank == 1 else 0
    if world > 1 and step % world == rank:
        seconds += options.slow_turns
    if (step + rank) % 2 == 0:
        seconds += options.uneven
    return seconds


@torch.no_grad()
def validate(net, loader):
    net.eval()
    right = sum((net(x).argmax(1) == y).sum().item() for x, y in loader)
    net.train()
    return right


def log(step, model):
    for name, p in model.named_parameters():
        print(f"{step} {name} {p.norm().item():.4f} {p.grad.norm().item():.4f}")


def main():
    options = arguments()
    if options.threads:
        torch.set_num_threads(options.threads)
    distributed = "RANK" in os.environ
    if distributed:
        torch.distributed.init_process_group("gloo")
    rank = torch.distributed.get_rank() if distributed else 0
    world = torch.distributed.get_world_size() if distributed else 1
    watch.begin(rank, world)
    torch.manual_seed(0)
    model = Net(options)
    net = model
    if distributed:
        net = DistributedDataParallel(
            model, find_unused_parameters=options.find_unused, bucket_cap_mb=options.bucket_cap,
            gradient_as_bucket_view=options.bucket_view, static_graph=options.static_graph)
        if options.bf16:
            net.register_comm_hook(None, default_hooks.bf16_compress_hook)
    optimizer = torch.optim.SGD((p for p in model.parameters() if p.requires_grad), lr=0.001, momentum=0.9)
    count = options.batch * options.epoch_steps * options.accumulate * world
    samples = Samples(count, options, options.slow_sample)
    sampler = DistributedSampler(samples) if distributed else None
    loader = DataLoader(samples, options.batch, sampler=sampler, shuffle=not distributed, num_workers=options.workers,
                        persistent_workers=options.persistent)
    held_out = DataLoader(Samples(options.batch * options.validate_batches, options), options.batch)
    folder = tempfile.mkdtemp(prefix="culprit_")
    step = 0
    while step < options.steps:
        if distributed:
            sampler.set_epoch(step)
        for index, (x, y) in enumerate(watch.epoch(loader)):
            ends = (index + 1) % options.accumulate == 0
            if distributed:
                net.require_backward_grad_sync = ends
            loss = torch.nn.functional.cross_entropy(net(x, extra_seconds(options, rank, world, step)), y)
            (loss / options.accumulate).backward()
            if not ends:
                continue
            optimizer.step()
            step += 1
            if options.log_norms:
                with watch("log"):
                    log(step, model)
            optimizer.zero_grad()
            if options.validate_every and step % options.validate_every == 0:
                with watch("validate"):
                    validate(net, held_out)
            if options.save_every and step % options.save_every == 0 and rank == 0:
                with watch("save"):
                    torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict()}, f"{folder}/last.pt")
            watch.stepped()
            if step == options.steps:
                break
    if distributed:
        torch.distributed.destroy_process_group()


watch = Stopwatch()
main()
