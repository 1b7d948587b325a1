# SPDX-License-Identifier: Apache-2.0
# labels: process torch
# timeout: 900
"""Measures real PyTorch scripts of many kinds with script_bench: the steps and samples are those of the
scripts. The test matrix compares times."""

import os
import unittest

import programs
from torch_scripts import GRADIENT_BYTES, PYTHON, SCRIPTS, Measured, has, needs_torch, torchrun


@needs_torch
class Kinds(Measured):
    @programs.nightly
    def test_mixed_precision_with_a_scaler(self):
        self.check("scaler.py", 64, ticks=False)

    @programs.nightly
    def test_two_optimizers_are_one_step(self):
        row, _ = self.check("two_optimizers.py", 64, ticks=False)  # a step ends after the first one
        self.assertEqual(row["gradient_bytes"], 2 * GRADIENT_BYTES)

    def test_ddp(self):
        row, line = self.check("ddp.py", 128, "ddp", "gloo", devices=2)
        why = line["why"]
        self.assertTrue(why["ddp"])
        self.assertEqual({one["mode"] for one in why["steps"]}, {"synced", "noop", "alone"})
        for step in why["steps"]:
            self.assertEqual(len(step["ranks"]), 2)
            for rank in step["ranks"] if step["mode"] == "synced" else []:
                self.assertEqual(sum(size for size, _, _ in rank["buckets"]), row["gradient_bytes"])
                self.assertGreater(rank["blocked_s"], 0)
        if len(os.sched_getaffinity(0)) > 1:  # each rank has cores of its own
            self.assertNotIn("oversubscribed", line["flags"])

    def test_the_use_of_gpus_is_told_by_the_driver(self):
        command = [PYTHON, SCRIPTS / "plain.py"]
        row, _, _ = self.measure(command, device="cuda", LD_LIBRARY_PATH=str(programs.BIN / "fake_driver"))
        self.assertEqual([row[key] for key in ("gpu_utilisation_fraction", "gpu_memory_bytes")], [0.42, 1e9])
        self.samples_file.unlink()
        row, _, _ = self.measure(command)  # on a CPU
        self.assertNotIn("gpu_utilisation_fraction", row)

    def test_ddp_is_put_around_a_plain_model(self):
        for script in ("plain.py", "no_loader.py") if programs.NIGHTLY else ("plain.py",):
            row, line, _ = self.measure(torchrun(script), "--try-ddp", devices=2)
            self.assertEqual([line["parameters"][key] for key in ("global_batch", "mode", "backend")],
                             ["128", "ddp", "gloo"])
            self.samples_file.unlink()

    def test_fsdp(self):
        self.check("fsdp.py", 128, "fsdp", "gloo", devices=2)

    @programs.nightly
    def test_tensor_parallelism(self):
        self.check("tensor_parallel.py", 128, "dtensor", "gloo", devices=2)

    @unittest.skipUnless(has("lightning"), "no lightning")
    def test_lightning(self):
        self.check("lightning_module.py", 128, ticks=False)

    @programs.nightly
    @unittest.skipUnless(has("deepspeed"), "no deepspeed")
    def test_deepspeed_steps_its_groups_together(self):
        for stage in ("1", "3"):
            _, line, _ = self.measure(torchrun("deepspeed_engine.py"), devices=2, STAGE=stage)
            self.assertEqual([line["parameters"][key] for key in ("global_batch", "mode", "backend")],
                             ["128", "group", "gloo"])
            self.samples_file.unlink()

    @programs.nightly
    def test_samples_per_step_of_the_command_line_win(self):
        _, line, _ = self.measure([PYTHON, SCRIPTS / "plain.py"], "--samples-per-step", 5)
        self.assertEqual(line["parameters"]["global_batch"], "5")


if __name__ == "__main__":
    programs.main()
