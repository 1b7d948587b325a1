# SPDX-License-Identifier: Apache-2.0
"""Prints the operations of modules and calls on meta tensors as JSON: name, work, dtype, FLOP, bytes read, written."""

import json

import torch
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode

from howmany_hook.operations import operation_of

F16 = torch.float16


class Listing(TorchDispatchMode):
    def __init__(self):
        super().__init__()
        self.operations = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        result = func(*args, **(kwargs or {}))
        found = operation_of(func, args, kwargs, result)
        if found:
            self.operations.append(found)
        return result


def tensor(*shape, dtype=torch.float32):
    return torch.empty(*shape, device="meta", dtype=dtype, requires_grad=dtype.is_floating_point)


def of(call, *args, **kwargs):
    with Listing() as listing:
        call(*args, **kwargs)
    return listing.operations


def trained(module, x):
    y = module(x)
    return of(y.backward, torch.empty_like(y))


def attention(causal):
    q = [tensor(2, 4, 128, 64, dtype=F16) for _ in range(3)]
    return of(torch.ops.aten._scaled_dot_product_flash_attention, *q, 0.0, causal)


def allowing_tf32(call, *args):
    torch.backends.cuda.matmul.allow_tf32 = True
    found = of(call, *args)
    torch.backends.cuda.matmul.allow_tf32 = False
    return found


linear, convolution = nn.Linear(8, 4, device="meta"), nn.Conv2d(8, 16, 3, groups=2, padding=1, device="meta")
torch.backends.cudnn.allow_tf32 = False
weights = [tensor(3, 5).detach(), tensor(7).detach()]
print(json.dumps({
    "linear": of(linear, tensor(20, 8)),
    "linear_backward": trained(linear, tensor(20, 8)),
    "tf32": allowing_tf32(linear, tensor(20, 8)),
    "convolution": of(convolution, tensor(2, 8, 10, 10)),
    "convolution_backward": trained(convolution, tensor(2, 8, 10, 10)),
    "nchw": of(convolution.half(), tensor(2, 8, 10, 10, dtype=F16)),
    "nhwc": of(convolution.half(), tensor(2, 8, 10, 10, dtype=F16).to(memory_format=torch.channels_last)),
    "nhwc_weight": of(convolution.half().to(memory_format=torch.channels_last), tensor(2, 8, 10, 10, dtype=F16)),
    "batch_norm": of(nn.BatchNorm2d(8, device="meta"), tensor(2, 8, 10, 10)),
    "attention": attention(False),
    "causal": attention(True),
    "layer_norm": of(nn.LayerNorm(16, device="meta"), tensor(4, 16)),
    "embedding": of(nn.Embedding(1000, 16, device="meta"), tensor(4, 5, dtype=torch.int64)),
    "foreach_sgd": of(torch._foreach_add_, weights, [one.clone() for one in weights], alpha=-0.1),
    "views": of(lambda x: x.detach().view(8, 10).t()[1:].split(2), tensor(4, 20)),
    "expanded": of(lambda x: x.detach().expand(100, 20) + 1, tensor(1, 20)),
}))  # fmt: skip
