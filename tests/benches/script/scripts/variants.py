# SPDX-License-Identifier: Apache-2.0
"""Training loops of many kinds, 64 samples a step unless said: python variants.py NAME. Those that need ranks form a group
under torchrun."""

import itertools
import os
import sys
import time

import parts
import torch
from torch.utils.checkpoint import checkpoint
from torch.utils.data import DataLoader

RANKS = int(os.environ.get("WORLD_SIZE", "1"))
net = parts.model()


def batch(size=parts.BATCH):
    return torch.randn(size, parts.FEATURES), torch.randint(0, parts.CLASSES, (size,))


def wrapped(model):
    if RANKS == 1:
        return model
    form()
    return torch.nn.parallel.DistributedDataParallel(model, static_graph=True)


def form():
    if RANKS > 1:
        torch.distributed.init_process_group("gloo")


def nothing(*_):
    pass


def train(model, batches, before=nothing, after=nothing):
    """Calls `before` and `after` around each step of the optimizer, with the model and the index."""
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for step, (x, y) in enumerate(batches):
        optimizer.zero_grad()
        parts.loss_of(model(x), y).backward()
        before(model, step)
        optimizer.step()
        after(model, step)


def endless():
    while True:
        yield batch()


class Checkpointed(torch.nn.Module):
    """Its blocks run backward passes within the backward pass."""

    def __init__(self):
        super().__init__()
        self.first, self.second = net[:2], net[2:]

    def forward(self, x):
        x = checkpoint(self.first, x.requires_grad_(), use_reentrant=True)
        return checkpoint(self.second, x, use_reentrant=True)


def reentrant():
    train(wrapped(Checkpointed()), endless())


def new_data_sets():
    train(net, (b for _ in itertools.count() for b in DataLoader(parts.data(256), batch_size=parts.BATCH)))


def validation_with_more_batches():
    samples, others = parts.data(256), DataLoader(parts.data(640), batch_size=parts.BATCH * 2)

    def batches():
        while True:
            yield from DataLoader(samples, batch_size=parts.BATCH, shuffle=True)
            with torch.no_grad():
                for x, _ in others:
                    net(x)
    train(net, batches())


class Infinite(DataLoader):
    """Keeps one iterator for all epochs, as ultralytics' InfiniteDataLoader."""

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        object.__setattr__(self, "batch_sampler", Repeated(self.batch_sampler))
        self.iterator = super().__iter__()

    def __len__(self):
        return len(self.batch_sampler.sampler)

    def __iter__(self):
        for _ in range(len(self)):
            yield next(self.iterator)


class Repeated:
    def __init__(self, sampler):
        self.sampler = sampler

    def __iter__(self):
        while True:
            yield from iter(self.sampler)


def infinite_loader():
    loader = Infinite(parts.data(640), batch_size=parts.BATCH)
    train(net, (b for _ in itertools.count() for b in loader))


class OwnLoader(DataLoader):
    """Makes its batches itself."""

    def __iter__(self):
        return endless()


def reset_loader():
    """Makes its iterator anew, as ultralytics for its last epochs."""
    loader = Infinite(parts.data(640), batch_size=parts.BATCH)
    loader.iterator = loader._get_iterator()
    train(net, (b for _ in itertools.count() for b in loader))


def own_iterator():
    train(net, OwnLoader(parts.data(640), batch_size=parts.BATCH))


class OneReads(DataLoader):
    """Rank 0 reads the batches of all ranks, as accelerate with dispatch_batches."""

    def __iter__(self):
        whole = super().__iter__() if int(os.environ.get("RANK", "0")) == 0 else None
        for _ in range(1000):
            x, y = next(whole) if whole else batch(parts.BATCH * RANKS)
            yield x[:parts.BATCH], y[:parts.BATCH]


def one_rank_reads():
    model = wrapped(net)
    train(model, OneReads(parts.data(64 * 1000), batch_size=parts.BATCH * RANKS))


