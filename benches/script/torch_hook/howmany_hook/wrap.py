# SPDX-License-Identifier: Apache-2.0
"""Puts DistributedDataParallel around the model of a script that does not use it, to measure its
effect (howmany gpus --try-ddp).

Every rank trains on the same batches, so the batch per rank is that of one device (weak scaling).
Each rank sees one GPU, its own, so that the script's device "cuda" is another one in each.
"""

import os

import torch


def show_own_gpu(settings):
    """Call before CUDA is initialised."""
    visible = os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",")
    if settings.local_rank < len(visible) and visible[0]:
        os.environ["CUDA_VISIBLE_DEVICES"] = visible[settings.local_rank]


class Inside(torch.nn.Module):
    """The module within DistributedDataParallel: computes its original forward pass."""

    def __init__(self, module):
        super().__init__()
        self.module = module
        self.plain = module.forward

    def forward(self, *args, **kwargs):
        return self.plain(*args, **kwargs)


def wrap(module):
    """From its next call on, the module computes through DistributedDataParallel. Does nothing on
    one rank, or if the script has formed a process group itself."""
    distributed = torch.distributed
    if int(os.environ.get("WORLD_SIZE", "1")) < 2 or distributed.is_initialized():
        return
    cuda = any(parameter.device.type == "cuda" for parameter in module.parameters())
    distributed.init_process_group("nccl" if cuda else "gloo")
    wrapped = torch.nn.parallel.DistributedDataParallel(Inside(module))
    module.forward = lambda *args, **kwargs: wrapped(*args, **kwargs)  # not a submodule of `module`
