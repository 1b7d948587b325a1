# SPDX-License-Identifier: Apache-2.0
# labels: process
"""The cycles of training loops with known times (howmany_hook/cycles.py), and when the hook has seen enough of them."""

import random
import sys
import types
import unittest
from unittest import mock

import programs

sys.path.insert(0, str(programs.BIN / "howmany_hook.zip"))

from howmany_hook import agreement, cycles  # noqa: E402

SEEDS = range(1000)
STEP = 0.03


def loop(count, *extras, noise=None, phase=0):
    """Steps of STEP. `extras`: (period in steps, seconds)."""
    seconds = []
    for index in range(phase, phase + count):
        one = STEP * (noise.lognormvariate(0, 0.05) if noise else 1)
        seconds.append(one + sum(extra for period, extra in extras if index % period == 0))
    return seconds


def pace(seconds):
    """The mean step over whole cycles, as the record has it."""
    found = cycles.find(seconds)
    if not found.windows or not found.count():
        return None
    inside = [one for a, b in found.windows for one in seconds[a : b + 1]]
    return sum(inside) / len(inside)


class Cycles(unittest.TestCase):
    def test_rollouts_count_at_any_phase(self):
        for seed in SEEDS:
            source = random.Random(seed)
            period, extra = source.randint(3, 20), source.uniform(0.5, 10) * STEP
            least = 3 if extra > cycles.WORK * STEP else 5  # so that there are MANY whole cycles at any phase
            seconds = loop(period * source.randint(least, 9), (period, extra), noise=source, phase=source.randint(0, 99))
            self.assertAlmostEqual(pace(seconds) / (STEP + extra / period), 1, delta=0.04, msg=seed)

    def test_windows_begin_and_end_at_the_same_phase(self):
        found = cycles.find(loop(35, (10, 0.5), phase=4))
        self.assertEqual(found.windows, [(7, 16), (17, 26)])

    def test_the_longest_work_that_recurs_decides(self):
        seconds = loop(400, (8, 0.2), (100, 3.0), phase=50)
        self.assertAlmostEqual(pace(seconds), STEP + 0.2 / 8 + 3.0 / 100, delta=0.05 * STEP)

    def test_steps_alone_are_represented_by_the_median(self):
        for seed in SEEDS:
            source = random.Random(seed)
            seconds = loop(source.randint(5, 200), noise=source)
            self.assertIsNone(pace(seconds), seed)
            self.assertFalse(cycles.pending(seconds), seed)

    def test_a_disturbance_is_no_cycle(self):
        for seed in SEEDS:
            source = random.Random(seed)
            seconds = loop(100, noise=source)
            start, length = source.randrange(80), source.randint(1, 20)
            for index in range(start, start + length):
                seconds[index] *= source.uniform(1.5, 3)
            seconds[start] += 1
            self.assertIsNone(pace(seconds), seed)
            self.assertGreater(cycles.find(seconds).alone, 0.1)

    def test_a_disturbance_is_left_out_of_the_cycles(self):
        seconds = loop(80, (8, 0.1))
        seconds[30] += 5
        self.assertAlmostEqual(pace(seconds), STEP + 0.1 / 8)

    def test_small_disturbances_at_any_time_are_no_cycles(self):
        wrong = 0
        for seed in SEEDS:
            source = random.Random(seed)
            seconds = loop(100, noise=source)
            for index in range(100):
                seconds[index] *= 1.6 if source.random() < 0.05 else 1
            found = pace(seconds)
            wrong += found is not None
            self.assertAlmostEqual((found or STEP) / STEP, 1, delta=0.15, msg=seed)
        self.assertLess(wrong / len(SEEDS), 0.1)

    def test_two_disturbances_of_a_step_or_two_are_no_cycles(self):
        seconds = [0.05] * 60  # as seen on a virtual machine
        for index, one in {10: 0.095, 11: 0.093, 14: 0.13, 37: 0.073, 38: 0.103}.items():
            seconds[index] = one
        self.assertFalse(cycles.find(seconds).count())
        self.assertFalse(cycles.pending(seconds))

    def test_two_optimizers_that_alternate(self):
        seconds = loop(41, (2, STEP))
        self.assertAlmostEqual(pace(seconds) or sorted(seconds)[20], 1.5 * STEP)

    def test_few_steps(self):
        for count in range(6):
            self.assertIsNone(pace([STEP] * count))


