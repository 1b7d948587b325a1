# SPDX-License-Identifier: Apache-2.0
"""The cycles of a training loop. Work that recurs between steps, such as rollouts, validation, checkpoints or the ends
of epochs, makes the step after it long.

Long. A step is long above LONG times the lower quartile. Neighbours that are long are one event.
Recurring. Events are alike if their extra time is at least half of the longest one's. They recur if there are two or more,
    and go on until the end. From one to the next is a cycle: the steps after the first event, up to the second.
Disturbances of the machine recur too, but at any time, and cost little. So cycles whose events take less than WORK steps
    count only if there are MANY, and most have about the same number of steps. The others count if most have about the same
    number of steps, or if they make the mean step much longer than the median one.
Alone. Longer events that do not recur are disturbances, or belong to a cycle longer than the time. Cycles that hold
    them are left out.

Pure functions of the seconds of steps.
"""

import dataclasses
import statistics

LONG = 1.25  # times the lower quartile
ALIKE = 0.5  # of the longest extra time
OPEN = 2  # longest cycles: the most steps before the first event, or after the last
SAME_LENGTH = 0.2  # of cycles, relative difference from the median
MOST = 2 / 3  # of the cycles
WORK, MANY = 3, 3  # usual steps: the least extra time of an event that is work for sure; cycles
MATTERS, MUCH = 0.01, 0.1  # difference of the mean step from the median one
NOTICEABLE = 0.03  # share of the time
WANTED = 2  # whole cycles


@dataclasses.dataclass(frozen=True)
class Cycles:
    windows: list  # (first, last) step of each cycle, by index
    excess: float  # of their mean step over the median of all steps
    alone: float  # share of the time: extra time of events that did not recur, and are work or a large disturbance
    are_work: bool = False  # for sure

    def count(self):
        """False if the median step represents all steps."""
        excess = abs(self.excess)
        if not self.are_work:
            return excess > MATTERS and len(self.windows) >= MANY and self.have_same_length()
        return excess > MUCH or excess > MATTERS and self.have_same_length()

    def have_same_length(self):
        lengths = [last - first + 1 for first, last in self.windows]
        usual = statistics.median(lengths)
        alike = sum(abs(length - usual) <= SAME_LENGTH * usual for length in lengths)
        return len(lengths) >= WANTED and alike >= MOST * len(lengths)


def find(seconds):
    """Returns the Cycles in the seconds of successive steps."""
    left, alone = _events(seconds), []
    work = WORK * _usual(seconds)
    while left:
        least = ALIKE * max(left)[0]
        alike = [index for extra, index in left if extra >= least]
        if _recur(alike, len(seconds)):
            windows = [(a + 1, b) for a, b in zip(alike, alike[1:])]
            whole = [(a, b) for a, b in windows if not any(a <= index <= b for _, index in alone)]
            return Cycles(whole, _excess(seconds, whole), _share(alone, seconds, work), least >= ALIKE * work)
        alone += [event for event in left if event[0] >= least]
        left = [event for event in left if event[0] < least]
    return Cycles([], 0.0, _share(alone, seconds, work))


def pending(seconds):
    """True if more steps may show that a noticeable event recurs, or as many whole cycles as count."""
    found = find(seconds)
    if found.alone > NOTICEABLE:
        return True
    count, wanted = len(found.windows), WANTED if found.are_work else MANY
    if count >= wanted or found.excess <= NOTICEABLE:
        return False
    return found.are_work or count == 1 or found.have_same_length()


def _usual(seconds):
    return sorted(seconds)[len(seconds) // 4] if seconds else 0.0


def _events(seconds):
    """Returns (extra seconds, index) of the longest step of each event."""
    usual = _usual(seconds)
    events, inside = [], False
    for index, one in enumerate(seconds):
        is_long = one > LONG * usual
        if is_long and inside:
            events[-1] = max(events[-1], (one - usual, index))
        elif is_long:
            events.append((one - usual, index))
        inside = is_long
    return events


def _recur(indices, count):
    if len(indices) < 2:
        return False
    longest = max(b - a for a, b in zip(indices, indices[1:]))
    return max(indices[0], count - 1 - indices[-1]) <= OPEN * longest


def _excess(seconds, windows):
    inside = [one for a, b in windows for one in seconds[a : b + 1]]
    return statistics.fmean(inside) / statistics.median(seconds) - 1 if inside else 0.0


def _share(events, seconds, least):
    return sum(extra for extra, _ in events if extra >= least) / sum(seconds) if events else 0.0
