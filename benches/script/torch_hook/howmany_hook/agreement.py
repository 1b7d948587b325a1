# SPDX-License-Identifier: Apache-2.0
"""Which steps are timed and which is the last: the same on all ranks, so that none is left alone in
a collective.

Rank 0 decides, and writes OUT/steps.json. If the backward passes or the samples of a step change for good, as while
gradient accumulation warms up, it times anew from there. If long steps recur, it goes on for whole cycles (cycles.py).
It announces the last step two steps ahead. The others read the file after each of their steps: rank 0 writes it before
it takes part in the next step, and they cannot complete that step without rank 0.

Several hosts. Rank 0 announces through the store of the process group instead (store.py). A look there takes a round
    trip, so the others look only if the end may be near by their own clock and count. Ranks that each train alone decide
    each for themselves.
Clocks. No time of one rank is compared with that of another. Steps are indices, and records have durations.
"""

import dataclasses
import json
import os
import statistics
import time

from howmany_hook import cycles
from howmany_hook.warmup import Warmup

FEWEST_TIMED = 5
AHEAD = 2
CHANGED = 3  # steps in a row
LONGEST = 5  # times the seconds: waits no longer for counts to settle, or for whole cycles
DETAIL, LEAST_DETAIL = 1.5, 6.0  # of the seconds; seconds: for the steps after the timed ones
FEWEST_DETAIL = 5  # of them, else none
LOOK = 0.1  # of the time, between two looks at the cycles
EXPECTED = 0.75  # of the seconds: rank 0 announces no end before


@dataclasses.dataclass(frozen=True)
class Steps:
    first: int  # timed, by index
    last: int  # timed
    stop: int  # the script ends after this one


def write_whole(path, value):
    write_text(path, json.dumps(value))


def write_text(path, text):
    """Readers see the old file or the new one."""
    with open(path + ".tmp", "w", encoding="utf-8") as file:
        file.write(text)
    os.replace(path + ".tmp", path)


class Agreement:
    def __init__(self, settings):
        self._settings = settings
        self._path = os.path.join(settings.out, "steps.json")
        self._alone = False  # on its host, without a group
        self._warmup = Warmup(settings.seconds)
        self._first = None  # index of the first timed step
        self._since = self._began = 0.0  # when it and the first that was chosen began
        self._seen, self._counts, self._alike = set(), None, 0  # counts of steps; those of the last ones, in a row
        self._durations = []  # of the timed steps
        self._recurs, self._next_look = False, 0.0
        self._steps = None
        self._store = self._entered = None  # of ranks on several hosts; when a rank that looks there ended its first step

    def share(self, store):
        """The ranks are on several hosts: announces in the GroupStore, not in the folder."""
        self._store = store

    def stay_alone(self):
        """This rank trains alone on its host, where it may have no folder: it decides for itself."""
        self._alone = True

    def after(self, index, step):
        """Returns the Steps once they are known, else None. Call after every step."""
        if self._steps is None:
            self._steps = self._decide(index, step) if self._decides() else self._look(index)
        return self._steps

    def _decides(self):
        """A rank that the script starts itself knows its rank only once its group is formed (place.py)."""
        return self._alone or self._settings.rank == 0

    def _look(self, index):
        if self._store:
            found = self._store.steps() if self._may_end(index) else None
            return found and Steps(**found)
        try:
            with open(self._path, encoding="utf-8") as file:
                return Steps(**json.load(file))
        except FileNotFoundError:
            return None

    def _may_end(self, index):
        now = time.perf_counter()
        self._entered = now if self._entered is None else self._entered
        return now - self._entered >= EXPECTED * self._settings.seconds or index >= self._settings.max_steps - AHEAD

    def passed(self, count):
        """Returns the Steps if all timed ones are among `count` steps, else None."""
        return self._steps if self._steps is not None and self._steps.last < count else None

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
        self._durations.append(step.seconds)
        late = now - self._began > LONGEST * max(1.0, self._settings.seconds)
        if self._has_changed(step.counts) and not late:
            self._durations = self._durations[-CHANGED:]
            self._first, self._since = index + 1 - CHANGED, now - sum(self._durations)
        timed = index + 1 - self._first
        if timed < FEWEST_TIMED - AHEAD:
            return None
        if timed < self._settings.max_steps - AHEAD and not self._is_over(now, late):
            return None
        last = index + AHEAD
        steps = Steps(self._first, last, last + self._more_steps())
        if self._store:
            self._store.announce_steps(dataclasses.asdict(steps))
        elif self._settings.rank == 0:
            write_whole(self._path, dataclasses.asdict(steps))
        return steps

    def _more_steps(self):
        """After the timed ones (detail.py)."""
        fits = int(max(DETAIL * self._settings.seconds, LEAST_DETAIL) / statistics.median(self._durations))
        return min(self._settings.detail, fits) if fits >= FEWEST_DETAIL else 0

    def _has_changed(self, counts):
        """True if steps in a row have counts that no others had."""
        self._alike = self._alike + 1 if counts == self._counts else 1
        self._counts = counts
        if self._alike < CHANGED or counts in self._seen:
            return False
        self._seen.add(counts)
        return len(self._seen) > 1

    def _is_over(self, now, late):
        if now - self._since < self._settings.seconds:
            return False
        if late:
            return True
        if now >= self._next_look:
            self._recurs = cycles.pending(self._durations)
            self._next_look = now + LOOK * (now - self._since)
        return not self._recurs
