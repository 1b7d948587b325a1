# SPDX-License-Identifier: Apache-2.0
"""Tests the order of turns of numbers of workers (torch_hook/turns.py) with a simulated clock and loader."""

import pathlib
import sys
import types
import unittest
from unittest import mock

import programs

SOURCE = pathlib.Path(__file__).resolve().parents[3] / "benches" / "script" / "torch_hook"
sys.path.insert(0, str(SOURCE))
# The real one needs PyTorch.
sys.modules["howmany_hook.loaders"] = types.SimpleNamespace(
    free_shared_memory=lambda: 1e12, whole_cycles=lambda steps, workers: True)
from howmany_hook import turns  # noqa: E402


class Switch:
    """Of a script without workers. Its epoch never ends."""

    def __init__(self):
        self.figures, self.order = {}, []

    def has_chosen(self):
        return True

    def numbers(self):
        return 0, 2

    def batches_per_epoch(self):
        return 0

    def batch_bytes(self):
        return 1

    def turn_to(self, turn):
        self.order.append(turn.workers)


class Order(programs.TestCase):
    def order(self, step, seconds):
        """Returns the numbers in their order. `step(workers)` returns the seconds of a step and of its wait."""
        settings = types.SimpleNamespace(out="", seconds=seconds, rank=0, world=1, local_world=1, loader=0, prefetch=2,
                                         workers=[0, 1, 2, 4, 8], most_workers=64, rounds=3)
        switch, self.now = Switch(), 0.0
        with mock.patch.object(turns.time, "perf_counter", lambda: self.now):
            all_turns = turns.Turns(settings, switch, None)
            for index in range(100_000):
                took, wait = step(switch.order[-1] if switch.order else 0)
                self.now += took
                if all_turns.after(index, types.SimpleNamespace(seconds=took, wait=wait)):
                    return switch.order
        self.fail("it does not end")

    def test_numbers_that_are_clearly_slower_have_one_turn(self):
        order = self.order(lambda workers: (0.1 / (workers + 1), 0.09 / (workers + 1)), seconds=60)
        self.assertEqual(order[:5], [0, 1, 2, 4, 8])
        self.assertEqual({w: order.count(w) for w in (0, 1, 2, 4, 8)}, {0: 3, 1: 1, 2: 1, 4: 1, 8: 3})

    def test_a_slow_number_that_did_not_wait_has_more_turns(self):
        order = self.order(lambda workers: (0.5 if workers == 1 else 0.1, 0.001), seconds=60)
        self.assertEqual(order.count(1), 3)

    def test_a_first_round_that_takes_too_long_ends_early(self):
        order = self.order(lambda workers: (2, 1), seconds=20)
        self.assertEqual(order, [0, 1])
        self.assertLess(self.now, 1.5 * 20)


if __name__ == "__main__":
    programs.main()
