# SPDX-License-Identifier: Apache-2.0
# labels: process torch alone
# timeout: 900
"""Tests that answer.why names the part into which a script with real ranks was slowed. The culprits cost several times
what a busy machine does. bed.py measures how well the seconds agree."""

import json
import os
import unittest

import bed
import hosts
import programs

SMALL = "--tokens 8"  # a step of a few ms
EXTRA = 0.1  # seconds of a step


@unittest.skipUnless(os.environ.get("HOWMANY_TORCH_PYTHON"), "set HOWMANY_TORCH_PYTHON to a Python with torch")
class Why(programs.TestCase):
    def two(self, command):
        """Returns the answer's count of two devices."""
        runs = bed.howmany(self.folder / "out", command, 1, "--time-budget", 10)
        return next(count for count in runs.counts if count["devices"] == 2)

    def check(self, part, options, rate=""):
        """A busy machine may make the answer refuse to name a cause, but another part is not larger."""
        count = self.two(bed.command_of(f"{SMALL} {options}", rate))
        self.assertEqual(count["parts"][0]["part"], part, count)
        self.assertAlmostEqual(sum(one["seconds"] for one in count["parts"]), count["lost_s"], places=6)
        return count

    def test_a_slow_loader(self):
        count = self.check("data", f"--batch 10 --slow-sample {EXTRA / 10}")
        self.assertGreater(count["parts"][0]["seconds"], EXTRA * 0.9)

    def test_a_slow_rank(self):
        count = self.check("slowest", f"--slow-rank {EXTRA}")
        self.assertEqual(count["slowest"]["rank"], 1)

    @programs.nightly
    def test_a_rank_slow_in_turn(self):
        self.check("slowest", f"--slow-turns {EXTRA}")

    def test_validation(self):
        self.check("outside", "--validate-every 5 --validate-batches 100")

    @programs.nightly
    def test_a_checkpoint_of_one_rank(self):
        self.check("outside", "--save-every 10 --frozen-mb 200")

    @programs.nightly
    def test_each_parameter_is_logged(self):
        self.check("outside", "--log-norms --tiny-parameters 2000")

    @programs.nightly
    def test_short_epochs(self):
        self.check("epochs", "--epoch-steps 5 --workers 2")

    @programs.nightly
    def test_many_parameters(self):
        self.check("machinery", "--tiny-parameters 10000")

    @programs.nightly
    def test_a_slow_link(self):
        try:
            hosts.Hosts().remove()
        except hosts.NotPermitted as problem:
            self.skipTest(f"no network namespaces here: {problem}")
        count = self.check("exchange", "--width 256", rate="100mbit")
        self.assertGreater(count["exchange"]["bytes"], 600_000)
        self.assertIn("bf16_gradients", [one["what"] for one in count["help"]])


if __name__ == "__main__":
    programs.main()
