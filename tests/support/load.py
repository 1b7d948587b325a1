# SPDX-License-Identifier: Apache-2.0
"""Load from other programs: a loop at nice 19 on each core that this process may use."""
import contextlib
import os
import subprocess

LOOP = "import os\nos.nice(19)\nwhile True: pass"


@contextlib.contextmanager
def busy_cores():
    loops = []
    try:
        for core in os.sched_getaffinity(0):
            loops.append(subprocess.Popen(["taskset", "-c", str(core), "python3", "-S", "-c", LOOP]))
        yield
    finally:
        for loop in loops:
            loop.kill()
            loop.wait()
