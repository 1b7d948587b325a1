# SPDX-License-Identifier: Apache-2.0
"""PyTorch scripts that script_bench runs, and what it reports of them. Needs a Python with torch:
$HOWMANY_TORCH_PYTHON or the active one."""

import json
import pathlib
import statistics
import subprocess
import unittest

import programs

SCRIPTS = pathlib.Path(__file__).resolve().parents[1] / "benches/script/scripts"
SAME_TIME = 0.01  # relative
GRADIENT_BYTES = 4 * (256 * 1024 + 1024 + 1024 * 1024 + 1024 + 1024 * 10 + 10)  # of scripts/parts.py


PYTHON = programs.python_that_runs("import torch")
needs_torch = unittest.skipUnless(PYTHON, "no Python with torch; set HOWMANY_TORCH_PYTHON")


def has(package):
    found = f"import importlib.util, sys; sys.exit(importlib.util.find_spec({package!r}) is None)"
    return PYTHON and subprocess.run([PYTHON, "-c", found], capture_output=True, check=False).returncode == 0


def torchrun(name):
    return [PYTHON, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "{n}", SCRIPTS / name]


class Measured(programs.TestCase):
    def bench(self, command, *arguments, devices=1, device="cpu", seconds=0.5, **environment):
        self.bench_file, self.samples_file = self.folder / "bench.json", self.folder / "samples.jsonl"
        self.timer = self.folder / "timer"
        scratch = self.folder / "tmp"
        scratch.mkdir(exist_ok=True)
        done = programs.run(
            "script_bench", "--devices", ",".join(f"{device}:{i}" for i in range(devices)), "--case-budget", seconds,
            "--run-timeout", 200, f"--benchmark_out={self.bench_file}", "--samples-file", self.samples_file,
            *arguments, "--", *command, timeout=240, OWN_TIMER=str(self.timer), TMPDIR=str(scratch), **environment)
        self.assertEqual(list(scratch.glob("howmany*")), [])
        return done

    def measure(self, command, *arguments, **named):
        """Returns the row, the line of samples and the ticks of the script's own timer."""
        done = self.bench(command, *arguments, **named)
        row = self.row()
        self.assertNotIn("error_message", row, done)
        self.assertEqual(done.code, 0, done)
        line = json.loads(self.samples_file.read_text())
        ticks = pathlib.Path(f"{self.timer}.0")
        return row, line, json.loads(ticks.read_text()) if ticks.exists() else []

    def row(self):
        return json.loads(self.bench_file.read_text())["benchmarks"][0]

    def error(self, command, **named):
        done = self.bench(command, **named)
        self.assertEqual(done.code, 3, done)
        return self.row()["error_message"]

    def check_times(self, row, line, ticks):
        """Each timed step lasts as long as by the script's own timer; a busy machine may delay one
        of the two clocks at some steps."""
        first = int(row["warmup_steps"])
        own = [b - a for a, b in zip(ticks, ticks[1:])][first - 1:]
        if row["cycles"] > 0:  # also on a busy machine
            mean = statistics.median(line["seconds"])
            return self.assertTrue(statistics.median(own) * 0.9 < mean < max(own), mean)
        pairs = list(zip(line["seconds"], own))
        self.assertGreaterEqual(len(pairs), len(line["seconds"]) - 1)
        difference = statistics.median(abs(a - b) for a, b in pairs)
        self.assertLess(difference / statistics.median(own), SAME_TIME)

    def check(self, script, samples, parallel="single", backend="", visible=True, devices=1, ticks=True):
        command = torchrun(script) if devices > 1 else [PYTHON, SCRIPTS / script]
        row, line, own = self.measure(command, devices=devices)
        self.assertEqual([line["parameters"][key] for key in ("global_batch", "mode", "backend")],
                         [str(samples), parallel, backend])
        self.assertEqual(row["ranks"], devices)
        self.assertEqual("data_wait_fraction" in row, visible, row)
        if ticks and devices == 1:  # with several, the times are the maxima over ranks
            self.check_times(row, line, own)
        return row, line
