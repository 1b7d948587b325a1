# SPDX-License-Identifier: Apache-2.0
"""Load from other programs: a loop on each core that this process may use. At nice 19, ranks that spin
leave it only 5 % of a core, where all share one scheduling group."""
import contextlib
import os
import subprocess

LOOP = "import os\nos.nice({})\nwhile True: pass"


@contextlib.contextmanager
def busy_cores(nice=19):
    loops, idle = [], os.environ.pop("HOWMANY_PROC", None)
    try:
        for core in os.sched_getaffinity(0):
            loops.append(subprocess.Popen(["taskset", "-c", str(core), "python3", "-S", "-c", LOOP.format(nice)]))
        yield
    finally:
        for loop in loops:
            loop.kill()
            loop.wait()
        if idle is not None:
            os.environ["HOWMANY_PROC"] = idle
