# SPDX-License-Identifier: Apache-2.0
# labels: process
# timeout: 180
"""Results that cannot be written: refused before measuring where that can be known, and one clear
line where it cannot."""

import ctypes
import json
import os
import pathlib
import subprocess
import time
import unittest

import programs

GPUS = ("howmany", "gpus", "--model", "simple_net", "--mode", "data_parallel", "--devices", "cpu:0",
        "--rounds", "1", "--time-budget", "2", "--quiet")
FULL = pathlib.Path("/dev/full")


def mount_small(folder, kilobytes):
    """A tiny file system on `folder`; false where that is not allowed."""
    libc = ctypes.CDLL(None, use_errno=True)
    return libc.mount(b"tmpfs", str(folder).encode(), b"tmpfs", 0,
                      f"size={kilobytes}k".encode()) == 0


def unmount(folder):
    ctypes.CDLL(None).umount2(str(folder).encode(), 2)


class Output(programs.TestCase):
    def test_out_that_is_a_file(self):
        file = self.folder / "file"
        file.write_text("mine")
        self.assert_refused(programs.run(*GPUS, "--out", file), str(file))
        self.assert_refused(programs.run(*GPUS, "--out", file / "below"), str(file))
        self.assertEqual(file.read_text(), "mine")

    def test_out_that_cannot_be_made(self):
        self.assert_refused(programs.run(*GPUS, "--out", "/proc/nowhere"), "/proc/nowhere",
                            "cannot make the folder")

    @unittest.skipIf(os.geteuid() == 0, "root may write anywhere")
    def test_out_without_permission(self):
        self.folder.chmod(0o500)
        self.addCleanup(self.folder.chmod, 0o700)
        self.assert_refused(programs.run(*GPUS, "--out", self.folder / "x"), "Permission denied",
                            "choose another --out")

    def test_full_disk_is_refused_before_measuring(self):
        if not mount_small(self.folder, 64):
            self.skipTest("this user may not mount a small file system")
        self.addCleanup(unmount, self.folder)
        self.assert_refused(programs.run(*GPUS, "--out", self.folder / "x"), "disk full",
                            "choose another --out")

    def test_results_are_all_there_when_they_can_be_written(self):
        result = programs.run(*GPUS, "--out", self.folder / "x")
        self.assertEqual(result.code, 0, result)
        self.assertEqual(sorted(path.name for path in (self.folder / "x").iterdir()),
                         ["plan.json", "report.html", "speedup.json", "speedup.samples.jsonl", "summary.csv",
                          "summary.json"])

    @unittest.skipUnless(FULL.exists(), "no /dev/full here")
    def test_samples_on_a_full_disk_fail_the_measurement(self):
        result = programs.run("speedup_bench", "--model", "simple_net", "--mode", "single",
                              "--max-iterations", "5", "--samples-file", FULL)
        self.assertEqual(result.code, 3, result)
        self.assertIn("/dev/full", result.out + result.err)

    @unittest.skipUnless(FULL.exists(), "no /dev/full here")
    def test_stdout_on_a_full_disk_is_told(self):
        (self.folder / "x").mkdir()
        for command in (("howmany-train", "--epochs", "1"), ("howmany-devices",),
                        ("howmany-devices", "--json"), (*GPUS, "--json", "--out",
                                                        self.folder / "x")):
            with self.subTest(command=command[0]), open(FULL, "w") as full:
                done = subprocess.run([programs.BIN / command[0], *command[1:]], stdout=full,
                                      stderr=subprocess.PIPE, text=True, timeout=60)
                self.assertEqual(done.returncode, 3, done.stderr)
                self.assertIn("cannot write to", done.stderr)

    def test_disk_that_fills_up_keeps_what_was_measured(self):
        if not mount_small(self.folder, 20_000):
            self.skipTest("this user may not mount a small file system")
        self.addCleanup(unmount, self.folder)
        out = self.folder / "x"
        running = subprocess.Popen(
            [programs.BIN / GPUS[0], *GPUS[1:-5], "--rounds", "1000", "--quiet", "--out", out],
            stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True)
        self.addCleanup(running.stderr.close)
        self.addCleanup(running.wait)
        self.addCleanup(running.kill)
        while not (out / "summary.json").exists() and running.poll() is None:
            time.sleep(0.05)
        with open(self.folder / "filler", "wb", buffering=0) as filler:
            with self.assertRaises(OSError):
                while True:
                    filler.write(bytes(4096))
        told = running.communicate(timeout=60)[1]
        self.assertEqual(running.returncode, 3, told)
        self.assertIn("No space left", told)
        self.assertTrue(json.loads((out / "summary.json").read_text())["measurements"])
        self.assertEqual([path.name for path in out.iterdir() if path.suffix == ".tmp"], [])


programs.main()
