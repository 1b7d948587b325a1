# SPDX-License-Identifier: Apache-2.0
"""The order in which the numbers of loader workers take turns, in rounds, within one training run.

Order. The first round ascends, the second descends, and so on. The script's own number takes part.
    Larger numbers are left out if training did not wait for data with two smaller ones, and if the
    first round would take too long. Later rounds leave out numbers that are clearly slower.
Turn. The first steps of a turn are not counted: their batches were made while its workers started.
    If training waits for data, a turn counts whole cycles: w workers hand over w batches at about
    the same time.
Alone. In the second round the loader is also timed without training, for the numbers with which
    training seldom waited in the first. With the others, training takes what the loader gives.
Ranks. Rank 0 decides. With several ranks it announces each turn in OUT/turns.json, as many steps
    ahead as agreement.py announces the last step.
"""

import dataclasses
import json
import os
import time

from howmany_hook import loaders
from howmany_hook.agreement import AHEAD, Steps, write_whole
from howmany_hook.warmup import Warmup

FEWEST_STEPS = 3  # counted in a turn
CLEARLY_SLOWER = 0.6  # of the best rate of the first round: no more turns
NOTICEABLE = 1.05  # factor of a rate
NO_WAIT = 0.002  # of a turn: more workers cannot help
MOST_SKIPPED = 0.5  # of an epoch
SHORTEST = 0.3  # seconds of a turn
LONGEST = 3.0  # times the seconds of a turn, for whole cycles
LATEST_END = 1.25  # times the seconds of all rounds
ALONE = 0.5  # of the seconds of a turn
SELDOM = 0.5  # of the time
SHARED_MEMORY = 0.9  # of the free bytes


@dataclasses.dataclass(frozen=True)
class Turn:
    index: int
    round: int
    workers: int
    prefetch: int  # batches that each worker makes ahead
    first: int  # step
    skipped: int  # first steps that do not count
    alone_seconds: float

    @property
    def ahead(self):
        return self.workers * self.prefetch