class Clock:
    now = 0.0

    def perf_counter(self):
        return self.now


class Agreement(programs.TestCase):
    def stop(self, seconds, counts=lambda index: (1, 64, 0, 1), budget=1.0):
        """Returns the Steps, for steps that last as long."""
        settings = types.SimpleNamespace(out=str(self.folder), seconds=budget, rank=0, max_steps=10000, detail=0)
        clock = Clock()
        with mock.patch.object(agreement, "time", clock):
            agreed = agreement.Agreement(settings)
            for index, one in enumerate(seconds):
                clock.now += one
                steps = agreed.after(index, types.SimpleNamespace(seconds=one, counts=counts(index)))
                if steps:
                    return steps
        return None

    def test_steps_alone_end_with_the_time(self):
        steps = self.stop(loop(1000))
        self.assertAlmostEqual((steps.last - steps.first) * STEP, 1.0, delta=0.2)

    def test_two_whole_cycles_are_awaited(self):
        for seed in SEEDS:
            source = random.Random(seed)
            seconds = loop(1000, (25, 0.5), noise=source, phase=source.randrange(25))  # a cycle lasts 1.25 s
            steps = self.stop(seconds)
            found = cycles.find(seconds[steps.first : steps.last + 1])
            if found.windows or found.alone:  # else no step was long
                self.assertGreaterEqual(len(found.windows), 2, seed)

    def test_work_of_some_steps_is_timed_until_it_counts(self):
        for seed in SEEDS:
            source = random.Random(seed)
            extra = 2.5 * STEP  # less than surely is work: three cycles show it
            seconds = loop(1000, (20, extra), noise=source, phase=1 + source.randrange(19))
            steps = self.stop(seconds, budget=1.6)  # two such events at least
            found = cycles.find(seconds[steps.first : steps.last + 1])
            self.assertTrue(found.count(), seed)

    def test_a_lone_disturbance_is_not_awaited_for_long(self):
        seconds = loop(10000)
        seconds[40] += 0.1
        steps = self.stop(seconds)
        self.assertLess(steps.last * STEP, 5)
        seconds[40] += 10
        self.assertLess(self.stop(seconds).last * STEP, 12)

    def test_steps_are_timed_anew_while_their_samples_grow(self):
        for place in range(4):
            def counts(index, place=place):
                grown = [1, 64, 64, 1]
                grown[place] *= min(4, 1 + index // 25)
                return tuple(grown)
            steps = self.stop(loop(1000), counts)
            self.assertGreaterEqual(steps.first, 75)
            self.assertGreater((steps.last - steps.first) * STEP, 0.9)

    def test_ranks_that_a_script_starts_learn_their_rank_late_and_follow_rank_0(self):
        settings = [types.SimpleNamespace(out=str(self.folder), seconds=1.0, rank=0, max_steps=10000, detail=0) for _ in range(2)]
        with mock.patch.object(agreement, "time", Clock()) as clock:
            ranks = [agreement.Agreement(one) for one in settings]
            settings[1].rank = 1
            found = {}
            for index in range(200):
                clock.now += STEP
                for rank, seconds in enumerate((STEP, 9 * STEP)):  # they do not warm up alike
                    steps = ranks[rank].after(index, types.SimpleNamespace(seconds=seconds * (1 + index % (1 + rank)), counts=()))
                    if steps:
                        found[rank] = steps
        self.assertEqual(found[0], found[1])

    def test_the_last_batch_of_an_epoch_is_no_change(self):
        for length in (2, 3, 4, 5, 9):
            steps = self.stop(loop(1000), lambda index, length=length: (1, 64 if index % length else 16, 0, 1))
            self.assertLess(steps.last * STEP, 2.5)


if __name__ == "__main__":
    programs.main()
