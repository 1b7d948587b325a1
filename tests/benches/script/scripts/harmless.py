# SPDX-License-Identifier: Apache-2.0
"""Trains in a way that a hook may disturb: python harmless.py CASE. Prints its results as JSON, which must be the same
with the hook, and the milliseconds of a late step."""

import copy
import io
import json
import logging
import os
import pickle
import shutil
import statistics
import sys
import time

import torch
from torch.nn.functional import cross_entropy

STEPS = 12
torch.manual_seed(0)
torch.set_num_threads(1)
x, y = torch.randn(32, 16), torch.randint(0, 10, (32,))
net = torch.nn.Sequential(torch.nn.Linear(16, 32), torch.nn.ReLU(), torch.nn.Linear(32, 10))
optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
recompiles = []


class Recompiles(logging.Handler):
    def emit(self, record):
        recompiles.append(record.getMessage())


def count_recompiles():
    import torch._dynamo

    torch._logging.set_logs(recompiles=True)
    logging.getLogger("torch._dynamo").addHandler(Recompiles())


def loss_of(model):
    return cross_entropy(model(x), y)


def step(model=net):
    optimizer.zero_grad()
    loss = loss_of(model)
    loss.backward()
    optimizer.step()
    return loss


def train(one=step, after=lambda i: None):
    seconds, losses = [], []
    for i in range(STEPS):
        start = time.perf_counter()
        losses.append(one().item())
        seconds.append(time.perf_counter() - start)
        after(i)
    return {"losses": losses}, statistics.median(seconds[STEPS // 2:])


def saved():
    loss_of(net)

    def save(i):
        torch.save(net, io.BytesIO())
        torch.save(optimizer, io.BytesIO())
        pickle.loads(pickle.dumps(net))
    return train(after=save)


def bytes_of_the_model():
    loss_of(net)
    result, seconds = train()
    return result | {"bytes": len(pickle.dumps(net)), "keys": sorted(net.__dict__)}, seconds


def copied():
    teachers = []

    def one():
        teachers.append(copy.deepcopy(net))
        with torch.no_grad():
            teachers[-1](x)
        return step()
    return train(one)


def scripted():
    def script(i):
        torch.jit.script(net)
        torch.jit.trace(net, x)
    script(0)
    return train(after=script)


def exported():
    def export(i):
        if i in (0, STEPS - 1):
            graphs.append(torch.export.export(net, (x,)).graph_module.code)
    graphs = []
    export(0)
    result, seconds = train(after=export)
    return result | {"graphs": graphs}, seconds


def symbolic():
    code = [torch.fx.symbolic_trace(net).code]
    result, seconds = train(after=lambda i: code.append(torch.fx.symbolic_trace(net).code))
    return result | {"code": code}, seconds


def compiled_model():
    count_recompiles()
    compiled = torch.compile(net, backend="aot_eager")
    return train(lambda: step(compiled))


def compiled_in_place():
    count_recompiles()
    net.compile(backend="aot_eager")
    return train()


def compiled_step():
    count_recompiles()
    return train(torch.compile(step, backend="aot_eager"))


def compiled_step_with_a_loader():
    count_recompiles()
    compiled = torch.compile(lambda a, b: step(lambda _: net(a)), backend="aot_eager")
    loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(x, y), batch_size=32)
    return train(lambda: [compiled(a, b) for a, b in loader][-1])


def compiled_and_validated():
    count_recompiles()
    compiled = torch.compile(net, backend="aot_eager")

    def validate(i):
        net.eval()
        with torch.no_grad():
            compiled(x)
        net.train()
    validate(0)
    return train(lambda: step(compiled), validate)


def nested_backward():
    class Blocks(torch.nn.Module):
        def forward(self, inputs):
            inputs = inputs.requires_grad_()
            hidden = torch.utils.checkpoint.checkpoint(net[:2], inputs, use_reentrant=True)
            return torch.utils.checkpoint.checkpoint(net[2], hidden, use_reentrant=True)
    blocks = Blocks()
    return train(lambda: step(blocks))


def vmapped():
    parameters = dict(net.named_parameters())

    def loss(p, a, b):
        return cross_entropy(torch.func.functional_call(net, p, (a[None],)), b[None])

    def one():
        optimizer.zero_grad()
        grads = torch.func.vmap(torch.func.grad(loss), (None, 0, 0))(parameters, x, y)
        for name, parameter in parameters.items():
            parameter.grad = grads[name].mean(0).detach()
        optimizer.step()
        return sum(p.sum() for p in parameters.values())
    return train(one)


def penalized():
    """The gradient of a gradient."""
    def one():
        optimizer.zero_grad()
        inputs = x.clone().requires_grad_()
        loss = cross_entropy(net(inputs), y)
        (gradient,) = torch.autograd.grad(loss, inputs, create_graph=True)
        (loss + gradient.square().sum()).backward()
        optimizer.step()
        return loss
    return train(one)


def functions():
    """Public functions and classes are those of torch."""
    names = [torch.autograd.backward, torch.autograd.grad, torch.Tensor.backward, torch.nn.Module.__call__,
             torch.nn.parallel.DistributedDataParallel.__init__, torch.utils.data.DataLoader.__iter__]
    result, seconds = train()
    return result | {"modules": [one.__module__ + one.__code__.co_filename for one in names]}, seconds


def folder_removed():
    return train(after=lambda i: shutil.rmtree(os.environ.get("HOWMANY_SCRIPT_OUT", "/nonexistent"), True))


def folder_unwritable():
    out = os.environ.get("HOWMANY_SCRIPT_OUT")
    if out:
        shutil.rmtree(out)
        os.symlink("/proc/self", out)  # no file can be made there, even by root
    return train()


def disk_full():
    import resource

    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1, before[1]))
    return train()


def exit_code():
    train()
    sys.exit(7)


result, seconds = globals()[sys.argv[1]]()
print(json.dumps(result | {"recompiles": len(recompiles)}), flush=True)
print(f"{1e3 * seconds:.3f} ms", file=sys.stderr)
