# SPDX-License-Identifier: Apache-2.0
# labels: process torch alone
# timeout: 600
"""Tests `howmany gpus -- python SCRIPT` with a real PyTorch: $HOWMANY_TORCH_PYTHON."""

import json
import os
import pathlib
import shutil
import unittest

import programs

PYTHON = os.environ.get("HOWMANY_TORCH_PYTHON")
SCRIPTS = pathlib.Path(__file__).resolve().parents[2] / "benches" / "script" / "scripts"


@unittest.skipUnless(PYTHON, "set HOWMANY_TORCH_PYTHON to a Python with torch")
class TorchScript(programs.TestCase):
    def answer(self, script, *options):
        done = programs.run("howmany", "gpus", "--devices", "cpu:0,cpu:1", "--oversubscribe", "--rounds", 1,
                            "--time-budget", 30, "--out", self.folder / "out", *options, "--", PYTHON,
                            SCRIPTS / script, timeout=400)
        self.assertEqual(done.code, 0, done)
        return json.loads((self.folder / "out" / "summary.json").read_text())["answer"]["gpus"]

    def rows(self, answer):
        return [(row["devices"], row["mode"], row["backend"]) for row in answer["table"]]

    @programs.nightly
    def test_a_script_with_a_process_group_is_started_by_torchrun(self):
        self.assertEqual(self.rows(self.answer("ddp.py")), [(1, "single", "local"), (2, "ddp", "gloo")])

    def test_a_script_without_one_uses_one_device(self):
        answer = self.answer("plain.py")
        self.assertEqual([answer["recommended"], answer["reason"]], [1, "uses_one_device"])
        self.assertEqual(self.rows(answer), [(1, "single", "local")])

    @programs.nightly
    def test_a_script_that_fails_is_a_failed_measurement(self):
        script = self.folder / "bad.py"
        script.write_text("import torch\nraise ValueError('the data is missing')\n")
        done = programs.run("howmany", "gpus", "--devices", "cpu:0", "--out", self.folder / "out", "--quiet", "--",
                            PYTHON, script, timeout=200)
        self.assert_refused(done, "the data is missing", code=3)

    def test_it_is_rehearsed_as_one_of_many_ranks(self):
        cluster = self.folder / "cluster.toml"
        cluster.write_text('name = "ours"\ndevice = "cpu"\ndevices_per_node = 8\nsource = "a test"\n'
                           "[node]\nbusbw_gb_per_s = 1\nlatency_us = 100\n")
        scripts = [("ddp.py",), ("fsdp.py",), ("plain.py", "--try-ddp")]
        for script, *options in scripts if programs.NIGHTLY else scripts[:1]:
            self.answer(script, "--up-to", 8, "--cluster", cluster, *options)
            beyond = json.loads((self.folder / "out" / "summary.json").read_text())["answer"]["beyond"]
            self.assertEqual([[row["devices"] for row in beyond[kind]] for kind in ("measured", "rehearsed", "predicted")],
                             [[1, 2], [8], [4]])
            shutil.rmtree(self.folder / "out")

    @programs.nightly
    def test_its_model_can_be_put_into_ddp(self):
        answer = self.answer("plain.py", "--try-ddp")
        self.assertEqual(self.rows(answer), [(1, "single", "local"), (2, "ddp", "gloo")])
        rows = json.loads((self.folder / "out" / "summary.json").read_text())["measurements"]
        self.assertEqual([row["metrics"].get("wrapped_fraction", {}).get("value") for row in rows], [None, 1])


if __name__ == "__main__":
    programs.main()
