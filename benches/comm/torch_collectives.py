#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Times the collectives of torch.distributed as backend_bench times those of howmany's backends: the same cases, data
patterns, checks, clock, cores and files. `howmany backend --torch` runs it with the user's Python; by hand:

  python torch_collectives.py --backend torch:gloo --devices cpu:0,cpu:1 --benchmark_out=torch.json

It starts one process per device. backend_bench, in the same folder, lists the cases (`--list`), so every other flag of
backend_bench holds here. Exit codes: 0 measured, 1 wrong data, 2 bad usage, 3 a measurement failed."""
import argparse
import ctypes
import json
import math
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True  # the folder of the programs stays as it was installed

from torch_cases import Case

NOT_TIMED = ("pace", "overlap")
GRACE_SECONDS = 5  # between the first failure of a rank and the kill of the others


def parse(words):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter,
                                     allow_abbrev=False)
    parser.add_argument("--backend", default="torch:gloo", help="torch:gloo or torch:nccl")
    parser.add_argument("--devices", default="cpu:0,cpu:1", help="one for each rank")
    parser.add_argument("--cores", default="", help="numbers of the cores of cpu devices (default: all allowed)")
    parser.add_argument("--cores-per-device", type=int, default=1)
    parser.add_argument("--time-budget", type=float, default=30)
    parser.add_argument("--timeout", type=float, default=60, help="seconds a rank waits for the others")
    parser.add_argument("--samples-file", default=os.environ.get("HOWMANY_SAMPLES", ""))
    parser.add_argument("--benchmark_out", default="")
    parser.add_argument("--benchmark_out_format", default="json")
    parser.add_argument("--list", action="store_true", help="names of the cases, one a line")
    # For a rank: the folder of the rendezvous.
    parser.add_argument("--rank-folder", help=argparse.SUPPRESS)
    return parser.parse_known_args(words)


def listed_cases(args, more):
    """Returns the names that backend_bench lists for these flags. Exits with 2 if it refuses
    them."""
    bench = pathlib.Path(__file__).parent / "backend_bench"
    command = [bench, "--backend", "local", "--devices", args.devices, "--cores-per-device", str(args.cores_per_device),
               *more, "--list"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.stderr.write(done.stderr)
        sys.exit(done.returncode if done.returncode == 2 else 3)
    return [name for name in done.stdout.split() if name.split("/")[1] not in NOT_TIMED]


def run_rank(args):
    die_with_parent()
    import torch_rank
    folder = pathlib.Path(args.rank_folder)
    cases = [Case(name, args.backend) for name in json.loads((folder / "cases.json").read_text())]
    code = torch_rank.Rank(args, cases, folder).run()
    sys.stdout.flush()
    os._exit(code)  # torch's own teardown may wait for ranks that have exited


def die_with_parent():
    """Makes the kernel kill this process if its parent dies."""
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG
    if os.getppid() != int(os.environ["HOWMANY_TORCH_PARENT"]):
        sys.exit(3)


def environment_of(rank, world):
    inherited = dict(os.environ)
    for name in ("GLOO_SOCKET_IFNAME", "NCCL_SOCKET_IFNAME"):  # all ranks are on this host
        inherited.setdefault(name, os.environ.get("HOWMANY_IFACE") or "lo")
    inherited.setdefault("TORCH_CPP_LOG_LEVEL", "ERROR")
    return inherited | {"RANK": str(rank), "WORLD_SIZE": str(world), "LOCAL_RANK": str(rank),
                        "HOWMANY_TORCH_PARENT": str(os.getpid())}


def failed(rank):
    return rank.returncode not in (None, 0, 1)


def wait_for(ranks):
    """Waits for all ranks, but at most GRACE_SECONDS after the first failure."""
    deadline = math.inf
    while any([rank.poll() is None for rank in ranks]) and time.monotonic() < deadline:
        time.sleep(0.02)
        if deadline == math.inf and any(map(failed, ranks)):
            deadline = time.monotonic() + GRACE_SECONDS


def failure_of(ranks):
    """Returns one line on the failed rank, or "". A rank killed by a signal takes precedence over
    ranks that noticed it."""
    bad = sorted((rank.returncode >= 0, i) for i, rank in enumerate(ranks) if failed(rank))
    if not bad:
        return ""
    code = ranks[bad[0][1]].returncode
    how = f"was ended by signal {-code}" if code < 0 else f"exited with {code}"
    return f"rank {bad[0][1]} of {len(ranks)} {how}"


def start_ranks(argv, world, folder):
    command = [sys.executable, "-W", "ignore", __file__, *argv, "--rank-folder", folder]
    return [subprocess.Popen(command, env=environment_of(rank, world), stdin=subprocess.DEVNULL)
            for rank in range(world)]


def supervise(argv, names, backend):
    """Runs the ranks until they exit. If this process ends first, they end too. Returns the exit
    code."""
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, lambda got, _: sys.exit(128 + got))
    folder, ranks = tempfile.mkdtemp(prefix="howmany-torch-"), []
    try:
        pathlib.Path(folder, "cases.json").write_text(json.dumps(names))
        ranks = start_ranks(argv, max(Case(name, backend).ranks for name in names), folder)
        wait_for(ranks)
        problem = failure_of(ranks)
        if not problem:
            return max(rank.returncode for rank in ranks)
        print(problem, file=sys.stderr)
        return 3
    finally:
        for rank in ranks:
            rank.kill()
        for rank in ranks:
            rank.wait()
        shutil.rmtree(folder, ignore_errors=True)


def main(argv):
    args, more = parse(argv)
    if args.rank_folder:
        return run_rank(args)
    if not args.cores:
        argv = [*argv, "--cores", ",".join(map(str, sorted(os.sched_getaffinity(0))))]
    names = listed_cases(args, more)
    if args.list:
        print(*[Case(name, args.backend).name for name in names], sep="\n")
        return 0
    return supervise(argv, names, args.backend) if names else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
