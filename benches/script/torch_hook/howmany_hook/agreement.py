# SPDX-License-Identifier: Apache-2.0
"""Which steps are timed and which is the last: the same on all ranks, so that none is left alone in
a collective.

Rank 0 decides, and writes OUT/steps.json. If the number of backward passes in a step changes for good, as while gradient
accumulation warms up, it times anew from there. It announces the last step two steps ahead. The others
read the file after each of their steps: rank 0 writes it before it takes part in the next step, and
they cannot complete that step without rank 0.
"""

import dataclasses
import json
import os
import time

from howmany_hook.warmup import Warmup

FEWEST_TIMED = 5
AHEAD = 2
CHANGED = 3  # steps in a row
LONGEST = 5  # times the seconds, until a change no longer counts


@dataclasses.dataclass(frozen=True)
class Steps:
    first: int  # timed, by index
    last: int  # timed
    stop: int  # the script ends after this one


def write_whole(path, value):
    """Readers see the old file or the new one."""
    with open(path + ".tmp", "w", encoding="utf-8") as file:
        json.dump(value, file)
    os.replace(path + ".tmp", path)


class Agreement:
    def __init__(self, settings):
        self._settings = settings
        self._path = os.path.join(settings.out, "steps.json")
        self._warmup = Warmup(settings.seconds)
        self._first = None  # index of the first timed step
        self._since = self._began = 0.0  # when it and the first that was chosen began
        self._passes, self._others = None, 0  # backward passes of the first timed step; steps in a row with others
        self._steps = None

    def after(self, index, step):
        """Returns the Steps once they are known, else None. Call after every step."""
        if self._steps is None:
            self._steps = self._decide(index, step) if self._settings.rank == 0 else self._read()
        return self._steps

    def _read(self):
        try:
            with open(self._path, encoding="utf-8") as file:
                return Steps(**json.load(file))
        except FileNotFoundError:
            return None

    def so_far(self, count):
        """Returns the Steps of a script that ended by itself after `count` steps; None if too few were timed. If it still
        warmed up, half of its steps were for that."""
        first = max(2, count // 2) if self._first is None else self._first
        return Steps(first, count - 1, count - 1) if count - first >= FEWEST_TIMED else None

    def _decide(self, index, step):
        now = time.perf_counter()
        if self._first is None:
            if self._warmup.ended(index, step.seconds):
                self._first, self._since, self._began = index + 1, now, now
            return None
        if self._has_changed(step.backwards) and now - self._began < LONGEST * max(1.0, self._settings.seconds):
            self._first, self._since, self._passes = index + 1, now, None
            return None
        timed = index + 1 - self._first
        if timed < FEWEST_TIMED - AHEAD:
            return None
        if now - self._since < self._settings.seconds and timed < self._settings.max_steps - AHEAD:
            return None
        last = index + AHEAD
        steps = Steps(self._first, last, last + self._settings.detail)
        write_whole(self._path, dataclasses.asdict(steps))
        return steps

    def _has_changed(self, passes):
        self._passes = self._passes or passes
        self._others = self._others + 1 if passes != self._passes else 0
        return self._others >= CHANGED
