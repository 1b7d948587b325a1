#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs ctest, prints its output, and runs again each failed test during which the whole machine paused, up to twice and
one at a time: repeat_paused.py PRESET [argument of ctest...].

A virtual machine may pause for longer than the timeout of any test. Exits with ctest's status, or with 0 if all failed
tests passed when they ran again. A failed test without a pause is not repeated."""
import os
import re
import subprocess
import sys
import threading
import time

PAUSE = 2  # seconds; a process that sleeps for 0.2 s wakes far sooner on a busy machine
FAILED = re.compile(r"^ *\d+/\d+ Test +#\d+: (\S+) .*\*\*\*(?!Skipped|Not Run)\D*([\d.]+) sec")


class Pauses(threading.Thread):
    """Collects the (begin, end) of each pause of the machine, in seconds of time.monotonic()."""

    def __init__(self):
        super().__init__(daemon=True)
        self.found = []

    def run(self):
        last = time.monotonic()
        while True:
            time.sleep(0.2)
            now = time.monotonic()
            if now - last > PAUSE:
                self.found.append((last, now))
            last = now

    def during(self, begin, end):
        """Returns the seconds of the longest pause that overlaps this time, 0 if there is none."""
        time.sleep(0.5)  # a pause that has just ended is not noted yet
        return max((b - a for a, b in self.found if a < end and b > begin), default=0)


def run(command, pauses):
    """Returns ctest's exit status, and {name: longest pause during it} of the failed tests."""
    failed = {}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, errors="replace") as ctest:
        for line in ctest.stdout:
            now = time.monotonic()
            print(line, end="", flush=True)
            if found := FAILED.match(line):
                name, seconds = found[1], float(found[2])
                failed[name] = pauses.during(now - seconds, now)
    return ctest.returncode, failed


def main():
    ctest = ["ctest", "--preset", sys.argv[1]]
    pauses = Pauses()
    pauses.start()
    status, failed = run([*ctest, *sys.argv[2:]], pauses)
    for _ in range(2):
        paused = {name: seconds for name, seconds in failed.items() if seconds}
        if not paused:
            break
        for name, seconds in paused.items():
            print(f"Runs again, because the machine paused for {seconds:.0f} s during it: {name}", flush=True)
        os.environ["CTEST_PARALLEL_LEVEL"] = "1"
        names = "|".join(re.escape(name) for name in paused)
        again, repeated = run([*ctest, "-R", f"^({names})$"], pauses)
        failed = {name: seconds for name, seconds in failed.items() if not seconds} | repeated
        status = status if failed else again
    return status


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
