# SPDX-License-Identifier: Apache-2.0
"""One rank of torch_collectives.py: the operations of torch.distributed, their data, checks and
times."""
import json
import math
import os
import pathlib
import platform
import re
import statistics
import sys
import time
from datetime import timedelta

import torch_cases

DTYPES = {"f32": "float32", "f64": "float64", "i32": "int32", "i64": "int64", "u8": "uint8", "bf16": "bfloat16"}
ONE_BUFFER = ("all_reduce", "broadcast", "reduce")  # torch's reduce has one buffer too
HOST_GAP = 50e-6  # kHostGap of collective_timing.h
FILL = 251  # no pattern contains this value
PRIMES = (61, 59, 53, 47, 43, 41, 37, 31, 29, 23, 19, 17, 11, 3)
CHAIN_SECONDS = 2e-3


class Unsupported(Exception):
    """This torch or its backend lacks the operation. Every rank raises it, before any communication."""


class WrongData(Exception):
    pass


def period_of(op, ranks):
    """Returns the largest period for which sums of `ranks` values are exact in every dtype and
    below FILL."""
    if "reduce" not in op:
        return FILL
    return next((p for p in PRIMES if ranks * (p - 1) < FILL), 2)


class Collective:
    """One operation on one rank: its buffers, the call and the check of every element."""

    def __init__(self, case, rank, group, where, control=None):
        """`where`: device of the buffers; `control`: device of the tensors that the check
        exchanges."""
        import torch
        import torch.distributed as dist
        self.torch, self.dist, self.case, self.rank, self.group, self.where = torch, dist, case, rank, group, where
        self.control = control or where
        self.dtype = getattr(torch, DTYPES[case.dtype])
        self.op, n = case.op, case.ranks
        parts = 1 if self.op in torch_cases.WHOLE else n
        self.part = case.bytes // torch.empty((), dtype=self.dtype).element_size() // parts
        self.period, self.zeros = period_of(self.op, n), False
        sends_all = self.op in ("reduce_scatter", "scatter", "all_to_all")
        receives_all = self.op in ("all_gather", "gather", "all_to_all")
        self.send = self.empty(n if sends_all else 1)
        self.receive = self.send if self.op in ONE_BUFFER else self.empty(n if receives_all else 1)
        self.run = self.round_trip() if self.op == "send_recv" else self.collective()

    def empty(self, parts):
        return self.torch.empty(parts * self.part, dtype=self.dtype, device=self.where)

    def pattern(self, values, count):
        """Returns `values` of one period, repeated to `count` elements."""
        table = self.torch.tensor(values, dtype=self.torch.int64).to(self.dtype)
        return table.repeat(-(-count // len(values)))[:count]

    def value(self, rank, index, round):
        return (index * 7 + rank * 13 + round * 5) % self.period

    def sent(self, rank, first, count, round):
        return self.pattern([self.value(rank, first + i, round) for i in range(self.period)], count)

    def summed(self, first, round):
        return self.pattern([sum(self.value(rank, first + i, round) for rank in range(self.case.ranks))
                             for i in range(self.period)], self.part)

    def fill(self, round):
        self.zeros = False
        self.receive.fill_(FILL)
        self.send.copy_(self.sent(self.rank, 0, self.send.numel(), round))

    def fill_for_timing(self, round):
        self.fill(round)
        if self.op in ("all_reduce", "reduce"):  # repeated sums in place would grow
            self.send.zero_()
            self.zeros = True

    def expected(self, round):
        """Yields (first element, values) of each part that this rank must have received."""
        n, part, mine = self.case.ranks, self.part, self.rank * self.part
        if (self.op in ("gather", "reduce") and self.rank) or (self.op == "send_recv" and 0 < self.rank < n - 1):
            return
        if self.zeros:
            yield 0, self.torch.zeros(part, dtype=self.dtype)
        elif self.op in ("all_reduce", "reduce"):
            yield 0, self.summed(0, round)
        elif self.op == "reduce_scatter":
            yield 0, self.summed(mine, round)
        elif self.op in ("broadcast", "send_recv", "scatter"):
            yield 0, self.sent(0, mine if self.op == "scatter" else 0, part, round)
        else:
            for r in range(n):
                yield r * part, self.sent(r, mine if self.op == "all_to_all" else 0, part, round)

    def first_wrong(self, round):
        """Returns (element, expected value, received value), or None."""
        seen = self.receive.cpu()
        for first, right in self.expected(round):
            got = seen[first:first + self.part]
            if not self.torch.equal(got, right):
                at = int((got != right).nonzero()[0])
                return first + at, float(right[at]), float(got[at])
        return None

    def check(self, round):
        """Raises WrongData on every rank if a rank has a wrong element."""
        wrong = self.first_wrong(round)
        mine = self.torch.tensor([1.0, *wrong] if wrong else [0.0] * 4, dtype=self.torch.float64, device=self.control)
        found = [self.torch.empty_like(mine) for _ in range(self.case.ranks)]
        self.dist.all_gather(found, mine, group=self.group)
        for rank, (bad, at, right, got) in enumerate(one.tolist() for one in found):
            if bad:
                raise WrongData(f"wrong data: {self.case.op} over {self.case.name.split('/')[2]}: rank {rank} of "
                                f"{self.case.ranks}, element {at:.0f}: {got:g} instead of {right:g}")

    def call(self, name, *arguments, **named):
        function = getattr(self.dist, name, None)
        if function is None:
            raise Unsupported(f"this torch has no {name}")
        return lambda: function(*arguments, group=self.group, **named)

    def parts(self, whole):
        return list(whole.chunk(self.case.ranks)) if self.rank == 0 else None

    def collective(self):
        send, receive = self.send, self.receive
        name, buffers, root = {
            "all_reduce": ("all_reduce", [send], {}),
            "all_gather": ("all_gather_into_tensor", [receive, send], {}),
            "reduce_scatter": ("reduce_scatter_tensor", [receive, send], {}),
            "broadcast": ("broadcast", [send], {"src": 0}),
            "reduce": ("reduce", [send], {"dst": 0}),
            "gather": ("gather", [send, self.parts(receive)], {"dst": 0}),
            "scatter": ("scatter", [receive, self.parts(send)], {"src": 0}),
            "all_to_all": ("all_to_all_single", [receive, send], {}),
        }[self.op]
        return self.call(name, *buffers, **root)

    def round_trip(self):
        last = self.case.ranks - 1
        if self.rank not in (0, last):
            return lambda: None
        buffer = self.send if self.rank == 0 else self.receive
        peer = last - self.rank
        send, receive = self.call("send", buffer, dst=peer), self.call("recv", self.receive, src=peer)
        first, second = (send, receive) if self.rank == 0 else (receive, send)
        return lambda: (first(), second())


class Rank:
    """One process. It measures every case in which it has a rank. Rank 0 decides, and writes the
    files."""

    def __init__(self, args, cases, folder):
        self.args, self.cases = args, cases
        self.rank, self.world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
        kind, index = torch_cases.devices_in(args.devices)[self.rank]
        cores = torch_cases.cores_of(index, args) if kind == "cpu" else []
        import torch
        import torch.distributed as dist
        self.torch, self.dist = torch, dist
        torch.set_num_threads(len(cores) or 1)
        self.where = torch.device("cpu") if kind == "cpu" else torch.device("cuda", index)
        # gloo gathers on the host only.
        self.control = self.where if args.backend == "torch:nccl" else torch.device("cpu")
        if kind != "cpu":
            torch.cuda.set_device(self.where)
        counts = sorted({case.ranks for case in cases})
        waits = args.timeout + (args.time_budget if len(counts) > 1 else 0)  # ranks without a case wait
        dist.init_process_group(args.backend.removeprefix("torch:"), init_method=f"file://{folder}/store",
                                rank=self.rank, world_size=self.world, timeout=timedelta(seconds=waits))
        self.groups = {n: dist.new_group(list(range(n))) for n in counts}
        if cores:  # late, so that the transport threads run on any core, as in howmany
            os.sched_setaffinity(0, cores)
        self.budget = torch_cases.Budget(cases, args.time_budget)
        self.files = Files(args, torch, dist) if self.rank == 0 else None
        self.wrong_data = False

    def sync(self):
        if self.where.type == "cuda":
            self.torch.cuda.synchronize()

    def agreed(self, values, group):
        """Returns rank 0's values on every rank of the group."""
        values = self.torch.tensor(values, dtype=self.torch.float64, device=self.control)
        self.dist.broadcast(values, src=0, group=group)
        return values.tolist()

    def timed(self, body, count, group, gap=0.0):
        """Returns the seconds of each call by this rank's clock. Each starts `gap` seconds after a
        barrier."""
        seconds = []
        for _ in range(count):
            self.dist.barrier(group=group)
            self.sync()
            start = time.perf_counter()
            while time.perf_counter() - start < gap:
                pass
            start = time.perf_counter()
            body()
            self.sync()
            seconds.append(time.perf_counter() - start)
        return seconds

    def slowest(self, seconds, case, group):
        """Returns the time of the slowest rank for each call."""
        mine = self.torch.tensor(seconds, dtype=self.torch.float64, device=self.control)
        found = [self.torch.empty_like(mine) for _ in range(case.ranks)]
        self.dist.all_gather(found, mine, group=group)
        return self.torch.stack(found).amax(0).tolist()

    def warm_up(self, op, seconds, group):
        """Returns rank 0's (seconds of a call, seconds of an iteration with its barrier)."""
        first, begin = self.timed(op.run, 1, group)[0], time.perf_counter()
        count, = self.agreed([min(100, max(2, 0.1 * seconds / max(first, 1e-6)))], group)
        calls = self.timed(op.run, int(count), group)
        return self.agreed([statistics.median(calls), (time.perf_counter() - begin) / len(calls)], group)

    def chains(self, op, call, wall, seconds, group):
        """Returns (calls in a chain, seconds of each chain), without chains if there is no time for
        three."""
        length = int(min(1000, max(2, CHAIN_SECONDS / call)))
        each = call * length + wall - call
        if 3 * each > 2 * seconds:
            return length, []
        count = int(min(500, max(3, seconds / each)))
        return length, self.timed(lambda: [op.run() for _ in range(length)], count, group)

    def measure(self, case, seconds, least, group):
        """Returns (isolated samples, pipelined samples, fixed seconds, CPU time per call). Checks the data before and
        after timing."""
        start = time.perf_counter()
        op = Collective(case, self.rank, group, self.where, self.control)
        op.fill(0)
        op.run()
        self.sync()
        op.check(0)
        op.fill_for_timing(1)
        fixed, = self.agreed([2 * (time.perf_counter() - start)], group)
        seconds = max(0, seconds - fixed)
        call, wall = self.warm_up(op, seconds, group)
        count = int(min(5000, max(least, seconds / 2 / (wall + HOST_GAP))))
        isolated = self.timed(op.run, count, group, HOST_GAP)
        busy = time.process_time()
        length, chains = self.chains(op, max(call, 1e-9), wall, seconds / 4, group)
        core_s = (time.process_time() - busy) / (length * len(chains)) if chains else None
        op.check(1)
        op.fill(2)
        op.run()
        self.sync()
        op.check(2)
        share = 2 if op.op == "send_recv" else 1  # half a round trip
        isolated = [s / share for s in self.slowest(isolated, case, group)]
        pipelined = [s / length / share for s in self.slowest(chains, case, group)] if chains else []
        return isolated, pipelined, fixed, core_s

    def run_case(self, index, case):
        group, seconds, calls, why = self.groups[case.ranks], 0, 0, ""
        if self.rank == 0:
            why = torch_cases.too_large(case)
            if not why:
                seconds, calls, why = self.budget.share(index)
        seconds, calls = self.agreed([seconds, calls], group)
        if calls == 0:
            return self.files and self.files.skip(case, why)
        isolated, pipelined, fixed, core_s = self.measure(case, seconds, int(calls), group)
        if self.files:
            factor = 2 if case.op == "send_recv" else 1
            self.budget.took(case, fixed, factor * statistics.median(isolated))
            self.files.measured(case, isolated, pipelined, core_s)

    def run(self):
        for _ in range(20):  # a new process is slow at first
            self.agreed([0], None)
        for index, case in enumerate(self.cases):
            if self.rank >= case.ranks:
                continue
            try:
                self.run_case(index, case)
            except (Unsupported, NotImplementedError) as error:
                self.skip_unsupported(case, error)
            except WrongData as error:
                self.wrong_data = True
                self.failed(case, error)
            except Exception as error:  # after an error of torch the ranks may no longer agree
                if re.search("not support|unsupported", str(error), re.IGNORECASE):
                    self.skip_unsupported(case, error)
                    continue
                self.failed(case, error)
                return 3
        return 1 if self.wrong_data else 0

    def skip_unsupported(self, case, error):
        if self.files:
            self.files.skip(case, one_line(error))

    def failed(self, case, error):
        print(f"{case.name}: {one_line(error)}", file=sys.stderr, flush=True)
        if self.files:
            self.files.failed(case, one_line(error))


def one_line(error):
    """Returns the first line of torch's error, which may be long."""
    lines = str(error).strip().splitlines() or [type(error).__name__]
    return lines[0][:300]


def quantile(values, q):
    """Interpolates linearly between order statistics."""
    ordered, at = sorted(values), q * (len(values) - 1)
    low = math.floor(at)
    return ordered[low] + (ordered[math.ceil(at)] - ordered[low]) * (at - low)


class Files:
    """Google Benchmark's JSON, complete after every case, and one line of samples per timing."""

    def __init__(self, args, torch, dist):
        self.args, self.rows = args, []
        backends = [name for name in ("gloo", "nccl", "mpi") if getattr(dist, f"is_{name}_available")()]
        self.context = {"torch": torch.__version__, "python": platform.python_version(), "launcher": "howmany",
                        "torch_backends": ",".join(backends), "world": os.environ["WORLD_SIZE"]}

    def add(self, case, seconds, iterations, **more):
        self.rows.append({"name": case.name, "run_name": case.name, "run_type": "iteration", "repetitions": 1,
                          "repetition_index": 0, "family_index": len(self.rows), "per_family_instance_index": 0,
                          "threads": 1, "iterations": iterations, "real_time": seconds * 1e6,
                          "cpu_time": seconds * 1e6, "time_unit": "us", **more})
        if not self.args.benchmark_out:
            return print(json.dumps(self.rows[-1]), flush=True)
        temporary = self.args.benchmark_out + ".tmp"
        pathlib.Path(temporary).write_text(json.dumps({"context": self.context, "benchmarks": self.rows}, indent=1))
        os.replace(temporary, self.args.benchmark_out)

    def skip(self, case, why):
        self.add(case, 0, 1, label=f"skipped: {why}", skipped=1)

    def failed(self, case, why):
        self.add(case, 0, 1, error_occurred=True, error_message=why)

    def measured(self, case, isolated, pipelined, core_s):
        marks, factor, median = torch_cases.marks_of(case, self.args), case.bus_factor(), statistics.median(isolated)
        mean = statistics.fmean(isolated)
        counters = {"median_s": median, "p95_s": quantile(isolated, 0.95), "p99_s": quantile(isolated, 0.99),
                    "min_s": min(isolated), "cv": statistics.stdev(isolated) / mean if len(isolated) > 1 else 0,
                    "samples": len(isolated), "bytes": case.bytes, "algbw_bytes_per_s": case.bytes / median,
                    "busbw_bytes_per_s": factor * case.bytes / median}
        if pipelined:
            each = statistics.median(pipelined)
            counters |= {"pipelined_s": each, "pipelined_busbw_bytes_per_s": factor * case.bytes / each}
        if core_s is not None:
            counters["core_s"] = core_s
        self.add(case, mean, len(isolated), label="; ".join(marks), **counters)
        for timing, seconds in (("isolated", isolated), ("pipelined", pipelined)):
            self.append_samples(case, timing, seconds, marks)

    def append_samples(self, case, timing, seconds, marks):
        if not self.args.samples_file or not seconds:
            return
        parameters = {"op": case.op, "backend": self.args.backend, "dtype": case.dtype, "devices": str(case.ranks),
                      "bytes": str(case.bytes), "model": case.model, "timing": timing}
        line = {"name": case.name, "seconds": seconds, "converged": False, "flags": marks, "parameters": parameters,
                "world": case.ranks}
        with open(self.args.samples_file, "a") as file:
            file.write(json.dumps(line) + "\n")
