# SPDX-License-Identifier: Apache-2.0
"""Prints a rate that depends on the number of its cores. Arguments: the kind of line, the number of lines."""

import os
import sys
import time

kind, lines = sys.argv[1], int(sys.argv[2])
cores = len(os.sched_getaffinity(0))
for i in range(lines):
    rate = 1.0 if i == 0 else 100.0 * (1 if cores == 1 else 1.8)
    text = f"step {i}: {rate:.1f} img/s" if kind == "rate" else f"step {i}: {64 / rate:.4f} s"
    print(text, file=sys.stderr if i % 2 else sys.stdout)
    time.sleep(0.01)
print("the end: " + "x" * 70000)
