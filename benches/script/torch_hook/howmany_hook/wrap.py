# SPDX-License-Identifier: Apache-2.0
"""Puts DistributedDataParallel around the model of a script that does not use it, to measure its
effect (howmany gpus --try-ddp).

Every rank trains on the same batches, so the batch per rank is that of one device (weak scaling).
Each rank sees one GPU, its own, so that the script's device "cuda" is another one in each.
"""

import os

import torch

from howmany_hook.objects import objects_of, parameters_of


def show_own_gpu(settings):
    """Call before CUDA is initialised."""
    everything = ",".join(map(str, range(settings.local_world)))  # if the launcher of a node chose none
    cuda = os.environ.get("CUDA_VISIBLE_DEVICES")
    name, given = "CUDA_VISIBLE_DEVICES", cuda
    if torch.version.hip:  # HIP reads the other variable only if this one is empty
        name, given = "HIP_VISIBLE_DEVICES", os.environ.get("HIP_VISIBLE_DEVICES") or cuda
    visible = (everything if given is None else given).split(",")
    if settings.local_rank < len(visible) and visible[0] not in ("", "-1"):
        os.environ[name] = visible[settings.local_rank]


class Inside(torch.nn.Module):
    """The module within DistributedDataParallel: computes its original forward pass."""

    def __init__(self, module):
        super().__init__()
        self.module = module
        self.plain = module.forward

    def forward(self, *args, **kwargs):
        return self.plain(*args, **kwargs)


class Through:
    """The forward pass of a wrapped module. A saved or copied module has its own forward pass again."""

    def __init__(self, module, wrapped):
        self._module, self._wrapped = module, wrapped

    def __call__(self, *args, **kwargs):
        return self._wrapped(*args, **kwargs)

    def __reduce__(self):
        return getattr, (self._module, "forward")


class Wrapping:
    """Wraps the modules whose parameters an optimizer has, in the order of their first calls, and not the modules
    within them. Without an optimizer, any that trains."""

    def __init__(self):
        self._parameters = set()  # ids

    def __call__(self, module):
        """From its next call on, the module computes through DistributedDataParallel. Does nothing on one rank, or if
        the script has formed a process group itself."""
        distributed = torch.distributed
        parameters = [p for p in module.parameters() if p.requires_grad]
        if int(os.environ.get("WORLD_SIZE", "1")) < 2 or any(id(p) in self._parameters for p in parameters):
            return
        optimized = {id(p) for one in objects_of((torch.optim.Optimizer,)) for p in parameters_of(one)}
        if optimized and not any(id(p) in optimized for p in parameters):
            return
        if not self._parameters:
            if distributed.is_initialized():
                return
            cuda = any(parameter.device.type == "cuda" for parameter in parameters)
            distributed.init_process_group("nccl" if cuda else "gloo")
        self._parameters.update(map(id, parameters))
        wrapped = torch.nn.parallel.DistributedDataParallel(Inside(module))
        module.forward = Through(module, wrapped)  # not a submodule of `module`
