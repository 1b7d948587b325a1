# SPDX-License-Identifier: Apache-2.0
# labels: process
# timeout: 300
"""Tests `howmany gpus` on a node with AMD GPUs, of which a folder has the files. The script writes the records
of the hook itself, so no PyTorch is needed."""

import json
import os
import pathlib
import subprocess
import sys
import unittest

import programs
from amd_tree import GIB, add_gpu, add_intel, add_kfd, lumi_node

SCRIPT = pathlib.Path(__file__).resolve().parent / "recorded_script.py"
LISTS = ("ROCR_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES")
SHOWS = f"""
import json, os, runpy, sys, time
seen = {{name: os.environ.get(name) for name in {LISTS}}}
open(os.environ["SEEN"], "a").write(json.dumps([int(sys.argv[1]), seen]) + "\\n")
runpy.run_path({str(SCRIPT)!r}, run_name="__main__")
time.sleep(0.5)  # the driver is polled while it trains
"""


class AmdScript(programs.TestCase):
    def setUp(self):
        super().setUp()
        self.root = self.folder / "root"
        self.root.mkdir()
        self.script = self.folder / "train.py"
        self.script.write_text(SHOWS)

    def gpus(self, *options, command=None, **environment):
        self.out = self.folder / "out"
        words = ("--", sys.executable, self.script, "{n}") if command is None else command
        return programs.run("howmany", "gpus", "--rounds", 1, "--out", self.out, *options, *words, timeout=200,
                            HOWMANY_ROOT=str(self.root), SEEN=str(self.folder / "seen"), RECORDED_DEVICE="cuda",
                            **environment)

    def seen(self, done):
        """The lists of visible GPUs that the script saw, by its number of ranks."""
        self.assertEqual(done.code, 0, done)
        lines = [json.loads(line) for line in (self.folder / "seen").read_text().splitlines()]
        return {ranks: tuple(seen[name] for name in LISTS) for ranks, seen in lines}

    def test_ranks_get_the_first_gpus(self):
        lumi_node(self.root)
        done = self.gpus("--device-count", "1,2,8")
        self.assertEqual(self.seen(done), {1: (None, "0", None), 2: (None, "0,1", None),
                                           8: (None, "0,1,2,3,4,5,6,7", None)})
        self.assertIn("8 GPUs: AMD Instinct MI250X, 68.7 GB each", done.err)
        summary = json.loads((self.out / "summary.json").read_text())
        self.assertEqual(summary["context"]["gpu"], "AMD Instinct MI250X")
        self.assertEqual(summary["context"]["howmany_machine"]["gpus"], ["AMD Instinct MI250X"] * 8)
        self.assertIn("HIP_VISIBLE_DEVICES", summary["context"]["script_environment"])
        metrics = summary["measurements"][0]["metrics"]
        self.assertAlmostEqual(metrics["gpu_utilisation_fraction"]["value"], 0.75)
        self.assertAlmostEqual(metrics["gpu_memory_bytes"]["value"], 12e9)

    def test_the_list_of_rocr_stays_and_that_of_hip_counts_within_it(self):
        lumi_node(self.root)
        done = self.gpus("--device-count", "1,2", ROCR_VISIBLE_DEVICES="7,5,3")
        self.assertEqual(self.seen(done), {1: ("7,5,3", "0", None), 2: ("7,5,3", "0,1", None)})
        self.assertIn("3 GPUs", done.err)

    def test_a_given_selection_is_kept(self):
        lumi_node(self.root)
        done = self.gpus("--devices", "cuda:1,cuda:0", "--device-count", "1,2", HIP_VISIBLE_DEVICES="4,6")
        self.assertEqual(self.seen(done), {1: (None, "6", None), 2: (None, "6,4", None)})
        self.assertIn("2 GPUs", done.err)

    def test_that_of_cuda_counts_if_hip_has_none(self):
        lumi_node(self.root)
        done = self.gpus("--device-count", "1", CUDA_VISIBLE_DEVICES="4,6")
        self.assertEqual(self.seen(done), {1: (None, "4", "4,6")})

    def test_runs_on_cores_see_no_gpu(self):
        lumi_node(self.root)
        done = self.gpus("--devices", "cpu:0")
        self.assertEqual(self.seen(done), {1: (None, "-1", None)})

    def test_a_gpu_that_is_not_here_is_refused(self):
        lumi_node(self.root)
        self.assert_refused(self.gpus("--devices", "cuda:8"), "cuda:8", "8 GPUs: AMD Instinct MI250X, 68.7 GB")
        self.assertFalse(self.out.exists())

    def test_processor_graphics_are_used_only_if_named(self):
        add_kfd(self.root)
        add_gpu(self.root, 1, 0xc1, gfx_target_version=110003, memory=GIB)
        add_gpu(self.root, 0, 0x03, gfx_target_version=110000, device_id=0x744c, product="Radeon RX 7900 XTX")
        done = self.gpus()
        self.assertEqual(self.seen(done), {1: (None, "0", None)})
        self.assertIn("1 GPU: Radeon RX 7900 XTX, 68.7 GB", done.err)

    def test_own_models_run_on_cores(self):
        lumi_node(self.root)
        model = ("--model", "mlp:sizes=16-32-4", "--time-budget", 5, "--device-count", 1)
        self.assert_refused(self.gpus(*model, "--devices", "cuda:0", command=()), "NVIDIA", "AMD Instinct MI250X",
                            "68.7 GB", "howmany gpus -- python train.py")
        done = self.gpus(*model, command=())
        self.assertEqual(done.code, 0, done)
        self.assertIn("NVIDIA", done.err)
        request = json.loads((self.out / "plan.json").read_text())["request"]
        self.assertEqual({device[:4] for device in request["devices"]}, {"cpu:"})

    def test_a_job_with_gpus_is_not_measured_on_cores(self):
        done = self.gpus("--model", "mlp", command=(), SLURM_GPUS_ON_NODE="8")
        self.assert_refused(done, "SLURM_GPUS_ON_NODE", "no driver")
        lumi_node(self.root)
        done = self.gpus("--model", "mlp", command=(), SLURM_GPUS_ON_NODE="8")
        self.assert_refused(done, "SLURM_GPUS_ON_NODE", "MI250X")

    def test_gpus_that_no_driver_lists_are_not_refused(self):
        """CUDA's driver is here without NVML, as in containers that get no more."""
        driver = self.folder / "driver"
        driver.mkdir()
        (driver / "libcuda.so.1").symlink_to((programs.BIN / "fake_driver" / "libnvidia-ml.so.1").resolve())
        done = self.gpus("--devices", "cuda:0", LD_LIBRARY_PATH=str(driver))
        self.assertEqual(self.seen(done), {1: (None, None, "0")})

    def test_intel_gpus_are_named_if_a_gpu_is_wanted(self):
        add_intel(self.root, "0000:3a:00.0", "xe")
        self.assert_refused(self.gpus("--devices", "cuda:0"), "Intel GPUs (driver xe) are not supported")
        self.seen(self.gpus("--devices", "cpu:0"))


