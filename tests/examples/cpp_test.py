# SPDX-License-Identifier: Apache-2.0
# labels: process
# timeout: 300
"""The programs of examples/cpp. PyTorch is compared if HOWMANY_TORCH_PYTHON or the active Python has it."""
import os
import pathlib
import re
import subprocess
import unittest

import programs

COMMS = {part["name"] for part in programs.run("howmany-devices", "--json").json()["backends"]["comms"] if part["usable"]}
NAMES = sorted(path.stem for path in (pathlib.Path(os.environ["HOWMANY_SOURCE"]) / "examples/cpp").glob("*.cpp"))


TORCH = programs.python_that_runs("import torch")
needs_torch = unittest.skipUnless(TORCH, "no Python with torch; set HOWMANY_TORCH_PYTHON")
needs_gloo = unittest.skipUnless("gloo" in COMMS, "gloo cannot be used here")


def output(name, *arguments, **environment):
    result = programs.run(f"examples/{name}", *arguments, timeout=120, **environment)
    assert result.code == 0, result
    return result.out


def losses(text):
    return [float(loss) for loss in re.findall(r"Loss: ([0-9.]+)", text)]


class Examples(programs.TestCase):
    def assert_learns(self, text, count):
        self.assertEqual(len(losses(text)), count, text)
        self.assertLess(losses(text)[-1], losses(text)[0], text)

    def test_simple_net_has_the_same_losses_on_any_devices(self):
        want = output("simple_net")
        self.assert_learns(want, 2)
        self.assertRegex(want, r"^Epoch 1, Loss: \d\.\d{4}\nEpoch 2, Loss: \d\.\d{4}\n$")
        for devices in ("cpu:0-1", "cpu:0-2"):
            self.assertEqual(output("simple_net", devices), want)

    @needs_torch
    def test_simple_net_has_the_losses_of_pytorch(self):
        script = pathlib.Path(__file__).with_name("simple_net_in_pytorch.py")
        done = subprocess.run([TORCH, script], capture_output=True, text=True, timeout=200, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        want, got = losses(done.stdout), losses(output("simple_net"))
        self.assertEqual(len(want), 2)
        for a, b in zip(got, want, strict=True):
            self.assertAlmostEqual(a, b, delta=1.01e-4)  # the last printed digit

    def test_a_block_in_data_parallel_trains_as_the_plain_one(self):
        want, got = output("data_parallel_block", "cpu:0"), output("data_parallel_block", "cpu:0-2")
        self.assert_learns(want, 5)
        for a, b in zip(losses(got), losses(want), strict=True):
            self.assertAlmostEqual(a, b, delta=2e-6)
        self.assertIn("data_parallel(linear(20, 20), 3 devices)", got)
        self.assertNotIn("data_parallel", want)

    def test_the_composed_function_is_the_plain_module(self):
        for devices, count in (("", 0), ("cpu:0", 1), ("cpu:0-1", 2), ("cpu:0-7", 8)):
            found = re.fullmatch(r"(\d+) devices, output \[7,20\], difference (\S+)\n",
                                 output("data_parallel_function", devices))
            self.assertEqual(int(found[1]), count)
            self.assertLess(float(found[2]), 1e-6)

    def test_a_model_is_on_the_cpu_and_another_device(self):
        text = output("cpu_and_gpu")
        self.assertIn("0.weight on cpu:0", text)
        self.assertRegex(text, r"1\.1\.weight on (cuda:0|cpu:1)")
        self.assert_learns(text, 5)

    def test_model_parallel_has_the_losses_of_one_device(self):
        want, got = output("model_parallel", "cpu:0"), output("model_parallel", "cpu:0-1")
        self.assert_learns(got, 5)
        self.assertEqual(losses(got), losses(want))
        self.assertIn("outputs on cpu:1", got)

    def test_two_models_train_at_once(self):
        text = output("two_models")
        self.assertRegex(text, "Model A on 2 devices, Loss: ")
        self.assertRegex(text, "Model B on 4 devices, Loss: ")
        alone = {line[:7]: losses(line)[0] for line in output("two_models", "cpu:0", "cpu:1").splitlines()}
        for line in text.splitlines():
            self.assertAlmostEqual(losses(line)[0], alone[line[:7]], delta=2e-5)

    def test_every_number_of_workers_loads_all_samples(self):
        rows = re.findall(r"num_workers (\d): (\d+) samples, \d+ samples/s", output("own_dataset"))
        self.assertEqual(rows, [(str(workers), "256") for workers in range(5)])

    @needs_gloo
    def test_ddp_has_the_same_losses_with_any_launcher(self):
        want = output("ddp", 1)
        self.assert_learns(want, 3)
        self.assertEqual(output("ddp").replace("2 ranks", "1 ranks"), want)
        self.assert_learns(output("ddp", 3), 3)  # the sampler pads: other losses

    @needs_gloo
    @needs_torch
    def test_ddp_runs_under_torchrun(self):
        done = subprocess.run([TORCH, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", "--no-python",
                               programs.BIN / "examples/ddp"], capture_output=True, text=True, timeout=200, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(losses(done.stdout), losses(output("ddp", 1)))
        self.assertIn("2 ranks", done.stdout)

    def test_every_program_is_in_the_documentation(self):
        text = (pathlib.Path(os.environ["HOWMANY_SOURCE"]) / "docs/EXAMPLES.md").read_text()
        for name in NAMES:
            self.assertIn(f"{name}.cpp", text)


programs.main()
