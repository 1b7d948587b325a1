# SPDX-License-Identifier: Apache-2.0
"""Runs hosts.py --seed S with three ranks, for S from 0 on: python forked_hosts.py ROUNDS FOLDER. All are forks of this
process, which imports torch once. Rank 0 alone has the folder FOLDER/S. Two steps warm up. Prints the exit codes."""

import gc
import json
import os
import pathlib
import runpy
import signal
import socket
import sys

import howmany_hook
import torch
import torch._dynamo  # noqa: F401  the first optimizer step needs it

WORLD, TIMEOUT = 3, 60
SCRIPT = pathlib.Path(__file__).with_name("hosts.py")


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def train(rank, port, seed, folder):
    """In a child, with the hook. Raises SystemExit."""
    signal.alarm(TIMEOUT)
    os.environ.update(RANK=str(rank), WORLD_SIZE=str(WORLD), LOCAL_RANK="0", LOCAL_WORLD_SIZE="1",
                      MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port),
                      HOWMANY_SCRIPT_OUT=str(folder if rank == 0 else folder / "absent"))
    howmany_hook._started = False
    howmany_hook.start()
    agreement = sys.modules["howmany_hook.agreement"]
    agreement.LONGEST, agreement.Warmup.ended = 0.2, lambda self, step, seconds: step >= 2
    sys.argv[1:] = ["--seed", str(seed)]
    runpy.run_path(str(SCRIPT), run_name="__main__")


gc.freeze()  # the hook looks at all objects but these
for seed in range(int(sys.argv[1])):
    folder, port, pids = pathlib.Path(sys.argv[2]) / str(seed), free_port(), []
    folder.mkdir()
    for rank in range(WORLD):
        pid = os.fork()
        if pid == 0:
            train(rank, port, seed, folder)
            sys.exit(1)  # the script went on to its end
        pids.append(pid)
    codes = [os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in pids]
    print(json.dumps({"seed": seed, "codes": codes}), flush=True)
