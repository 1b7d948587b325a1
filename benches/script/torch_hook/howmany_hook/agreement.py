# SPDX-License-Identifier: Apache-2.0
"""Which steps are timed and which is the last: the same on all ranks, so that none is left alone in
a collective.

Rank 0 decides, and writes OUT/steps.json. It announces the last step two steps ahead. The others
read the file after each of their steps: rank 0 writes it before it takes part in the next step, and
they cannot complete that step without rank 0.
"""

import collections
import dataclasses
import json
import os
import statistics
import time

WINDOW = 5  # steps; their median must settle
SETTLED = 0.05  # largest change of that median, twice in a row
FEWEST_WARMUP, FEWEST_TIMED = 2, 5
AHEAD = 2


@dataclasses.dataclass(frozen=True)
class Steps:
    first: int  # timed, by index
    last: int  # timed
    stop: int  # the script ends after this one


def has_settled(durations):
    """True if the median of five steps changed by less than 5 % twice. `durations`: of the last 15 steps."""
    if len(durations) < 3 * WINDOW:
        return False
    a, b, c = (statistics.median(durations[i : i + WINDOW]) for i in (0, WINDOW, 2 * WINDOW))
    return abs(b - a) < SETTLED * a and abs(c - b) < SETTLED * b


class Agreement:
    def __init__(self, settings):
        self._settings = settings
        self._path = os.path.join(settings.out, "steps.json")
        self._durations = collections.deque(maxlen=3 * WINDOW)
        self._warmed_seconds = 0.0
        self._first = None  # index of the first timed step
        self._since = 0.0  # when it began
        self._steps = None

    def after(self, step, seconds):
        """Returns the Steps once they are known, else None. Call after every step."""
        if self._steps is None:
            self._steps = self._decide(step, seconds) if self._settings.rank == 0 else self._read()
        return self._steps

    def _read(self):
        try:
            with open(self._path, encoding="utf-8") as file:
                return Steps(**json.load(file))
        except FileNotFoundError:
            return None

    def _decide(self, step, seconds):
        now = time.perf_counter()
        if self._first is None:
            if self._warm(step, seconds):
                self._first, self._since = step + 1, now
            return None
        timed = step + 1 - self._first
        if timed < FEWEST_TIMED - AHEAD:
            return None
        if now - self._since < self._settings.seconds and timed < self._settings.max_steps - AHEAD:
            return None
        last = step + AHEAD
        steps = Steps(self._first, last, last + self._settings.detail)
        self._write(steps)
        return steps

    def _warm(self, step, seconds):
        """Slow steps warm up for as long as they are timed, and for two steps at least. The first
        step does not count: it began with the program."""
        if step == 0:
            return False
        self._durations.append(seconds)
        self._warmed_seconds += seconds
        limit = max(self._settings.seconds, 1.0)
        enough = step >= FEWEST_WARMUP and self._warmed_seconds > limit
        return enough or has_settled(list(self._durations))

    def _write(self, steps):
        temporary = self._path + ".tmp"
        with open(temporary, "w", encoding="utf-8") as file:
            json.dump(dataclasses.asdict(steps), file)
        os.replace(temporary, self._path)
