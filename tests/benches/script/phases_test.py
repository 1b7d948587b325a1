# SPDX-License-Identifier: Apache-2.0
# labels: process torch
# timeout: 900
"""The phases of a step: by the clock of the device, and in the record of real scripts."""

import json
import os
import statistics
import subprocess

import programs
from torch_scripts import PYTHON, SCRIPTS, Measured, needs_torch, torchrun

HOOK = SCRIPTS.parents[3] / "benches/script/torch_hook"


@needs_torch
class Gpu(programs.TestCase):
    def test_events_are_read_after_the_steps_and_waits_that_the_gpu_does_not_see_are_none(self):
        done = subprocess.run([PYTHON, SCRIPTS / "phases_of_a_gpu.py"], capture_output=True, text=True, check=True,
                              env=os.environ | {"PYTHONPATH": str(HOOK)})
        found = json.loads(done.stdout.splitlines()[-1])
        self.assertEqual(found["synchronized"], 0)
        first, second = found["steps"]
        self.assertAlmostEqual(first["data"], 0.001)
        self.assertAlmostEqual(second["data"], 0.003)  # of 40 ms of the host, 37 were hidden by the first step
        self.assertAlmostEqual(found["seconds"][1], 0.040)
        for times in found["steps"]:
            self.assertAlmostEqual(times["backward"], 0.025)
            self.assertAlmostEqual(times["blocked"], 0.005)
            self.assertAlmostEqual(times["optimizer"], 0.002)
            self.assertAlmostEqual(times["outside"], 0)


@needs_torch
class Scripts(Measured):
    def why(self, name, *arguments, devices=2, **named):
        return self.measure([*torchrun(name), *arguments], devices=devices, **named)[1]["why"]

    def test_what_lies_between_steps_is_no_phase_of_them(self):
        why = self.why("phased.py", seconds=1)
        for rank in why["ranks"]:  # as phased.py sleeps
            self.assertGreaterEqual(rank["data_s"], 0.004)
            self.assertGreaterEqual(rank["outside_s"], 0.003)
            self.assertLess(rank["outside_s"] + rank["data_s"] + rank["epochs_s"], rank["step_s"])
        self.assertEqual((why["workers"], why["bucket_view"], why["own_hook"]), (0, True, False))

    def test_a_rank_that_the_others_wait_for_is_blocked_least(self):
        why = self.why("phased.py", "--slow-rank", "1", seconds=1)
        recorded = [one for one in why["steps"] if one["mode"] == "synced"]
        blocked = [statistics.median(one["ranks"][rank]["blocked_s"] for one in recorded) for rank in range(2)]
        self.assertGreater(blocked[0] - blocked[1], 0.010)  # of the 20 ms that it sleeps

    def test_starts_of_a_loader_are_those_of_epochs(self):
        why = self.why("phased.py", "--workers", "1", "--epoch", "4", seconds=2)
        self.assertEqual(why["workers"], 1)
        for rank in why["ranks"]:
            self.assertGreater(rank["epochs_s"], 0)

    @programs.nightly
    def test_a_hook_of_the_script_stays(self):
        why = self.why("phased.py", "--own-hook", seconds=0.5)
        self.assertTrue(why["own_hook"])
        self.assertEqual({one["mode"] for one in why["steps"]}, {"synced", "alone"})

    @programs.nightly
    def test_collectives_of_fsdp_block(self):
        why = self.why("fsdp.py", seconds=0.5)
        self.assertFalse(why["ddp"])
        self.assertEqual({one["mode"] for one in why["steps"]}, {"synced"})
        for rank in why["ranks"]:
            self.assertGreater(rank["blocked_s"], 0)

    def test_more_threads_than_cores_are_tried_with_as_many(self):
        why = self.why("phased.py", "--threads", "4", devices=1)
        self.assertEqual((why["cores"], why["threads"]), (1, 4))
        self.assertIn("narrow", {one["mode"] for one in why["steps"]})


if __name__ == "__main__":
    programs.main()
