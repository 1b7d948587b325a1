# SPDX-License-Identifier: Apache-2.0
# labels: process torch alone
# timeout: 1500
"""Numbers of loader workers that take turns in one training run of a real PyTorch script."""

import json
import statistics
import unittest

import programs
from torch_scripts import PYTHON, SCRIPTS, Measured, has, needs_torch, torchrun


@needs_torch
class LoaderWorkers(Measured):
    def turns(self, command, *options, numbers="0,1", seconds=1.5, **environment):
        """Returns the rows by number of workers, each with its line of samples."""
        bench, samples = self.folder / "bench.json", self.folder / "samples.jsonl"
        done = programs.run("script_bench", "--workers", numbers, "--rounds", 2, "--case-budget", seconds, *options,
                            f"--benchmark_out={bench}", "--samples-file", samples, "--", *command, timeout=240,
                            **environment)
        self.assertEqual(done.code, 0, done)
        rows = json.loads(bench.read_text())["benchmarks"]
        lines = [json.loads(line) for line in samples.read_text().splitlines()]
        found = {}
        for row, line in zip(rows, lines, strict=True):
            found.setdefault(int(line["parameters"]["workers"]), []).append((row, line))
        return found

    def check(self, command, batch, *options, own=0, **environment):
        found = self.turns(command, *options, **environment)
        self.assertLessEqual({0, 1}, set(found))
        for workers, turns in found.items():
            for row, line in turns:
                self.assertEqual(line["parameters"]["global_batch"], str(batch))
                self.assertEqual(line["parameters"]["own"], "1" if workers == own else "0")
                self.assertGreaterEqual(len(line["seconds"]), 3)
            self.assertEqual(any("bytes_per_worker" in row for row, _ in turns), workers > 0)
        return found

    def rate(self, turns):
        return statistics.median(row["samples_per_s"] for row, _ in turns)

    def test_workers_hide_the_time_of_slow_samples(self):
        found = self.turns([PYTHON, SCRIPTS / "slow_samples.py"], numbers="0,4", seconds=3)
        self.assertGreater(self.rate(found[4]), 2 * self.rate(found[0]))  # 42 ms to about 10 ms
        self.assertTrue(any("alone_samples_per_s" in row for row, _ in found[4]))
        self.assertTrue(all(row["first_batch_s"] > 0 for row, _ in found[0] + found[4]))

    @programs.nightly
    def test_epochs_may_end_within_a_turn(self):
        self.check([PYTHON, SCRIPTS / "slow_samples.py"], 64, BATCHES="7")

    def test_the_scripts_own_number_takes_part(self):
        found = self.check([PYTHON, SCRIPTS / "workers.py"], 64, own=2)
        self.assertIn(2, found)

    @programs.nightly
    def test_samples_may_be_made_by_modules_and_workers_spawned(self):
        self.check([PYTHON, SCRIPTS / "module_transform.py"], 64)

    def test_a_subclass_may_make_its_iterator_anew(self):
        self.check([PYTHON, SCRIPTS / "variants.py", "reset_loader"], 64)

    @programs.nightly
    def test_streams(self):
        self.check([PYTHON, SCRIPTS / "iterable.py"], 64)

    @programs.nightly
    def test_gradient_accumulation(self):
        self.check([PYTHON, SCRIPTS / "accumulation.py"], 4 * 64)

    def test_ranks_change_at_the_same_steps(self):
        self.check([word if word != "{n}" else "2" for word in torchrun("ddp.py")], 128)

    @unittest.skipUnless(has("transformers") and has("accelerate"), "no transformers and accelerate")
    def test_hugging_face_trainer(self):
        self.check([PYTHON, SCRIPTS / "trainer.py"], 128)

    @programs.nightly
    @unittest.skipUnless(has("lightning"), "no lightning")
    def test_lightning(self):
        self.check([PYTHON, SCRIPTS / "lightning_module.py"], 128)

    @programs.nightly
    @unittest.skipUnless(has("accelerate"), "no accelerate")
    def test_accelerate(self):
        self.check([PYTHON, SCRIPTS / "accelerated.py"], 64)

    @programs.nightly
    def test_another_loader_can_be_chosen(self):
        script = self.folder / "two_loaders.py"
        script.write_text(
            "import sys, torch\nsys.path.insert(0, %r)\nimport parts\nnet = parts.model()\n"
            "optimizer = torch.optim.SGD(net.parameters(), lr=0.01)\n"
            "def loader(batch, workers): return torch.utils.data.DataLoader(parts.data(), batch, num_workers=workers)\n"
            "first, second = loader(64, 0), loader(32, 1)\n"
            "for _ in range(99):\n    for (x, y), (u, v) in zip(first, second):\n        optimizer.zero_grad()\n"
            "        parts.loss_of(net(x), y).backward()\n        optimizer.step()\n" % str(SCRIPTS))
        self.check([PYTHON, script], 64)
        (self.folder / "samples.jsonl").unlink()
        self.check([PYTHON, script], 32, "--loader", 2, own=1)

    def test_a_script_without_a_loader_is_told_so(self):
        done = programs.run("script_bench", "--workers", "0,1", "--case-budget", 1, "--", PYTHON,
                            SCRIPTS / "no_loader.py", timeout=100)
        self.assertEqual(done.code, 3, done)
        self.assertIn("no batch came from a torch.utils.data.DataLoader", done.err)


if __name__ == "__main__":
    programs.main()
