# SPDX-License-Identifier: Apache-2.0
# labels: process torch alone
# timeout: 600
"""Tests `howmany workers --worker-type pytorch` with PyTorch's DataLoader. Needs a Python with torch:
$HOWMANY_TORCH_PYTHON or the active one."""

import json
import shutil
import subprocess
import tarfile
import unittest

import images
import programs

PYTHON = programs.python_that_runs("import torch")


@unittest.skipUnless(PYTHON, "no Python with torch; set HOWMANY_TORCH_PYTHON")
class TorchLoader(programs.TestCase):
    def workers(self, data, *arguments, python=PYTHON):
        self.out = self.folder / "out"
        return programs.run("howmany", "workers", "--out", self.out, "--worker-type", "pytorch", "--python", python,
                            "--data", data, "--batch-per-device", 4, "--image-size", 16, "--time-budget", 4, *arguments,
                            timeout=200)

    def answer(self, data, *arguments):
        done = self.workers(data, "--workers", "0,1", *arguments)
        self.assertEqual(done.code, 0, done)
        answer = json.loads((self.out / "summary.json").read_text())["answer"]["workers"]
        self.assertEqual([row["workers"] for row in answer["table"]], [0, 1])
        for row in answer["table"]:
            self.assertGreater(row["samples_per_s"], 0)
        self.assertEqual([answer["as"], answer["batch"]], ["pytorch", 4])
        self.assertEqual([file.name for file in self.out.glob(".*")], [])
        return answer

    def check_steps(self, answer, demand):
        """A step takes its time after the batch came, so waiting is not hidden in it."""
        for row in answer["table"]:
            self.assertLess(row["samples_per_s"], 1.05 * demand * (1 - row["stall_fraction"]), row)

    def arrays(self):
        data = self.folder / "arrays"
        data.mkdir()
        write = f"import numpy as n; n.save('{data}/x.npy', n.ones((64, 8), 'f4')); n.save('{data}/y.npy', n.arange(64))"
        subprocess.run([PYTHON, "-c", write], check=True)
        return data

    @unittest.skipUnless(programs.python_that_runs("import torch, PIL"), "no Pillow in that Python")
    def test_images_in_class_folders_and_shards(self):
        photos = images.write_folder(self.folder / "photos")
        (photos / "cat" / "._mac.png").write_bytes(b"no image")
        (self.folder / "shards" / "train").mkdir(parents=True)
        with tarfile.open(self.folder / "shards" / "train" / "0.tar", "w") as tar:
            for file in photos.rglob("*.png"):
                tar.add(file, file.name)
        for data in (photos, photos / "dog", self.folder / "shards"):
            answer = self.answer(data)
            self.assertIsNone(answer["demand"])
            self.assertIsNone(answer["table"][0]["stall_fraction"])
            shutil.rmtree(self.out)

    @unittest.skipUnless(programs.python_that_runs("import torch, PIL"), "no Pillow in that Python")
    def test_without_workers_loading_delays_training(self):
        answer = self.answer(images.write_folder(self.folder / "photos"), "--samples-per-second", 2000)
        self.assertGreater(answer["table"][0]["stall_fraction"], 0.1)
        self.check_steps(answer, 2000)

    @unittest.skipUnless(programs.python_that_runs("import torch, numpy"), "no numpy in that Python")
    def test_arrays_with_a_demand_on_two_ranks(self):
        answer = self.answer(self.arrays(), "--samples-per-second", 200, "--ranks", 2)
        self.assertEqual(answer["devices"], 2)
        self.assertEqual(answer["demand"]["samples_per_s_per_device"], 200)
        self.check_steps(answer, 2 * 200)

    @programs.nightly
    @unittest.skipUnless(programs.python_that_runs("import torch, numpy"), "no numpy in that Python")
    def test_workers_start_as_asked(self):
        self.answer(self.arrays(), "--start-method", "spawn")

    def test_a_folder_without_samples_is_named(self):
        empty = self.folder / "empty"
        empty.mkdir()
        self.assert_refused(self.workers(empty, "--quiet"), "no images in folders or tar shards", code=3)


class WithoutTorch(programs.TestCase):
    def test_a_python_without_torch_is_named(self):
        done = programs.run("howmany", "workers", "--out", self.folder / "out", "--worker-type", "pytorch", "--data",
                            self.folder, "--quiet", "--python", "python3", PYTHONPATH=self.hiding_torch())
        self.assert_refused(done, "has no PyTorch: give the Python of your training with --python", code=3)

    def hiding_torch(self):
        (self.folder / "torch.py").write_text("raise ImportError\n")
        return self.folder


if __name__ == "__main__":
    programs.main()
