# SPDX-License-Identifier: Apache-2.0
"""A process group of N ranks in one process (howmany gpus --up-to).

The script forms its group as usual and gets one of N ranks, of which only this process exists. A
collective copies locally, so that shapes are right and values finite. It is complete at

    max(time of the call, end of the one before in its group) + T(kind, bytes)

where T comes from the cost table: {"world": N, "all_reduce": [[bytes, seconds], ...], ...}, linear
between two sizes and in proportion beyond the largest. reports/cluster/cluster.h makes the table.
"groups" has the times of the groups of a mesh: [{"ranks": 8, "stride": 1, "all_reduce": ...}, ...].

Values. A sum over ranks is N times the own value for tensors of up to 1,024 elements. Larger ones
    stay as they are: their real values are unknown anyway, and a pass over them would cost time.
Rank. The script's own (RANK). WORLD_SIZE becomes N. LOCAL_WORLD_SIZE stays.
Several processes. One per device that is here, so that they share the host as they would on a node. They are the first
    ranks. A broadcast of integers on the CPU really goes from one to the others, because scripts send objects so.
CPU. A thread completes the Work. If the table has "core_s": [per call, per byte], it first keeps a core busy for
    that much CPU time, as the collective would. Then it is complete at the later of the two ends.
GPU. The collective is a kernel that waits for T, in a stream of its own, as NCCL's are.
Log. Every collective: see Collective.
"""

import bisect
import contextlib
import ctypes
import dataclasses
import datetime
import hashlib
import json
import os
import queue
import threading
import time

import torch
import torch.distributed as dist

BACKEND = "howmany_rehearsal"
BLOCK = bytes(1 << 15)
MOST_EXACT = 1024  # elements
TIMEOUT = datetime.timedelta(minutes=5)
KEEPS_WORK = tuple(int(part) for part in torch.__version__.split(".")[:2]) >= (2, 7)  # C++, while it waits for it
clock = time.perf_counter


@dataclasses.dataclass
class Collective:
    kind: str
    bytes: int
    ranks: int
    stride: int  # between them
    at: object  # the time of the call; on a GPU an event
    seconds: float  # T
    backward: int  # of DistributedDataParallel: the pass of the step, from 0, that ends after it. Else -1
    waited: object = None  # when the program began to wait for it; None: never by a call


class CostTable:
    def __init__(self, table):
        self.world = int(table["world"])
        self._core_s = table.get("core_s")
        self._points = {(self.world, 1): table}
        for group in table.get("groups", []):
            self._points[group["ranks"], group["stride"]] = group

    @staticmethod
    def read(path):
        with open(path, encoding="utf-8") as file:
            return CostTable(json.load(file))

    def seconds(self, kind, size, ranks, stride):
        if ranks == 1:
            return 0.0
        if (ranks, stride) not in self._points:
            raise NotImplementedError(f"the cost table has no group of {ranks} ranks, {stride} apart")
        points = self._points[ranks, stride][kind]
        index = bisect.bisect_left(points, [size])
        if index == 0:
            return points[0][1]
        low_bytes, low = points[index - 1]
        if index == len(points):
            return low * size / low_bytes
        high_bytes, high = points[index]
        return low + (high - low) * (size - low_bytes) / (high_bytes - low_bytes)

    def core_seconds(self, size):
        if self._core_s is None:
            return 0.0
        per_call, per_byte = self._core_s
        return per_call + per_byte * size


def burn(seconds):
    """Keeps a core busy for that much CPU time, without the lock of the interpreter."""
    start = time.thread_time()
    while time.thread_time() - start < seconds:
        hashlib.sha256(BLOCK).digest()


def wake_on_time():
    """Linux wakes a thread up to 50 us late to save energy. The thread sets this to 1 ns."""
    pr_set_timerslack = 29
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(pr_set_timerslack, ctypes.c_ulong(1))


class Work(dist.Work):
    kept = set()  # of this step, not yet waited for. Without its Python object, C++ waits for ever

    def __init__(self, one, future):
        super().__init__()
        self._one, self._future = one, future
        if not KEEPS_WORK:
            Work.kept.add(self)

    def wait(self, timeout=None):
        if self._one.waited is None:
            self._one.waited = clock() if isinstance(self._one.at, float) else _event()
        self._future.wait()
        Work.kept.discard(self)
        return True

    def is_completed(self):
        return self._future.done()

    def get_future(self):
        return self._future


