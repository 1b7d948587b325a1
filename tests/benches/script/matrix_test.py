# SPDX-License-Identifier: Apache-2.0
# labels: process torch alone
# timeout: 1500
"""Measures real PyTorch scripts with script_bench: the steps, samples and times are those of the
scripts' own timer."""

import os
import unittest

import programs
from torch_scripts import GRADIENT_BYTES, PYTHON, SCRIPTS, Measured, has, needs_torch, torchrun


@needs_torch
class Scripts(Measured):
    def test_a_plain_loop(self):
        row, line = self.check("plain.py", 64)
        self.assertEqual(row["gradient_bytes"], GRADIENT_BYTES)
        self.assertEqual(line["parameters"]["threads"], "1")

    def test_gradient_accumulation_counts_all_micro_batches(self):
        self.check("accumulation.py", 4 * 64)

    def test_mixed_precision_with_a_scaler(self):
        self.check("scaler.py", 64, ticks=False)

    def test_two_optimizers_are_one_step(self):
        row, _ = self.check("two_optimizers.py", 64, ticks=False)  # a step ends after the first one
        self.assertEqual(row["gradient_bytes"], 2 * GRADIENT_BYTES)

    def test_optimizers_within_backward_are_one_step(self):
        row, line = self.check("optimizer_in_backward.py", 64, ticks=False)
        self.assertEqual(row["gradient_bytes"], GRADIENT_BYTES)
        self.assertNotIn("optimizer_fraction", row)
        self.assertIn("optimizer within backward", line["flags"])

    def test_worker_processes_and_a_validation_loader(self):
        self.check("workers.py", 64)

    def test_an_iterable_dataset_of_dictionaries(self):
        self.check("iterable.py", 64)

    def test_a_compiled_model(self):
        self.check("compiled.py", 64)

    def test_without_a_loader_the_inputs_show_the_batch(self):
        _, line = self.check("no_loader.py", 64, visible=False)
        self.assertIn("data wait not visible", line["flags"])

    def test_ddp(self):
        row, _ = self.check("ddp.py", 128, "ddp", "gloo", devices=2)
        self.assertGreater(row["ddp_communication_s"], 0)

    def test_ddp_is_put_around_a_plain_model(self):
        for script in ("plain.py", "no_loader.py"):
            row, line, _ = self.measure(torchrun(script), "--try-ddp", devices=2)
            self.assertEqual([line["parameters"][key] for key in ("global_batch", "mode", "backend")],
                             ["128", "ddp", "gloo"])
            self.samples_file.unlink()

    def test_fsdp(self):
        self.check("fsdp.py", 128, "fsdp", "gloo", devices=2)

    def test_tensor_parallelism(self):
        self.check("tensor_parallel.py", 128, "dtensor", "gloo", devices=2)

    @unittest.skipUnless(has("transformers") and has("accelerate"), "no transformers and accelerate")
    def test_hugging_face_trainer(self):
        self.check("trainer.py", 128)

    @unittest.skipUnless(has("lightning"), "no lightning")
    def test_lightning(self):
        self.check("lightning_module.py", 128, ticks=False)

    @unittest.skipUnless(has("accelerate"), "no accelerate")
    def test_accelerate(self):
        self.check("accelerated.py", 64)

    @unittest.skipUnless(has("deepspeed"), "no deepspeed")
    def test_deepspeed_steps_its_groups_together(self):
        for stage in ("1", "3"):
            _, line, _ = self.measure(torchrun("deepspeed_engine.py"), devices=2, STAGE=stage)
            self.assertEqual([line["parameters"][key] for key in ("global_batch", "mode", "backend")],
                             ["128", "group", "gloo"])
            self.samples_file.unlink()

    def test_samples_per_step_of_the_command_line_win(self):
        _, line, _ = self.measure([PYTHON, SCRIPTS / "plain.py"], "--samples-per-step", 5)
        self.assertEqual(line["parameters"]["global_batch"], "5")

    def test_each_rank_has_cores_of_its_own(self):
        if len(os.sched_getaffinity(0)) < 2:
            self.skipTest("one core")
        _, line, _ = self.measure(torchrun("ddp.py"), devices=2)
        self.assertNotIn("oversubscribed", line["flags"])

    def test_without_entry_points_the_hook_is_run_as_a_module(self):
        row, line, own = self.measure([PYTHON, "-m", "howmany_hook", SCRIPTS / "plain.py"],
                                      TORCH_DEVICE_BACKEND_AUTOLOAD="0")
        self.check_times(row, line, own)


if __name__ == "__main__":
    programs.main()
