# SPDX-License-Identifier: Apache-2.0
"""The cases of torch_collectives.py: operation, ranks, bytes, cores, and each case's share of the
time."""
import math
import os
import pathlib
import time

CALLS = 7  # a median needs at least six to have an interval
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
    """Divides the time among the cases on rank 0, as benches/comm/schedule.h does: a larger message
    has a larger share of the rest."""

    def __init__(self, cases, seconds):
        self.cases, self.end, self.seen = cases, time.perf_counter() + seconds, {}

    @staticmethod
    def weight(case):
        return 1 + min(case.bytes, 64e6) / 4e6

    def share(self, index):
        """Returns (seconds, calls, reason). If calls is 0, the time is too short for the case."""
        case, left = self.cases[index], self.end - time.perf_counter()
        bytes, fixed, call = self.seen.get((case.op, case.dtype, case.ranks), (case.bytes, 0, 0))
        ratio = max(case.bytes, 1 << 16) / max(bytes, 1 << 16)
        once, usual = (fixed + call) * ratio, (fixed + call * (CALLS + 1)) * ratio
        if once > max(0.02, left):
            return 0, 0, f"no time left for about {once:.2g} s"
        seconds = max(2e-3, left * self.weight(case) / sum(map(self.weight, self.cases[index:])))
        return seconds, CALLS if usual <= max(0.02, 2 * seconds) else 1, ""

    def took(self, case, fixed, call):
        self.seen[case.op, case.dtype, case.ranks] = case.bytes, fixed, call


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
