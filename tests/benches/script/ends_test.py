# SPDX-License-Identifier: Apache-2.0
# labels: process torch
# timeout: 1500
"""PyTorch scripts that end too soon, fail, or cannot be ended by SystemExit."""

import os
import signal
import subprocess
import time

import processes
import programs
from torch_scripts import PYTHON, SCRIPTS, Measured, needs_torch, torchrun


@needs_torch
class Ends(Measured):
    @programs.nightly
    def test_a_script_that_swallows_systemexit_is_ended(self):
        self.measure([PYTHON, SCRIPTS / "stubborn.py"])

    def test_a_script_that_ends_too_soon(self):
        self.assertIn("after 3 steps", self.error([PYTHON, SCRIPTS / "short.py"]))

    @programs.nightly
    def test_ranks_without_a_process_group(self):
        self.assertIn("group of 1 rank", self.error(torchrun("plain.py"), devices=2))

    @programs.nightly
    def test_a_number_of_ranks_in_the_script(self):
        command = [word if word != "{n}" else "2" for word in torchrun("ddp.py")]
        self.assertIn("group of 2 ranks", self.error(command))

    @programs.nightly
    def test_a_script_without_training(self):
        script = self.folder / "none.py"
        script.write_text("import torch\n")
        self.assertIn("before a training step", self.error([PYTHON, script]))

    def test_a_script_that_fails_is_quoted(self):
        script = self.folder / "bad.py"
        script.write_text("import torch\nraise ValueError('the data is missing')\n")
        self.assertIn("the data is missing", self.error([PYTHON, script]))

    def test_an_assertion_without_a_text_is_shown(self):
        script = self.folder / "asserts.py"
        script.write_text("import torch\nassert torch is None\n")
        self.assertIn("AssertionError: asserts.py, line 2: assert torch is None", self.error([PYTHON, script]))

    def reason(self, name, ranks):
        command = [*torchrun("variants.py"), name] if ranks > 1 else [PYTHON, SCRIPTS / "variants.py", name]
        return self.error(command, devices=ranks, seconds=60)

    def test_the_reason_is_that_of_the_script(self):
        for ranks in (1, 2):
            self.assertIn("exited with 1: No checkpoint found", self.reason("exits_with_a_text", ranks))
            self.assertIn("variants.py: error: the following arguments are required: --lr",
                          self.reason("needs_an_argument", ranks))
            self.assertIn("SIGKILL" if ranks > 1 else "signal 9 (Killed)", self.reason("is_killed", ranks))
        self.assertIn("ended with code 0 before a training step of PyTorch was seen. Its last line: No GPU found",
                      self.reason("ends_before_training", 1))

    def test_the_reason_is_that_of_the_rank_that_failed_first(self):
        reason = self.reason("fails_in_rank_1", 2)
        self.assertIn("ValueError: bad shard", reason)
        self.assertNotIn("more data", reason)

    def test_a_failing_hook_never_reaches_the_script(self):
        script = self.folder / "odd.py"
        script.write_text(
            "import pathlib, sys, torch\nsys.path.insert(0, %r)\n"
            "torch.get_num_threads = lambda: 1 / 0\nimport own_timer, short\n"
            "pathlib.Path(%r).write_text('done')\n" % (str(SCRIPTS), str(self.folder / "done")))
        (self.folder / "out").mkdir()
        subprocess.run([PYTHON, script], check=True, timeout=200, env=os.environ | {
            "HOWMANY_SCRIPT_OUT": str(self.folder / "out"), "PYTHONPATH": str(programs.BIN / "howmany_hook.zip")})
        self.assertEqual((self.folder / "done").read_text(), "done")
        self.assertIn("ZeroDivisionError", next((self.folder / "out").glob("rank0.*")).read_text())

    @programs.nightly
    def test_a_script_whose_hook_failed_is_ended(self):
        script = self.folder / "odd.py"
        script.write_text("import time, torch\ntorch.get_num_threads = lambda: 1 / 0\n"
                          "model = torch.nn.Linear(2, 2)\noptimizer = torch.optim.SGD(model.parameters())\n"
                          "while True:\n    model(torch.ones(1, 2)).sum().backward()\n    optimizer.step()\n"
                          "    time.sleep(0.01)\n")
        start = time.monotonic()
        self.assertIn("ZeroDivisionError", self.error([PYTHON, script]))
        self.assertLess(time.monotonic() - start, 150)  # of 200 s until it counts as hung

    def test_an_interrupt_ends_all_ranks(self):
        process = subprocess.Popen(
            [programs.BIN / "script_bench", "--devices", "cpu:0,cpu:1", "--case-budget", "60", "--",
             *torchrun("ddp.py")], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.addCleanup(process.kill)
        end = time.monotonic() + 120
        while len(ranks := processes.ranks_below(process.pid)) < 2 and time.monotonic() < end:
            time.sleep(0.1)
        self.assertEqual(len(ranks), 2)
        process.send_signal(signal.SIGINT)
        self.assertEqual(process.wait(timeout=60), 130)
        self.assertEqual([pid for pid in ranks.values() if processes.alive(pid)], [])


if __name__ == "__main__":
    programs.main()