class OwnGpu(programs.TestCase):
    """--try-ddp shows each rank its own GPU."""

    PYTHON = programs.python_that_runs("import torch")

    def shown(self, hip, local_rank, **lists):
        code = (f"import os, types, torch; torch.version.hip = {hip!r}; from howmany_hook import wrap; "
                f"wrap.show_own_gpu(types.SimpleNamespace(local_rank={local_rank}, local_world=2)); "
                f"print([os.environ.get(name) for name in {LISTS[1:]}])")
        environment = {**{k: v for k, v in os.environ.items() if k not in LISTS}, **lists}
        environment["PYTHONPATH"] = str(programs.BIN / "howmany_hook.zip")
        return subprocess.run([self.PYTHON, "-c", code], env=environment, text=True, capture_output=True,
                              check=True).stdout.strip()

    @unittest.skipUnless(PYTHON, "no Python with torch; set HOWMANY_TORCH_PYTHON")
    def test_by_the_variable_that_its_runtime_reads(self):
        self.assertEqual(self.shown("6.3", 1, HIP_VISIBLE_DEVICES="5,3"), "['3', None]")
        self.assertEqual(self.shown("6.3", 1, CUDA_VISIBLE_DEVICES="5,3"), "['3', '5,3']")
        self.assertEqual(self.shown("6.3", 1), "['1', None]")
        self.assertEqual(self.shown("6.3", 0, HIP_VISIBLE_DEVICES="-1"), "['-1', None]")
        self.assertEqual(self.shown(None, 1, CUDA_VISIBLE_DEVICES="5,3"), "[None, '3']")


if __name__ == "__main__":
    programs.main()
