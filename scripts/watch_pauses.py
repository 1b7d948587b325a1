#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Appends a line to a file each time the whole machine pauses for more than 2 s, as virtual machines do: FILE.
Ends with its parent. A busy machine runs a process that sleeps far sooner than that."""
import os
import sys
import time

parent, last = os.getppid(), time.monotonic()
while os.getppid() == parent:
    time.sleep(0.2)
    now = time.monotonic()
    if now - last > 2:
        with open(sys.argv[1], "a") as log:
            log.write(f"{now - last:.0f} s at {time.strftime('%H:%M:%S')}\n")
    last = now
