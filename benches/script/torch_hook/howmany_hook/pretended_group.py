# SPDX-License-Identifier: Apache-2.0
"""A process group of a pretended GPU: counts collectives, and moves nothing.

DistributedDataParallel. Its Reducer in C++ needs tensors with values. Reducer here has its buckets: made of the
    parameters in reverse order for the first step, then in the order in which their gradients were ready
    (torch/csrc/distributed/c10d/reducer.cpp: rebuild_buckets). A bucket is exchanged when its gradients are ready and those
    before it are.
"""

import torch
import torch.distributed as dist

from howmany_hook import rehearsal
from howmany_hook.operations import DTYPES

HALVES = ("fp16_compress", "bf16_compress")


class Done(dist.Work):
    def __init__(self, counter, one):
        super().__init__()
        self._counter, self._one = counter, one

    def wait(self, timeout=None):
        self._counter.waited(self._one)
        return True

    def is_completed(self):
        return True

    def get_future(self):
        future = torch.futures.Future()
        future.set_result([])
        return future


class Costs:
    """In place of a cost table."""

    def __init__(self, world):
        self.world = world


class Counted:
    """In place of a rehearsal.Rehearsal."""

    def __init__(self, counter, world):
        self.costs = Costs(world)
        self.counter = counter

    def start(self, kind, size, group, tensors, free_at):
        ranks, stride = group
        return Done(self.counter, self.counter.collective(kind, size, ranks, stride)), 0.0


def _silently(method, counter):
    def call(*args, **kwargs):
        with counter.silent():
            return method(*args, **kwargs)

    return call


def install(counter, rank, world):
    group = rehearsal.Group
    for name in ("allreduce", "allgather", "all_gather_single", "_allgather_base", "reduce_scatter", "gather", "scatter",
                 "reduce_scatter_single", "_reduce_scatter_base", "broadcast"):  # fmt: skip
        setattr(group, name, _silently(getattr(group, name), counter))
    rehearsal.install(Counted(counter, world), rank, 1)
    dist.is_nccl_available = dist.distributed_c10d.is_nccl_available = lambda: True
    _watch_ddp(counter)


def _watch_ddp(counter):
    from torch.nn.parallel import distributed as ddp

    def make(*args, **kwargs):
        return Reducer(counter, *args, **kwargs)

    dist.Reducer = make
    dist.Logger = lambda reducer: Anything()
    for name in ("_verify_param_shape_across_processes", "_sync_module_states"):
        if hasattr(ddp, name):
            setattr(ddp, name, lambda *args, **kwargs: None)
    dist._register_comm_hook = lambda reducer, state, hook: reducer.use(hook)
    dist._register_builtin_comm_hook = lambda reducer, hook: reducer.use(hook)


class Anything:
    """Its methods do nothing."""

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return lambda *args, **kwargs: False


class Reducer(Anything):
    def __init__(self, counter, parameters, bucket_indices, limits, group, sparse=None, cap=25 << 20, unused=False,
                 view=False, *rest, **names):  # fmt: skip
        self._counter, self._group, self._cap, self._view = counter, group, cap, view
        self._first_cap = dist._DEFAULT_FIRST_BUCKET_BYTES
        self._parameters = list(parameters)
        self._places = {id(p): i for i, p in enumerate(self._parameters)}
        self._form(bucket_indices)
        self._rebuilt, self._expects, self._half = False, False, False
        self._order = []  # of parameters, as their gradients were ready
        for p in self._parameters:
            p.register_post_accumulate_grad_hook(self._ready)

    def use(self, hook):
        name = getattr(hook, "__qualname__", str(hook)).lower()
        self._half = any(one in name for one in HALVES)

    def prepare_for_backward(self, outputs=()):
        self._expects, self._order, self._sent, self._left = True, [], 0, [len(b) for b in self._buckets]
        self._flushes = False

    def _rebuild_buckets(self):
        if self._rebuilt or not self._order:
            return False
        ready = [self._parameters[i] for i in self._order]
        found, _ = dist._compute_bucket_assignment_by_size(
            ready, [self._first_cap, self._cap],
            [False] * len(ready), list(self._order))  # fmt: skip
        self._form(found)
        self._rebuilt = True
        return True

    def _form(self, buckets):
        self._buckets = [list(bucket) for bucket in buckets]
        self._bucket_of = {place: i for i, bucket in enumerate(self._buckets) for place in bucket}
        self._left = [len(bucket) for bucket in self._buckets]

    def _size(self, place):
        p = self._parameters[place]
        return p.numel() * p.element_size()

    def _ready(self, parameter):
        if not self._expects:
            return
        if not self._flushes:
            self._flushes = True
            torch.autograd.Variable._execution_engine.queue_callback(self._finish)
        place = self._places[id(parameter)]
        self._order.append(place)
        size, dtype = self._size(place), DTYPES.get(parameter.dtype, "f32")
        self._counter.kernel("ddp_to_bucket", size, size, dtype)
        if place not in self._bucket_of:
            return
        self._left[self._bucket_of[place]] -= 1
        while self._sent < len(self._buckets) and self._left[self._sent] <= 0:
            self._send()

    def _send(self):
        size = sum(self._size(place) for place in self._buckets[self._sent])
        if self._half:
            self._counter.kernel("ddp_compress", size, size // 2, "f32")
            size //= 2
        self._counter.collective("all_reduce", size, self._group.size(), 1)
        self._sent += 1

    def _finish(self):
        """At the end of backward. Gradients that were not ready are sent too."""
        while self._sent < len(self._buckets):
            self._send()
        self._expects = False
        if not self._view:
            for place in self._order:
                size = self._size(place)
                self._counter.kernel("ddp_from_bucket", size, size, DTYPES.get(self._parameters[place].dtype, "f32"))
