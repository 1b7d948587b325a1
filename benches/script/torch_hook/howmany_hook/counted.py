# SPDX-License-Identifier: Apache-2.0
"""The operations of a step, in the order of their calls (howmany gpus --cluster, without a GPU).

The line {"kind": "counted", ...} of the record. reports/predict/counted.h has its members.
"""

import contextlib
import time

from howmany_hook.operations import operation_of

LOADER_SECONDS = 3.0  # the most that batches are made for after the last step, to time them
LOADER_BATCHES = 20


class Step:
    def __init__(self):
        self.order = []
        self.collectives = []
        self.gradients = []
        self.host_ops = 0


class Counter:
    def __init__(self):
        self.phase = lambda: "forward"  # of now, set by install.py
        self.compiled = False
        self.mode = None  # pretend.Pretended
        self.refused = None
        self._kinds = {}  # Operation and phase: index
        self._now, self._last, self._steps = Step(), None, 0
        self._silent = 0
        self._watched = set()  # ids of parameters
        self._answered = {}
        self._was_answered = {}

    # Events.

    def has_compiled(self):
        self.compiled = True

    def saw(self, func, args, kwargs, result):
        if self._silent:
            return
        operation = operation_of(func, args, kwargs, result)
        self._now.host_ops += 1
        if operation is not None:
            self._add(tuple(operation))

    def kernel(self, name, read, written, dtype):
        """One that C++ would launch, outside of operations."""
        self._now.host_ops += 1
        self._add((name, "memory", dtype, 0.0, read, written))

    def _add(self, operation):
        key = (*operation, self.phase())
        self._now.order.append(self._kinds.setdefault(key, len(self._kinds)))

    def collective(self, kind, size, ranks, stride):
        """Returns its place, for waited()."""
        calls = self._now.collectives
        calls.append({"op": kind, "bytes": size, "ranks": ranks, "stride": stride})
        self._now.order.append(-len(calls))
        return calls[-1]

    def waited(self, one):
        """The sums of a backward pass are waited for at its end."""
        if self.phase() != "backward" or one["op"] == "all_gather":
            one.setdefault("waited", len(self._now.order))

    @contextlib.contextmanager
    def silent(self):
        """For operations that replace others."""
        self._silent += 1
        try:
            yield
        finally:
            self._silent -= 1

    def watch(self, parameters):
        """Notes when the gradients of these parameters are ready."""
        for p in parameters:
            if p.requires_grad and p.is_leaf and id(p) not in self._watched:
                self._watched.add(id(p))
                p.register_post_accumulate_grad_hook(self._ready)

    def _ready(self, parameter):
        gradient = parameter.grad
        if gradient is not None:
            self._now.gradients.append([len(self._now.order), gradient.numel() * gradient.element_size()])

    def stepped(self):
        """A step has ended."""
        self._last, self._now = self._now, Step()
        self._steps += 1
        if self.mode:
            now = dict(self.mode.answered)
            self._answered = {name: count - self._was_answered.get(name, 0) for name, count in now.items()}
            self._was_answered = now

    def line(self, device, world, parallel, samples, micro_batches, memory, loader):
        last = self._last or self._now
        if parallel == "fsdp":
            prefetch(last)
        used = sorted({place for place in last.order if place >= 0})
        names = {old: new for new, old in enumerate(used)}
        kinds = list(self._kinds)
        members = ("op", "work", "dtype", "flop", "read", "written", "phase")
        if self._steps < 2:  # the first is not like others: the optimizer makes its state
            self.refused = "the script ended after its first step"
        elif not used:
            self.refused = "no operation of a step ran on the GPU: the script chooses the CPU"
        elif parallel == "dtensor":
            self.refused = "the exchanges of tensor parallelism (DTensor) are not counted"
        return {
            "kind": "counted",
            "way": "real" if self.mode.real else "shapes",
            "device": device["name"],
            "world": world,
            "samples": samples,
            "micro_batches": micro_batches,
            "parallel": parallel,
            "compiled": self.compiled,
            "kinds": [dict(zip(members, kinds[old])) for old in used],
            "order": [names[place] if place >= 0 else place for place in last.order],
            "collectives": last.collectives,
            "gradients": last.gradients,
            "host_ops": last.host_ops,
            "memory": memory,
            "loader": loader,
            "answered": {name: count for name, count in self._answered.items() if count},
            "refused": self.refused,
        }


def prefetch(step):
    """Calls each gather of parameters of the forward pass when the one before it is waited for. The host is ahead of the
    GPU, and FSDP has a stream for gathers, so that they run beside the computation of the layer before."""
    events, waits = [], {}
    for i, one in enumerate(step.collectives):
        if "waited" in one:
            waits.setdefault(one["waited"], []).append(i)
    for place, entry in enumerate(step.order):
        events += [("wait", i) for i in waits.get(place, [])]
        events.append(("run", entry))
    gathers = [i for i, one in enumerate(step.collectives) if one["op"] == "all_gather"]
    for before, i in zip(gathers, gathers[1:]):
        call, wait = ("run", -1 - i), ("wait", before)
        if wait not in events or events.index(wait) > events.index(call):
            continue
        events.remove(call)
        events.insert(events.index(wait) + 1, call)
    step.order = []
    for what, value in events:
        if what == "run":
            step.order.append(value)
        else:
            step.collectives[value]["waited"] = len(step.order)


def time_batches(iterator, samples):
    """Returns the CPU seconds of a batch, on one core, from batches that are made now."""
    start, cpu, batches = time.perf_counter(), time.thread_time(), 0
    with contextlib.suppress(StopIteration):
        while batches < LOADER_BATCHES and time.perf_counter() - start < LOADER_SECONDS:
            next(iterator)
            batches += 1
    if batches == 0:
        return None
    return {"core_s_per_batch": (time.thread_time() - cpu) / batches, "samples": samples, "batches": batches}
