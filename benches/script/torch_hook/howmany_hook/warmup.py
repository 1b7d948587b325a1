# SPDX-License-Identifier: Apache-2.0
"""When a script's first, slow steps are over."""

import collections
import statistics

WINDOW = 5  # steps; their median must settle
SETTLED = 0.05  # largest change of that median, twice in a row
FEWEST = 2


def has_settled(durations):
    """True if the median of five steps changed by less than 5 % twice. `durations`: of the last 15 steps."""
    if len(durations) < 3 * WINDOW:
        return False
    a, b, c = (statistics.median(durations[i : i + WINDOW]) for i in (0, WINDOW, 2 * WINDOW))
    return abs(b - a) < SETTLED * a and abs(c - b) < SETTLED * b


class Warmup:
    """Slow steps warm up for `seconds`, and for two steps at least. The first step does not count:
    it began with the program."""

    def __init__(self, seconds):
        self._limit = max(seconds, 1.0)
        self._durations = collections.deque(maxlen=3 * WINDOW)
        self._seconds = 0.0

    def ended(self, step, seconds):
        """Call after every step."""
        if step == 0:
            return False
        self._durations.append(seconds)
        self._seconds += seconds
        enough = step >= FEWEST and self._seconds > self._limit
        return enough or has_settled(list(self._durations))
