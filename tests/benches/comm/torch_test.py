# SPDX-License-Identifier: Apache-2.0
# labels: process kill alone
# timeout: 300
"""Tests torch_collectives.py with a real torch, if HOWMANY_TORCH_PYTHON or the active Python has
one: rows, checks, and a killed rank."""
import json
import os
import pathlib
import signal
import subprocess
import tempfile
import unittest

import processes
import programs

SCRIPT = programs.BIN / "torch_collectives.py"
OPS = {"all_reduce", "all_gather", "reduce_scatter", "broadcast", "reduce", "gather", "scatter", "all_to_all",
       "send_recv"}
LIMIT = 120  # seconds; a loaded machine may need them
PROBE = "import torch.distributed as dist; raise SystemExit(not dist.is_gloo_available())"


PYTHON = programs.python_that_runs(PROBE)
needs_torch = unittest.skipUnless(PYTHON, "no Python with torch and gloo; set HOWMANY_TORCH_PYTHON")


def words(*more, devices="cpu:0,cpu:1"):
    return ["--backend", "torch:gloo", "--devices", devices, "--oversubscribe", "--min-bytes", "64",
            "--max-bytes", "4096", "--size-factor", "64", *more]


class Script(programs.TestCase):
    def start(self, *more, **environment):
        """Starts the parent of the ranks and returns it. Its temporary files go to self.scratch."""
        self.scratch, self.bench = self.folder / "tmp", self.folder / "bench.json"
        self.scratch.mkdir()
        return self.popen(PYTHON, SCRIPT, *words(*more), f"--benchmark_out={self.bench}", stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, env={**os.environ, "TMPDIR": str(self.scratch), **environment})

    def rows(self):
        return json.loads(self.bench.read_text())["benchmarks"]


class Cases(programs.TestCase):
    def listed(self, program, *arguments):
        done = subprocess.run([*program, *arguments, "--list"], capture_output=True, text=True, timeout=LIMIT,
                              check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout.split()

    def test_are_those_of_backend_bench(self):
        flags = words("--dtype", "f32,bf16", "--model", "mlp:sizes=16-32-4", devices="cpu:0-2")[2:]
        ours = self.listed([programs.BIN / "backend_bench"], "--backend", "local", *flags)
        theirs = self.listed(["python3", SCRIPT], "--backend", "torch:gloo", *flags)
        self.assertEqual(theirs, [name.replace("/local/", "/torch:gloo/") for name in ours
                                  if name.split("/")[1] not in ("pace", "overlap")])

    def test_unknown_flags_are_refused_with_2(self):
        for bad in (("--ops", "all_reduse"), ("--nonsense",), ("--devices", "cpu:0,cpu:0")):
            done = subprocess.run(["python3", SCRIPT, *words(*bad)], capture_output=True, text=True, timeout=LIMIT,
                                  check=False)
            self.assertEqual((done.returncode, len(done.stderr.strip().splitlines())), (2, 1), done.stderr)


@needs_torch
class Rows(Script):
    def test_every_operation_is_measured_and_checked(self):
        samples = self.folder / "samples.jsonl"
        process = self.start("--time-budget", "6", "--samples-file", samples)
        self.assertEqual(process.wait(LIMIT), 0, process.stderr.read())
        rows = self.rows()
        self.assertEqual({row["name"].split("/")[1] for row in rows}, OPS)
        lines = {(line["name"], line["parameters"]["timing"]): line["seconds"]
                 for line in map(json.loads, samples.read_text().splitlines())}
        measured = [row for row in rows if "median_s" in row]
        self.assertTrue(measured, rows)
        for row in rows:
            self.assertNotIn("error_occurred", row, row)
        for row in measured:
            seconds = lines[row["name"], "isolated"]
            self.assertEqual((row["samples"], row["min_s"]), (len(seconds), min(seconds)))
            self.assertAlmostEqual(row["algbw_bytes_per_s"] * row["median_s"] / row["bytes"], 1, places=6)
        context = json.loads(self.bench.read_text())["context"]
        self.assertIn("gloo", context["torch_backends"])
        self.assertEqual(list(self.scratch.iterdir()), [])

    @programs.nightly
    def test_groups_of_fewer_ranks(self):
        process = self.start("--device-count", "2,3", "--devices", "cpu:0,cpu:1,cpu:2", "--dtype", "bf16",
                             "--ops", "all_reduce,all_to_all", "--time-budget", "4")
        self.assertEqual(process.wait(LIMIT), 0, process.stderr.read())
        rows = self.rows()
        self.assertEqual({row["name"].split("devices:")[1][0] for row in rows}, {"2", "3"})
        self.assertFalse([row for row in rows if "error_occurred" in row])

    def test_a_killed_rank_ends_all_and_keeps_the_rows(self):
        process = self.start("--time-budget", "600")
        self.wait_until("a row", self.bench.exists)
        ranks = processes.ranks_below(process.pid)
        self.assertEqual(len(ranks), 2)
        os.kill(ranks[1], signal.SIGKILL)
        self.assertEqual(process.wait(LIMIT), 3)
        self.assertIn("rank 1 of 2 was ended by signal 9", process.stderr.read())
        self.assertIn("median_s", self.rows()[0])
        self.assert_gone(ranks.values())

    def test_ranks_end_with_the_process_that_started_them(self):
        for number in (signal.SIGTERM, signal.SIGKILL):
            with self.subTest(number), tempfile.TemporaryDirectory() as folder:
                self.folder = pathlib.Path(folder)
                process = self.start("--time-budget", "600")
                self.wait_until("a row", self.bench.exists)
                ranks = processes.ranks_below(process.pid)
                process.send_signal(number)
                process.wait(LIMIT)
                self.assert_gone(ranks.values())
                if number == signal.SIGTERM:
                    self.assertEqual(list(self.scratch.iterdir()), [])

    def assert_gone(self, ranks):
        self.wait_until("the end of all ranks", lambda: not any(map(processes.alive, ranks)))


CHECK = """
import sys
sys.path.insert(0, sys.argv[1])
import torch, torch_cases, torch_rank
for op in sys.argv[2].split(","):
    for rank in range(3):
        case = torch_cases.Case(f"backend/{op}/local/dtype:f32/devices:3/bytes:1200", "torch:gloo")
        one = torch_rank.Collective(case, rank, None, torch.device("cpu"))
        one.fill(0)
        for first, right in one.expected(0):
            one.receive[first:first + one.part] = right
        assert one.first_wrong(0) is None, (op, rank, one.first_wrong(0))
        checked = any(True for _ in one.expected(0))
        assert bool(one.first_wrong(1)) == checked, (op, rank)
        one.receive[7] += 1
        wrong = one.first_wrong(0)
        assert not checked or (wrong[0] == 7 and wrong[2] == wrong[1] + 1), (op, rank, wrong)
"""


@needs_torch
class Check(programs.TestCase):
    def test_finds_each_wrong_element(self):
        done = subprocess.run([PYTHON, "-B", "-c", CHECK, SCRIPT.resolve().parent, ",".join(sorted(OPS))],
                              capture_output=True, text=True, timeout=LIMIT, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)


if __name__ == "__main__":
    programs.main()