class Images(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Conv2d(3, 8, 3)

    def forward(self, images):
        return torch.stack([self.layer(image[None]).mean((0, 2, 3)) for image in images])


def lists_of_images():
    """Eight a step."""
    train(Images(), (([torch.randn(3, 64, 64) for _ in range(8)], torch.zeros(8).long()) for _ in itertools.count()))


class Graphs:
    """Of 16 graphs, as of torch_geometric."""
    num_graphs = 16

    def __init__(self):
        self.x = torch.randn(640, parts.FEATURES)


class OfGraphs(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.net = net

    def forward(self, data):
        return self.net(data.x).view(16, 40, -1).mean(1)


def graphs():
    train(OfGraphs(), ((Graphs(), torch.zeros(16).long()) for _ in itertools.count()))


def trial_before_training():
    net(batch(1)[0]).sum().backward()
    train(net, endless())


def keyword_inputs():
    class Keywords(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.net = net

        def forward(self, *, inputs):
            return self.net(inputs)
    model = Keywords()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for x, y in endless():
        parts.loss_of(model(inputs=x), y).backward()
        optimizer.step()


def growing_accumulation():
    """Of one batch in the first 12 steps, then of four: 256 samples."""
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
    for step in itertools.count():
        optimizer.zero_grad()
        for _ in range(4 if step >= 12 else 1):
            x, y = batch()
            parts.loss_of(net(x), y).backward()
        optimizer.step()


def growing_batches():
    """Of no loader: 16 samples in the first 40 steps, then 64."""
    train(net, (batch(64 if step >= 40 else 16) for step in itertools.count()))


def rebatched():
    """The loader hands over 256 samples at once, the script divides them."""
    train(net, (pair for _ in itertools.count() for x, y in DataLoader(parts.data(2560), batch_size=256)
                for pair in zip(x.split(64), y.split(64))))


def rollouts():
    """0.5 s before each eight steps."""
    def rollout(_, step):
        if step % 8 == 7:
            time.sleep(0.5)
    train(net, endless(), after=rollout)


def average(tensors):
    for tensor in tensors:
        torch.distributed.all_reduce(tensor)
        tensor /= RANKS


def gradients_of(model):
    return [parameter.grad for parameter in model.parameters()]


def own_model():
    """Of a rank: no seed is the same."""
    form()
    torch.manual_seed(int(os.environ.get("RANK", "0")))
    for parameter in net.parameters():
        torch.nn.init.normal_(parameter, std=0.01)
    return net


def exchanges_nothing():
    train(own_model(), endless())


def logs_now_and_then():
    """The mean loss of all ranks, every 10 steps."""
    train(own_model(), endless(), after=lambda _, step: step % 10 or average([torch.zeros(1)]))


def averages_gradients():
    train(own_model(), endless(), before=lambda model, _: average(gradients_of(model)))


def averages_in_backward():
    model = own_model()
    for parameter in model.parameters():
        parameter.register_hook(lambda gradient: (torch.distributed.all_reduce(gradient), gradient)[1])
    train(model, endless())


def local_sgd():
    """Averages parameters every 8 steps."""
    def merge(model, step):
        if step % 8 == 7:
            with torch.no_grad():
                average(list(model.parameters()))
    train(own_model(), endless(), after=merge)


def sends_to_a_neighbour():
    """Averages parameters with one rank after the other, by messages."""
    def meet(model, step):
        rank = torch.distributed.get_rank()
        own = next(iter(model.parameters())).detach()
        other = torch.empty_like(own)
        for turn in (0, 1):
            torch.distributed.send(own, 1 - rank) if rank == turn else torch.distributed.recv(other, 1 - rank)
        own.add_(other).div_(2)
    train(own_model(), endless(), after=meet)


def same_gradients():
    """Exchanged in a way that no process group sees."""
    form()
    torch.manual_seed(0)
    train(net, endless())


def manual_updates():
    for x, y in endless():
        parts.loss_of(net(x), y).backward()
        with torch.no_grad():
            for parameter in net.parameters():
                parameter -= 0.01 * parameter.grad
                parameter.grad = None


def gradients_of_a_function():
    """The model is a function of its parameters."""
    parameters = dict(net.named_parameters())
    loss = torch.func.grad(lambda p, x, y: parts.loss_of(torch.func.functional_call(net, p, (x,)), y))
    for x, y in endless():
        gradients = loss(parameters, x, y)
        parameters = {name: p - 0.01 * gradients[name] for name, p in parameters.items()}


def two_models():
    """Both are saved, and have the same gradients in all ranks."""
    import io

    rank = int(os.environ["RANK"])
    torch.manual_seed(rank)
    critic = torch.nn.Sequential(torch.nn.Linear(parts.CLASSES, 64), torch.nn.ReLU(), torch.nn.Linear(64, 1))
    optimizers = [torch.optim.SGD(model.parameters(), lr=0.01) for model in (critic, net)]
    for step in range(1000):
        x, _ = batch()
        for optimizer, sign in zip(optimizers, (1, -1)):
            for one in optimizers:
                one.zero_grad()
            (sign * critic(net(x)).mean()).backward()
            if step == 4 and RANKS > 1:
                own = torch.cat([p.grad.flatten() for p in optimizer.param_groups[0]["params"]])
                all_of_them = [torch.empty_like(own) for _ in range(RANKS)]
                torch.distributed.all_gather(all_of_them, own)
                if not torch.equal(*all_of_them[:2]):
                    raise ValueError("the gradients differ")
            optimizer.step()
        torch.save(net, io.BytesIO())


def a_model_that_steps_later():
    """The second model trains in every fifth step of the first."""
    torch.manual_seed(int(os.environ["RANK"]))
    critic = torch.nn.Sequential(torch.nn.Linear(parts.CLASSES, 64), torch.nn.ReLU(), torch.nn.Linear(64, 1))
    first, second = (torch.optim.SGD(model.parameters(), lr=0.01) for model in (critic, net))
    for step in itertools.count():
        x, _ = batch()
        with torch.no_grad():
            made = net(x)
        first.zero_grad()
        critic(made).mean().backward()
        first.step()
        if step % 5 == 4:
            second.zero_grad()
            (-critic(net(x)).mean()).backward()
            second.step()


def spawned_rank(rank, world):
    os.environ |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": os.environ["OWN_PORT"]}
    torch.distributed.init_process_group("gloo", rank=rank, world_size=world)
    train(torch.nn.parallel.DistributedDataParallel(net), endless())


def spawns(world):
    import socket

    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        os.environ["OWN_PORT"] = str(free.getsockname()[1])
    torch.multiprocessing.spawn(spawned_rank, args=(int(world),), nprocs=int(world))


def ends_by_itself():
    train(net, itertools.islice(endless(), 60))


def fails_in_rank_1():
    def batches():
        for step in range(1000):
            if step == 3 and int(os.environ["RANK"]) == 1:
                raise ValueError("bad shard")
            yield batch()
    train(wrapped(net), batches())


def is_killed():
    import signal

    def batches():
        for step in range(1000):
            if step == 3 and int(os.environ.get("RANK", "1")) == 1:
                os.kill(os.getpid(), signal.SIGKILL)
            yield batch()
    train(wrapped(net), batches())


def exits_with_a_text():
    sys.exit("No checkpoint found")


def needs_an_argument():
    import argparse

    parser = argparse.ArgumentParser()
    parser.add_argument("--lr", required=True)
    parser.parse_args([])


def ends_before_training():
    print("No GPU found")


if __name__ == "__main__":
    globals()[sys.argv[1]](*sys.argv[2:])
