# SPDX-License-Identifier: Apache-2.0
"""What a script measures of itself, without howmany. With $STOPWATCH each rank writes $STOPWATCH/WORLD.RANK.PID.json
at its exit: the seconds of each step, and for each name those in which `with watch(name)` ran, by step."""

import atexit
import contextlib
import json
import os
import pathlib
import time

clock = time.perf_counter


class Stopwatch:
    def __init__(self):
        self.folder = os.environ.get("STOPWATCH")
        self.rank, self.world = 0, 1
        self.steps, self.named, self.last = [], {}, clock()

    def begin(self, rank, world):
        self.rank, self.world = rank, world
        if self.folder:
            atexit.register(self._write, os.getpid())

    @contextlib.contextmanager
    def __call__(self, name):
        began = clock()
        yield
        self._add(name, clock() - began)

    def epoch(self, loader):
        """Yields the batches. The start, with its first batch, and the end of the workers count as `epochs`."""
        with self("epochs"):
            batches = iter(loader)
            batch = next(batches)
        while batch is not None:
            yield batch
            began = clock()
            batch = next(batches, None)
            if batch is None:
                self._add("epochs", clock() - began)

    def stepped(self):
        now = clock()
        self.steps.append(now - self.last)
        self.last = now

    def _add(self, name, seconds):
        spent = self.named.setdefault(name, {})
        spent[len(self.steps)] = spent.get(len(self.steps), 0) + seconds

    def _write(self, pid):
        if os.getpid() == pid:  # not in a worker of a loader
            text = json.dumps({"rank": self.rank, "ended": time.time(), "steps": self.steps, "named": self.named})
            pathlib.Path(self.folder, f"{self.world}.{self.rank}.{pid}.json").write_text(text)
