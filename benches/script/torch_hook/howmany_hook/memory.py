# SPDX-License-Identifier: Apache-2.0
"""The memory of a training step (howmany memory -- COMMAND).

GPU. PyTorch's allocator counts it.
CPU. Every tensor that an operation reads or returns is counted until its storage is freed, and given to a model of the
    GPU allocator, so the figures are those that a GPU would need. Left out: memory inside of kernels, which have other
    workspaces on a GPU, and what a DataLoader holds while it makes a batch.
Storage. A tensor that is only a part of its storage when it is first seen counts as that part. A data set of one large
    tensor stays on the host, and its batches are such parts.

Thread safety. Call from the thread that trains.
"""

import bisect
import contextlib
import functools
import weakref

import torch
from torch.utils._python_dispatch import TorchDispatchMode, is_traceable_wrapper_subclass
from torch.utils._pytree import tree_leaves

from howmany_hook.agreement import Steps

SMALL_BLOCK = 1 << 20  # bytes; larger ones come from the other pool
SMALL_SEGMENT = 2 << 20
LARGE_SEGMENT, LARGE_BLOCK = 20 << 20, 10 << 20  # blocks of LARGE_BLOCK or more have a segment of their own
ROUNDED = 512


def _up(size, unit):
    return -(-size // unit) * unit


class Pool:
    """Free blocks by size, as (bytes, segment, offset)."""

    def __init__(self, least_left):
        self._least_left = least_left  # a smaller remainder stays with its block
        self._free = []
        self._at = {}  # (segment, offset): bytes of the free block that begins there
        self._ends = {}  # (segment, end): its offset

    def take(self, size):
        """The smallest free block that fits, or None."""
        index = bisect.bisect_left(self._free, (size, -1, -1))
        if index == len(self._free):
            return None
        found, segment, offset = self._free[index]
        self._remove(found, segment, offset)
        if found - size < self._least_left:
            size = found
        else:
            self._add(found - size, segment, offset + size)
        return size, segment, offset

    def give(self, size, segment, offset):
        """Merges with free neighbours."""
        after = self._at.get((segment, offset + size))
        if after is not None:
            self._remove(after, segment, offset + size)
            size += after
        before = self._ends.get((segment, offset))
        if before is not None:
            self._remove(offset - before, segment, before)
            size, offset = size + offset - before, before
        self._add(size, segment, offset)

    def _add(self, size, segment, offset):
        bisect.insort(self._free, (size, segment, offset))
        self._at[segment, offset] = size
        self._ends[segment, offset + size] = offset

    def _remove(self, size, segment, offset):
        self._free.pop(bisect.bisect_left(self._free, (size, segment, offset)))
        del self._at[segment, offset]
        del self._ends[segment, offset + size]


class CachingAllocator:
    """The sizes of c10/cuda/CUDACachingAllocator.cpp with its default options, for one stream."""

    def __init__(self):
        self._small, self._large = Pool(ROUNDED), Pool(SMALL_BLOCK + 1)
        self._blocks = {}  # key: pool, bytes, segment, offset
        self._segments = 0
        self.allocated = self.peak = self.reserved = 0

    def allocate(self, key, size):
        size = _up(max(size, 1), ROUNDED)
        pool = self._small if size <= SMALL_BLOCK else self._large
        block = pool.take(size)
        if block is None:
            self._reserve(pool, size)
            block = pool.take(size)
        self._blocks[key] = (pool, *block)
        self.allocated += block[0]
        self.peak = max(self.peak, self.allocated)

    def free(self, key):
        pool, *block = self._blocks.pop(key)
        self.allocated -= block[0]
        pool.give(*block)

    def _reserve(self, pool, size):
        segment = SMALL_SEGMENT
        if pool is self._large:
            segment = LARGE_SEGMENT if size < LARGE_BLOCK else _up(size, SMALL_SEGMENT)
        self.reserved += segment
        self._segments += 1
        pool.give(segment, self._segments, 0)


def plain_tensors(tensor):
    """The tensors that hold the memory of a tensor subclass, such as DTensor."""
    if not is_traceable_wrapper_subclass(tensor):
        return [tensor]
    parts = [getattr(tensor, name) for name in tensor.__tensor_flatten__()[0]]
    return [one for part in parts if isinstance(part, torch.Tensor) for one in plain_tensors(part)]


def size_of(tensors):
    """Their bytes; tied ones count once."""
    plain = [one for tensor in tensors for one in plain_tensors(tensor)]
    parts = {(t.untyped_storage()._cdata, t.storage_offset()): t.numel() * t.element_size() for t in plain}
    return sum(parts.values())


class Storages(TorchDispatchMode):
    """Tells an allocator of the storages of all operations."""

    def __init__(self, allocator, on_device):
        super().__init__()
        self._allocator, self._on_device = allocator, on_device
        self._alive = {}  # by address of the storage object: (weak reference, bytes)
        self.paused = False
        self._resize = torch.UntypedStorage.resize_

    @classmethod
    def _should_skip_dynamo(cls):
        return False

    def __enter__(self):
        storages = self

        @functools.wraps(self._resize)
        def resize_(storage, size):  # no operation; FSDP frees and gathers parameters by it
            result = storages._resize(storage, size)
            storages._forget(storage._cdata)
            storages._count(storage, size)
            return result

        torch.UntypedStorage.resize_ = resize_
        return super().__enter__()

    def __exit__(self, *error):
        torch.UntypedStorage.resize_ = self._resize
        return super().__exit__(*error)

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        if any(kind.__name__ == "DTensor" for kind in types):
            return NotImplemented  # its operations on plain tensors follow
        result = func(*args, **(kwargs or {}))
        if not self.paused:
            self.see((args, kwargs, result))
        return result

    def see(self, values):
        for value in tree_leaves(values):
            for tensor in plain_tensors(value) if isinstance(value, torch.Tensor) else ():
                if self._on_device(tensor) and tensor.layout == torch.strided:
                    storage = tensor.untyped_storage()
                    part = tensor.numel() * tensor.element_size()
                    self._count(storage, min(part, storage.nbytes()))

    def _count(self, storage, size):
        key = storage._cdata
        if key in self._alive or size == 0:
            return
        self._alive[key] = weakref.ref(storage, lambda _: self._forget(key))
        self._allocator.allocate(key, size)

    def _forget(self, key):
        if self._alive.pop(key, None) is not None:
            self._allocator.free(key)


class FewSteps:
    """Takes the place of an Agreement: the peak is the same in every step after the first."""

    def __init__(self, last):
        self._last = last

    def after(self, index, step):
        return Steps(first=1, last=self._last, stop=self._last)

    def so_far(self, count):
        return None


class StepMemory:
    """The figures of a rank. Begins after its first step, when the optimizer has its state."""

    def __init__(self, on_device=lambda tensor: tensor.device.type == "cpu"):
        """`on_device`: whether a tensor counts."""
        self._optimizers, self._model = [], None
        self._on_device = on_device
        self._figures = {"parameters": 0, "gradients": 0, "optimizer": 0}
        self._allocator, self._storages = CachingAllocator(), None

    def trains(self, model):
        """Call when the model computes for the first time. It may have parameters that are not trained."""
        self._model = model

    def begin(self, cuda):
        if cuda:
            torch.cuda.reset_peak_memory_stats()
            return
        self._storages = Storages(self._allocator, self._on_device)
        for tensors in (self._parameters(), self._gradients(), self._state()):
            self._storages.see(tensors)
        self._storages.__enter__()

    def stepped(self, optimizer):
        """Call after each step of an optimizer, while gradients exist."""
        if all(optimizer is not one for one in self._optimizers):
            self._optimizers.append(optimizer)
        self.note()

    def note(self):
        """Call while gradients exist."""
        now = {"parameters": self._parameters(), "gradients": self._gradients(), "optimizer": self._state()}
        for name, tensors in now.items():
            self._figures[name] = max(self._figures[name], size_of(tensors))

    @contextlib.contextmanager
    def paused(self):
        """While a DataLoader makes a batch."""
        if self._storages:
            self._storages.paused = True
        try:
            yield
        finally:
            if self._storages:
                self._storages.paused = False

    def end(self):
        """Returns the figures in bytes. `peak` is of tensors, `reserved` of the allocator."""
        if self._storages is None:
            return self._figures | {
                "peak": torch.cuda.max_memory_allocated(),
                "reserved": torch.cuda.max_memory_reserved(),
            }
        self._storages.__exit__(None, None, None)
        return self._figures | {"peak": self._allocator.peak, "reserved": self._allocator.reserved}

    def _parameters(self):
        """With the buffers of the model."""
        model = [] if self._model is None else [*self._model.parameters(), *self._model.buffers()]
        return model + [p for one in self._optimizers for group in one.param_groups for p in group["params"]]

    def _gradients(self):
        return [p.grad for p in self._parameters() if p.grad is not None]

    def _state(self):
        states = tree_leaves([dict(one.state) for one in self._optimizers])
        return [one for one in states if isinstance(one, torch.Tensor)]