class Turns:
    """Takes the place of an Agreement."""

    def __init__(self, settings, switch, training_loader):
        """`training_loader` returns the key of the loader to change, or None."""
        self._settings, self._switch, self._training_loader = settings, switch, training_loader
        self._path = os.path.join(settings.out, "turns.json")
        self._warmup = Warmup(min(settings.seconds, 3.0))
        self._turns, self._steps = [], None
        self._own = None  # number of workers of the script, known to rank 0
        self._queue = []  # numbers still to come in this round
        self._numbers = []
        self._round = 0
        self._waits, self._rates = {}, {}  # by number, in the first round: share of the time; steps/s
        self._began = self._round_began = self._step_seconds = 0.0
        self._counted = _Counted()

    def after(self, index, step):
        """Returns the Steps once the end is known, else None. Call after every step."""
        if self._steps is None:
            if self._settings.rank == 0:
                self._decide(index, step.seconds, step.wait)
            else:
                self._read()
            self._apply(index + 1)
        return self._steps

    def so_far(self, count):
        return None

    def lines(self):
        """Of the record: one per turn."""
        self._switch.close()
        ends = [turn.first for turn in self._turns[1:]] + [self._steps.last + 1]
        for turn, end in zip(self._turns, ends):
            figures = self._switch.figures.get(turn.index)
            if figures is None:
                continue
            yield {
                "kind": "turn",
                "round": turn.round,
                "workers": turn.workers,
                "own": turn.workers == self._own,
                "prefetch": turn.prefetch,
                "first": turn.first + turn.skipped,
                "last": end - 1,
                "batch_bytes": self._switch.batch_bytes(),
            } | dataclasses.asdict(figures)

    def loader(self):
        """The key of the loader that is changed; before it is chosen, of the one that feeds training."""
        return self._switch.chosen_key() if self._switch.has_chosen() else self._training_loader()

    # Inside.

    def _apply(self, step):
        """Tells the switch of the turn that begins with this step."""
        for turn in self._turns:
            if turn.first == step:
                self._choose()
                self._switch.turn_to(turn)

    def _choose(self):
        """Once. Later, validation may fetch more batches than training."""
        if self._switch.has_chosen():
            return True
        number = self._settings.loader
        key = self._switch.key_of(number) if number else self._training_loader()
        return self._switch.choose(key)

    def _read(self):
        try:
            with open(self._path, encoding="utf-8") as file:
                announced = json.load(file)
        except FileNotFoundError:
            return
        self._turns = [Turn(**turn) for turn in announced["turns"]]
        self._end(announced["last"])

    def _end(self, last):
        if last is not None:
            first = self._turns[0].first if self._turns else last
            self._steps = Steps(first, last, last)

    def _decide(self, step, seconds, wait):
        if not self._turns:
            if self._warmup.ended(step, seconds):
                self._begin(step)
            return
        self._step_seconds = seconds
        turn = self._turns[-1]
        if step >= turn.first + turn.skipped:
            self._counted.add(seconds, wait)
        if self._is_over(turn):
            self._leave_out_larger(turn)
            self._next(step)

    def _is_over(self, turn):
        counted, goal = self._counted, self._seconds_of_turn()
        if counted.steps < FEWEST_STEPS or counted.seconds < goal:
            return False
        if not counted.has_waited() or counted.seconds > LONGEST * goal:
            return True
        return loaders.whole_cycles(counted.steps, turn.workers)

    def _begin(self, step):
        if not self._choose():
            return self._announce_end(step)
        self._own, self._prefetch = self._switch.numbers()
        self._prefetch = self._settings.prefetch or self._prefetch
        self._began = self._round_began = time.perf_counter()
        most = self._settings.most_workers // self._settings.local_world
        wanted = {w for w in self._settings.workers if w <= most}
        self._numbers = sorted(wanted | {self._own})
        self._queue = list(self._numbers)
        self._next(step)

    def _seconds_of_turn(self):
        turns = (self._settings.rounds + ALONE) * len(self._numbers)
        return max(SHORTEST, self._settings.seconds / turns)

    def _leave_out_larger(self, turn):
        """If this number and the one before did not wait."""
        waited = self._counted.has_waited()
        self._waits.setdefault(turn.workers, self._counted.wait / self._counted.seconds)
        self._rates.setdefault(turn.workers, self._counted.steps / self._counted.seconds)
        before, self._counted = self._counted, _Counted(waited)
        if turn.round > 0 or waited or before.waited:
            return
        self._queue = [w for w in self._queue if w == self._own]
        tried = [t.workers for t in self._turns]
        self._numbers = [w for w in self._numbers if w in tried or w in self._queue]

    def _next(self, step):
        while True:
            if not self._queue and not self._begin_round():
                return self._announce_end(step)
            workers = self._queue.pop(0)
            if self._fits(workers) and not self._is_late(workers):
                return self._announce(step, workers)
            self._numbers.remove(workers)

    def _begin_round(self):
        """False if that was the last round, or if another one would take too long."""
        now = time.perf_counter()
        next_end = now + (now - self._round_began) - self._began
        done = self._round + 1
        if done >= self._settings.rounds or next_end > LATEST_END * self._settings.seconds:
            return False
        self._round, self._round_began = done, now
        self._numbers = [w for w in self._numbers if w == self._own or self._can_win(w)]
        self._queue = self._numbers[:: -1 if done % 2 else 1]
        return True

    def _can_win(self, workers):
        """Also True if waiting for data does not explain why it is slower."""
        rate, best = self._rates[workers], max(self._rates.values())
        is_explained = best * (1 - self._waits[workers]) < NOTICEABLE * rate
        return rate > CLEARLY_SLOWER * best or not is_explained

    def _is_late(self, workers):
        """The first round too ends in time: it leaves out numbers, if two had a turn."""
        if self._round > 0 or len(self._turns) < 2 or workers == self._own:
            return False
        steps = self._skipped(workers) + FEWEST_STEPS
        end = time.perf_counter() - self._began + steps * self._step_seconds
        return end > LATEST_END * self._settings.seconds

    def _fits(self, workers):
        """Workers hand over batches in /dev/shm. Without room they are killed, and the script ends."""
        needed = (workers * self._prefetch + 2) * self._settings.local_world * self._switch.batch_bytes()
        return workers in (0, self._own) or needed < SHARED_MEMORY * loaders.free_shared_memory()

    def _skipped(self, workers):
        epoch = self._switch.batches_per_epoch()
        skipped = max(2, workers * self._prefetch)
        return min(skipped, max(1, int(MOST_SKIPPED * epoch))) if epoch else skipped

    def _ahead(self):
        return AHEAD if self._settings.world > 1 else 0

    def _announce(self, step, workers):
        skipped = self._skipped(workers)
        is_timed = self._round == 1 and self._waits.get(workers, 1.0) < SELDOM
        alone = ALONE * self._seconds_of_turn() if is_timed else 0.0
        first = step + 1 + self._ahead()
        self._turns.append(
            Turn(len(self._turns), self._round, workers, self._prefetch, first, skipped, alone)
        )
        self._write(None)

    def _announce_end(self, step):
        self._end(step + self._ahead())
        self._write(self._steps.last)

    def _write(self, last):
        if self._settings.world > 1:
            write_whole(self._path, {"turns": [dataclasses.asdict(t) for t in self._turns], "last": last})


class _Counted:
    """The steps of a turn that count, so far."""

    def __init__(self, waited_before=True):
        self.steps, self.seconds, self.wait = 0, 0.0, 0.0
        self.waited = waited_before  # in the turn before

    def has_waited(self):
        return self.wait > NO_WAIT * self.seconds

    def add(self, seconds, wait):
        self.steps += 1
        self.seconds += seconds
        self.wait += wait
