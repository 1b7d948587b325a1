# SPDX-License-Identifier: Apache-2.0
"""The cases of torch_collectives.py: operation, ranks, bytes, cores, and each case's share of the
time."""
import math
import os
import pathlib
import time

# All buffers have all bytes; other operations have one part per rank.
WHOLE = ("all_reduce", "broadcast", "reduce", "send_recv")


class Case:
    """Parses a name of backend_bench:
    backend/<op>/<backend>/dtype:f32/devices:2/bytes:64[/model:mlp]."""

    def __init__(self, name, backend):
        suite, self.op, _, *pairs = name.split("/")
        values = dict(pair.split(":", 1) for pair in pairs)
        self.dtype, self.model = values["dtype"], values.get("model", "")
        self.ranks, self.bytes = int(values["devices"]), int(values["bytes"])
        self.name = "/".join([suite, self.op, backend, *pairs])

    def bus_factor(self):
        others = (self.ranks - 1) / self.ranks
        return 2 * others if self.op == "all_reduce" else 1 if self.op in WHOLE else others


def devices_in(text):
    """Parses cpu:0-2,cpu:4 into [("cpu", 0), ("cpu", 1), ("cpu", 2), ("cpu", 4)]."""
    found = []
    for part in text.split(","):
        kind, _, indices = part.partition(":")
        first, _, last = indices.partition("-")
        found += [(kind, i) for i in range(int(first or 0), int(last or first or 0) + 1)]
    return found


def cores_of(index, args):
    """Returns the cores of cpu:<index>. Indices past the last device wrap around, as in
    backend_bench."""
    cores = [int(core) for core in args.cores.split(",") if core] or sorted(os.sched_getaffinity(0))
    each = min(args.cores_per_device, len(cores))
    first = index % (len(cores) // each) * each
    return cores[first:first + each]


def marks_of(case, args):
    devices = devices_in(args.devices)[:case.ranks]
    places = [tuple(cores_of(i, args)) if kind == "cpu" else (kind, i) for kind, i in devices]
    return ["oversubscribed"] if len(set(places)) < len(places) else []


class Budget:
    """Divides the time among the cases on rank 0. A larger message gets a larger share of the
    rest."""

    def __init__(self, cases, seconds, least):
        self.cases, self.seconds, self.least, self.start, self.seen = cases, seconds, least, time.perf_counter(), {}

    @staticmethod
    def weight(case):
        return 1 + min(case.bytes, 64e6) / 4e6

    @staticmethod
    def cost(fixed, call, calls):
        return fixed + call * (calls + 1 if calls > 1 else 1)

    def expected(self, case):
        """Returns (fixed seconds, seconds of a call), scaled from the last measured size, or zeros
        if there is none."""
        bytes, fixed, call = self.seen.get((case.op, case.dtype, case.ranks), (case.bytes, 0, 0))
        ratio = max(case.bytes, 1 << 16) / max(bytes, 1 << 16)
        return fixed * ratio, call * ratio

    def share(self, index):
        """Returns (seconds, calls, reason, needed seconds). If calls is 0, the time is too short
        for the case."""
        case, left = self.cases[index], self.seconds - (time.perf_counter() - self.start)
        cost = self.expected(case)
        once, needs = self.cost(*cost, 1), self.cost(*cost, self.least)
        if once > max(0.02, left + 0.1 * self.seconds):
            return 0, 0, f"no time left for about {once:.2g} s", needs
        seconds = max(2e-3, left * self.weight(case) / sum(map(self.weight, self.cases[index:])))
        return seconds, self.least if needs <= max(0.02, left / 2) else 1, "", needs

    def took(self, case, fixed, call):
        self.seen[case.op, case.dtype, case.ranks] = case.bytes, fixed, call
        return self.cost(fixed, call, self.least)


def free_memory():
    """Returns the free bytes of this machine or of the control group."""
    meminfo = pathlib.Path("/proc/meminfo").read_text()
    free = [1024 * float(line.split()[1]) for line in meminfo.splitlines() if line.startswith("MemAvailable:")]
    limit = pathlib.Path("/sys/fs/cgroup/memory.max")
    if limit.exists() and (text := limit.read_text().strip()).isdigit():
        free.append(float(text))
    return min(free, default=math.inf)


def too_large(case):
    need, free = 4 * case.bytes * case.ranks, free_memory()  # two buffers, and as much to check them
    return f"buffers of {need / 1e9:.1f} GB in {free / 1e9:.1f} GB of free memory" if need > free / 2 else ""