class Rehearsal:
    """The cost table, the log, and the thread that completes collectives of the CPU."""

    def __init__(self, path):
        self.costs = CostTable.read(path)
        self.backward_pass = lambda: -1  # of the step, which runs now
        self._log = []
        self._due = queue.SimpleQueue()
        self._thread = None
        self._cycles_per_s = None
        self._streams = {}

    def take_log(self):
        """Returns the collectives since the last call."""
        log, self._log = self._log, []
        Work.kept.clear()
        return log

    def start(self, kind, size, group, tensors, free_at):
        """Returns the Work and the time when it is complete. Its future holds `tensors`."""
        ranks, stride = group
        seconds = self.costs.seconds(kind, size, ranks, stride)
        core_s = self.costs.core_seconds(size) if ranks > 1 else 0.0
        backward = self.backward_pass() if kind == "all_reduce" else -1
        cuda = [tensor.device for tensor in tensors if tensor.device.type == "cuda"]
        now = _event() if cuda else clock()
        one = Collective(kind, size, ranks, stride, now, seconds, backward)
        self._log.append(one)
        if cuda:
            return Work(one, self._in_stream(tensors, cuda[0], seconds)), 0.0  # the stream keeps the order
        due = max(now, free_at) + seconds
        return Work(one, self._in_thread(tensors, due, core_s)), due

    def _in_thread(self, tensors, due, core_s):
        future = torch.futures.Future()
        if self._thread is None:
            self._thread = threading.Thread(target=self._complete, daemon=True)
            self._thread.start()
        self._due.put((due, future, tensors, core_s))
        return future

    def _complete(self):
        wake_on_time()
        while True:
            due, future, tensors, core_s = self._due.get()
            burn(core_s)
            left = due - clock()
            if left > 0:
                time.sleep(left)
            future.set_result(tensors)

    def _in_stream(self, tensors, device, seconds):
        if self._cycles_per_s is None:
            self._cycles_per_s = _cycles_per_s()
        if device not in self._streams:
            self._streams[device] = torch.cuda.Stream(device)
        stream = self._streams[device]
        stream.wait_stream(torch.cuda.current_stream(device))
        with torch.cuda.stream(stream):
            torch.cuda._sleep(int(seconds * self._cycles_per_s))
            future = torch.futures.Future(devices=[device])
            future.set_result(tensors)
        return future


def _event():
    event = torch.cuda.Event(enable_timing=True)
    event.record()
    return event


def _cycles_per_s(cycles=20_000_000):
    start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    torch.cuda._sleep(cycles)  # the clocks rise
    start.record()
    torch.cuda._sleep(cycles)
    end.record()
    end.synchronize()
    return cycles / (start.elapsed_time(end) * 1e-3)


def _flat(tensors):
    if isinstance(tensors, torch.Tensor):
        return [tensors]
    return [one for tensor in tensors for one in _flat(tensor)]


def _bytes(tensors):
    return sum(tensor.numel() * tensor.element_size() for tensor in _flat(tensors))


