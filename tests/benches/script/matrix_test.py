# SPDX-License-Identifier: Apache-2.0
# labels: process torch alone
# timeout: 900
"""Measures real PyTorch scripts with script_bench: the times of their steps are those of the scripts' own
timer. The test kinds has those whose times are not compared."""

import unittest

import programs
from torch_scripts import GRADIENT_BYTES, PYTHON, SCRIPTS, Measured, has, needs_torch


@needs_torch
class Scripts(Measured):
    def test_a_plain_loop(self):
        row, line = self.check("plain.py", 64)
        self.assertEqual(row["gradient_bytes"], GRADIENT_BYTES)
        self.assertEqual(line["parameters"]["threads"], "1")

    @programs.nightly
    def test_gradient_accumulation_counts_all_micro_batches(self):
        self.check("accumulation.py", 4 * 64)

    @programs.nightly
    def test_optimizers_within_backward_are_one_step(self):
        row, line = self.check("optimizer_in_backward.py", 64, ticks=False)
        self.assertEqual(row["gradient_bytes"], GRADIENT_BYTES)
        self.assertNotIn("optimizer_fraction", row)
        self.assertIn("optimizer within backward", line["flags"])

    def test_worker_processes_and_a_validation_loader(self):
        self.check("workers.py", 64)

    @programs.nightly
    def test_an_iterable_dataset_of_dictionaries(self):
        self.check("iterable.py", 64)

    @programs.nightly
    def test_a_compiled_model(self):
        self.check("compiled.py", 64)

    @programs.nightly
    def test_without_a_loader_the_inputs_show_the_batch(self):
        _, line = self.check("no_loader.py", 64, visible=False)
        self.assertIn("data wait not visible", line["flags"])

    @unittest.skipUnless(has("transformers") and has("accelerate"), "no transformers and accelerate")
    def test_hugging_face_trainer(self):
        self.check("trainer.py", 128)

    @programs.nightly
    @unittest.skipUnless(has("accelerate"), "no accelerate")
    def test_accelerate(self):
        self.check("accelerated.py", 64)

    @programs.nightly
    def test_without_entry_points_the_hook_is_run_as_a_module(self):
        row, line, own = self.measure([PYTHON, "-m", "howmany_hook", SCRIPTS / "plain.py"],
                                      TORCH_DEVICE_BACKEND_AUTOLOAD="0")
        self.check_times(row, line, own)


if __name__ == "__main__":
    programs.main()
