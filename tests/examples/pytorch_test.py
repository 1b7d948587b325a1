# SPDX-License-Identifier: Apache-2.0
# labels: process torch alone
# timeout: 600
"""The scripts of examples/pytorch are measured as they are. Needs $HOWMANY_TORCH_PYTHON."""
import json
import os
import pathlib
import subprocess
import unittest

import programs

SCRIPTS = pathlib.Path(os.environ.get("HOWMANY_SOURCE", ".")) / "examples" / "pytorch"
PYTHON = os.environ.get("HOWMANY_TORCH_PYTHON")
HUGGING_FACE = PYTHON and subprocess.run([PYTHON, "-c", "import transformers, accelerate"], capture_output=True,
                                         check=False).returncode == 0


@unittest.skipUnless(PYTHON, "set HOWMANY_TORCH_PYTHON to a Python with torch")
class Examples(programs.TestCase):
    def parameters(self, script, *launcher):
        samples = self.folder / "samples.jsonl"
        done = programs.run("script_bench", "--case-budget", "0.5", "--samples-file", samples, "--", PYTHON, *launcher,
                            SCRIPTS / script, timeout=200)
        self.assertEqual(done.code, 0, done)
        found = json.loads(samples.read_text())["parameters"]
        return found["mode"], found["global_batch"]

    def test_plain(self):
        self.assertEqual(self.parameters("train_plain.py"), ("single", "64"))

    def test_ddp(self):
        launcher = ("-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "{n}")
        self.assertEqual(self.parameters("train_ddp.py", *launcher), ("ddp", "64"))

    @programs.nightly
    def test_fsdp_is_counted(self):
        done = programs.run("howmany", "memory", "--device-count", "1,4", "--json", "--quiet", "--", PYTHON,
                            SCRIPTS / "train_fsdp.py", timeout=400)
        self.assertEqual(done.code, 0, done)
        one, four = done.json()["rows"]
        self.assertEqual((one["evidence"], four["evidence"]), ("estimated", "rehearsed"))
        for part in ("parameter_bytes", "gradient_bytes", "optimizer_bytes"):
            self.assertAlmostEqual(four[part] / one[part], 0.25, delta=0.01)

    @unittest.skipUnless(HUGGING_FACE, "no transformers and accelerate")
    def test_hugging_face(self):
        self.assertEqual(self.parameters("train_hugging_face.py"), ("single", "8"))


if __name__ == "__main__":
    programs.main()