class Group(dist.ProcessGroup):
    """The methods have the names that torch 2.5 to 2.13 call."""

    def __init__(self, rehearsal, rank, size, here):
        super().__init__(rank, size)
        self._rehearsal, self._rank, self._size, self._here = rehearsal, rank, size, here
        self._free_at = 0.0
        self._even = None

    def size(self):
        return self._size

    def rank(self):
        return self._rank

    def getBackendName(self):
        return BACKEND

    @property
    def pg_name(self):
        return dist.distributed_c10d._world.pg_names[self]

    @property
    def group_name(self):
        return self.pg_name

    def _spacing(self):
        """The number of ranks and the distance between two. They are registered after __init__."""
        if self._even is None:
            ranks = sorted(dist.get_process_group_ranks(self))
            gaps = {b - a for a, b in zip(ranks, ranks[1:])}
            if len(gaps) > 1:
                raise NotImplementedError("a rehearsal has groups of evenly spaced ranks")
            self._even = self._size, gaps.pop() if gaps else 1
        return self._even

    def _work(self, kind, size, tensors):
        tensors = _flat(tensors)
        work, self._free_at = self._rehearsal.start(kind, size, self._spacing(), tensors, self._free_at)
        return work

    @torch.no_grad()
    def _sum(self, tensors, operation):
        if operation == dist.ReduceOp.SUM:
            for tensor in _flat(tensors):
                if tensor.numel() <= MOST_EXACT:
                    tensor.mul_(self._size)

    def allreduce(self, tensors, opts=None):
        self._sum(tensors, opts.reduceOp if opts is not None else None)
        return self._work("all_reduce", _bytes(tensors), tensors)

    def allreduce_coalesced(self, tensors, opts=None):
        return self.allreduce(tensors, opts)

    def reduce(self, tensors, opts=None):
        return self._work("broadcast", _bytes(tensors), tensors)

    def broadcast(self, tensors, opts=None):
        if self._here is not None and self._size == self._rehearsal.costs.world:
            self._here.broadcast(tensors, opts)
        return self._work("broadcast", _bytes(tensors), tensors)

    @torch.no_grad()
    def allgather(self, outputs, inputs, opts=None):
        for parts, own in zip(outputs, inputs):
            for part in parts:
                part.copy_(own)
        return self._work("all_gather", _bytes(outputs), outputs)

    @torch.no_grad()
    def all_gather_single(self, output, own, opts=None):
        for part in output.view(self._size, -1):
            if part.data_ptr() != own.data_ptr():  # FSDP gathers in place
                part.copy_(own.reshape(-1))
        return self._work("all_gather", _bytes(output), output)

    _allgather_base = all_gather_single

    @torch.no_grad()
    def reduce_scatter(self, outputs, inputs, opts=None):
        for output, parts in zip(outputs, inputs):
            output.copy_(parts[self._rank])
        return self._work("reduce_scatter", _bytes(inputs), outputs)

    @torch.no_grad()
    def reduce_scatter_single(self, output, whole, opts=None):
        output.copy_(whole.view(self._size, -1)[self._rank].view_as(output))
        return self._work("reduce_scatter", _bytes(whole), output)

    _reduce_scatter_base = reduce_scatter_single

    @torch.no_grad()
    def gather(self, outputs, inputs, opts=None):
        for parts, own in zip(outputs, inputs):
            for part in parts:
                part.copy_(own)
        return self._work("all_gather", _bytes(inputs) * self._size, inputs)

    @torch.no_grad()
    def scatter(self, outputs, inputs, opts=None):
        for output, parts in zip(outputs, inputs):
            output.copy_(parts[self._rank])
        return self._work("broadcast", _bytes(outputs) * self._size, outputs)

    def barrier(self, opts=None):
        return self._work("all_reduce", 8, torch.zeros(1))

    def _refuse(self, *arguments):
        """What the other rank sends decides what follows, in pipelines and mixtures of experts."""
        raise NotImplementedError("a rehearsal has no send, recv and all_to_all")

    send = recv = recv_anysource = alltoall = alltoall_base = all_to_all_single = _refuse


def _fake(rank, size):
    """DTensor and others read the group's backend on a device."""
    fake = torch._C._distributed_c10d.FakeProcessGroup
    return getattr(fake, "_create_internal", fake)(rank, size)


class Here:
    """The processes that really exist, connected by Gloo."""

    def __init__(self, rank, processes):
        store, _, _ = next(iter(dist.rendezvous("env://", rank, processes)))
        self._processes = processes
        self._gloo = dist.ProcessGroupGloo(dist.PrefixStore(BACKEND, store), rank, processes, TIMEOUT)

    def broadcast(self, tensors, opts):
        tensors = _flat(tensors)
        objects = all(t.device.type == "cpu" and not t.is_floating_point() for t in tensors)
        if objects and opts.rootRank < self._processes:
            self._gloo.broadcast(tensors, opts).wait()


def install(rehearsal, rank, processes):
    """Call before the script forms its group. Wraps init_process_group and new_group."""
    world = rehearsal.costs.world
    here = []  # formed with the script's first group
    os.environ["WORLD_SIZE"] = str(world)
    os.environ.setdefault("RANK", str(rank))

    def create(store, group_rank, size, timeout):
        if not here:
            here.append(Here(rank, processes) if processes > 1 else None)
        group = Group(rehearsal, group_rank, size, here[0])
        fake = _fake(group_rank, size)
        for device in ("cpu", "cuda"):
            group._register_backend(torch.device(device), dist.ProcessGroup.BackendType.CUSTOM, fake)
        return group

    dist.Backend.register_backend(BACKEND, create, devices=["cpu", "cuda"])
    form, add = dist.init_process_group, dist.new_group

    def init_process_group(*args, **kwargs):
        kept = {"timeout": kwargs["timeout"]} if kwargs.get("timeout") else {}
        return form(BACKEND, store=dist.HashStore(), rank=rank, world_size=world, **kept)

    def new_group(ranks=None, timeout=None, backend=None, *args, **kwargs):
        return add(ranks, timeout, BACKEND)

    for module in (dist, dist.distributed_c10d, dist.device_mesh):  # the last one has them by name
        module.init_process_group, module.new_group = init_process_group, new_group
