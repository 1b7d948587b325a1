# SPDX-License-Identifier: Apache-2.0
# labels: process kill
# timeout: 240
"""`howmany gpus` on the real bench: Ctrl-C keeps what was measured and --resume completes it; a
rank that dies costs its own measurement only."""

import json
import os
import signal
import subprocess
import unittest

import processes
import programs

PATIENCE = 60
MODEL = "mlp:sizes=16-32-32-4"  # layers for two stages
COMMON = ("--model", MODEL, "--devices", "cpu:0,cpu:1", "--oversubscribe", "--quiet")
COMMS = {part["name"] for part in
         programs.run("howmany-devices", "--json").json()["backends"]["comms"] if part["usable"]}


class Interrupt(programs.TestCase):
    def setUp(self):
        super().setUp()
        self.out = self.folder / "out"

    def start(self, *arguments):
        return self.popen(programs.BIN / "howmany", "gpus", *COMMON, *arguments, "--out", self.out,
                          stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)

    def summary(self):
        return json.loads((self.out / "summary.json").read_text())

    def samples(self):
        lines = (self.out / "speedup.samples.jsonl").read_text().splitlines()
        return [json.loads(line)["seconds"] for line in lines]

    def test_interrupted_run_is_kept_and_resumed(self):
        process = self.start("--mode", "data_parallel", "--rounds", "4", "--time-budget", "12")
        self.wait_until("a first result", (self.out / "summary.json").exists)
        started = processes.below(process.pid)
        process.send_signal(signal.SIGINT)
        told = process.communicate(timeout=PATIENCE)[1]
        self.assertEqual(process.returncode, 130, told)
        self.assertIn(f"--resume {self.out}", told)
        self.assertEqual([pid for pid in started if processes.alive(pid)], [])
        kept = self.summary()["measurements"]
        self.assertTrue(any("speedup" in m["suite"] for m in kept))
        before = self.samples()

        done = programs.run("howmany", "gpus", "--resume", self.out, "--quiet")
        self.assertEqual(done.code, 0, done)
        after = self.samples()
        self.assertTrue(all(run in after for run in before), "measured before, and not again")
        self.assertGreater(len(after), len(before))
        names = {m["case"] for m in self.summary()["measurements"]}
        self.assertEqual(names, {f"single/{MODEL}", f"data_parallel/{MODEL}"})

    def test_killed_run_leaves_readable_files(self):
        process = self.start("--mode", "data_parallel", "--rounds", "4", "--time-budget", "12")
        self.wait_until("a first result", (self.out / "summary.json").exists)
        process.kill()
        process.wait()
        self.assertTrue(self.summary()["measurements"])
        self.assertEqual(programs.run("howmany", "report", self.out).code, 0)
        done = programs.run("howmany", "gpus", "--resume", self.out, "--quiet")
        self.assertEqual(done.code, 0, done)

    @unittest.skipUnless("gloo" in COMMS, "gloo was not built or cannot be used here")
    def test_dead_rank_over_gloo_costs_its_own_measurement_only(self):
        self.lose_a_rank("ddp", "gloo")

    @unittest.skipUnless("mpi" in COMMS, "mpi was not built or cannot be used here")
    def test_dead_rank_over_mpi_costs_its_own_measurement_only(self):
        self.lose_a_rank("pipeline", "mpi")

    def lose_a_rank(self, mode, backend):
        process = self.start("--mode", mode, "--backend", backend, "--rounds", "1", "--time-budget", "12")
        ranks = self.wait_until("two ranks that have met", lambda: (
            lambda found: found if len(found) == 2 and processes.threads(found[1]) > 2 else None)(
                processes.ranks_below(process.pid, "speedup_bench")))
        os.kill(ranks[1], signal.SIGKILL)
        told = process.communicate(timeout=PATIENCE)[1]
        self.assertEqual(process.returncode, 3, told)
        self.assertFalse(any(map(processes.alive, ranks.values())))
        by_devices = {(m["case"], m["parameters"]["devices"]): m
                      for m in self.summary()["measurements"]}
        kept = by_devices[f"single/{MODEL}", "1"]
        self.assertGreater(kept["metrics"]["median_s"]["value"], 0)
        self.assertLessEqual(set(kept["flags"]), {"not converged"})  # as on a busy machine
        failed = by_devices[f"{mode}/{MODEL}", "2"]["flags"]
        self.assertRegex(" ".join(failed), r"failed: .*rank 1 of 2 was ended by signal 9 \(SIGKILL")


programs.main()
