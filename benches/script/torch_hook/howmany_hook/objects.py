# SPDX-License-Identifier: Apache-2.0
"""What the objects of a script show: parameters, gradients, the process group, DistributedDataParallel and FSDP."""

import gc
import resource
import sys

import torch


def parameters_of(optimizer):
    return [p for group in optimizer.param_groups for p in group["params"]]


def gradient_bytes(parameters):
    gradients = (_local_gradient(p) for p in parameters)
    return sum(g.numel() * g.element_size() for g in gradients if g is not None)


def _local_gradient(parameter):
    gradient = parameter.grad
    return gradient.to_local() if hasattr(gradient, "to_local") else gradient


def objects_of(kinds):
    return [one for one in gc.get_objects() if issubclass(type(one), kinds)]


def ddp_modules():
    return objects_of((torch.nn.parallel.DistributedDataParallel,))


def process_group():
    """Returns the world size and backend; (1, "") without a process group."""
    distributed = torch.distributed
    if not distributed.is_available() or not distributed.is_initialized():
        return 1, ""
    return distributed.get_world_size(), distributed.get_backend()


def parallelism(parameters, world):
    """Returns ddp, fsdp, dtensor, group or single."""
    dtensor = any(hasattr(p, "to_local") for p in parameters)
    if dtensor or torch.distributed.is_available() and torch.distributed.is_initialized():
        if ddp_modules():
            return "ddp"
        if (dtensor or world > 1) and objects_of(_fsdp()):
            return "fsdp"
    if dtensor:
        return "dtensor"
    return "group" if world > 1 else "single"


def _fsdp():
    """The classes of modules that FSDP or FSDP2 divides. Parameters look the same with tensor parallelism."""
    fsdp = sys.modules.get("torch.distributed.fsdp")
    names = ("FSDPModule", "FullyShardedDataParallel")
    return tuple(getattr(fsdp, name) for name in names if hasattr(fsdp, name))


def wrapped_share():
    """Returns the share of the optimized parameters that DistributedDataParallel holds; None without an optimizer."""
    inside = {id(p) for module in ddp_modules() for p in module.parameters()}
    optimized = {id(p): p for one in objects_of((torch.optim.Optimizer,)) for p in parameters_of(one) if p.requires_grad}
    total = sum(p.numel() for p in optimized.values())
    return sum(p.numel() for key, p in optimized.items() if key in inside) / total if total else None


def peak_bytes(cuda):
    if cuda:
        return torch.cuda.max_memory_allocated()
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def versions(backend):
    """Of torch, and of NCCL if the group uses it."""
    if backend != "nccl":
        return torch.__version__
    library = "RCCL" if torch.version.hip else "NCCL"  # RCCL reports the version of NCCL that it matches
    return f"{torch.__version__}, {library} {'.'.join(map(str, torch.cuda.nccl.version()))}"
