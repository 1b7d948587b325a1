# SPDX-License-Identifier: Apache-2.0
# labels: mpi process
# timeout: 300
"""Ranks that a real mpirun starts: they find each other over gloo and mpi, and launches that cannot
be meant are refused in one line."""

import os
import shutil
import subprocess
import unittest

import programs

CORES = len(os.sched_getaffinity(0))
COMMS = {part["name"] for part in
         programs.run("howmany-devices", "--json").json()["backends"]["comms"] if part["usable"]}
MPIRUN = ["mpirun", "--oversubscribe", "--bind-to", "none", "--quiet"] + (
    ["--allow-run-as-root"] if os.geteuid() == 0 else [])
MODEL = ["--model", "mlp:sizes=16-16-10", "--epochs", "2"]
TRAIN = [str(programs.BIN / "howmany-train"), *MODEL, "--mode", "ddp", "--oversubscribe"]


def mpirun(*arguments):
    done = subprocess.run([*MPIRUN, *map(str, arguments)], capture_output=True, text=True, timeout=120)
    return programs.Result(done.returncode, done.stdout, done.stderr)


@unittest.skipUnless(shutil.which("mpirun"), "no mpirun here")
class Mpirun(programs.TestCase):
    def assert_told(self, result, *words):
        """It failed, and some line has all the words: mpirun may end the other ranks before they speak."""
        self.assertNotEqual(result.code, 0, result)
        self.assertTrue(any(all(word in line for word in words) for line in result.err.splitlines()),
                        result)

    def losses(self, backend, ranks):
        result = mpirun("-n", ranks, *TRAIN, "--backend", backend, "--json")
        self.assertEqual(result.code, 0, result)
        told = result.json()
        self.assertEqual((told["backend"], len(told["devices"])), (backend, ranks))
        return [epoch["mean_loss"] for epoch in told["epochs"]]

    def test_ranks_find_each_other_and_agree_with_one_device(self):
        single = programs.run("howmany-train", *MODEL, "--mode", "single", "--json")
        expected = [epoch["mean_loss"] for epoch in single.json()["epochs"]]
        for backend in sorted(COMMS & {"gloo", "mpi"}):
            for ranks in (2, 3):
                with self.subTest(backend=backend, ranks=ranks):
                    for got, want in zip(self.losses(backend, ranks), expected, strict=True):
                        self.assertAlmostEqual(got, want, places=4)

    @unittest.skipUnless("mpi" in COMMS, "mpi cannot be used here")
    def test_howmany_alone_starts_mpirun_itself(self):
        result = programs.run("howmany-train", *TRAIN[1:], "--backend", "mpi", "--devices",
                              "cpu:0,cpu:1", timeout=120)
        self.assertEqual(result.code, 0, result)
        self.assertIn("Epoch 2, Loss: ", result.out)
        self.assertEqual(result.err, "")

    @unittest.skipUnless("mpi" in COMMS, "mpi cannot be used here")
    def test_one_bench_measures_both_backends(self):
        result = programs.run("speedup_bench", "--model", "simple_net", "--mode", "ddp", "--backend",
                              "gloo,mpi", "--devices", "cpu:0,cpu:1", "--oversubscribe",
                              "--case-budget", "0.01", "--max-iterations", "5", timeout=120)
        self.assertEqual(result.code, 0, result)
        for backend in ("gloo", "mpi"):
            self.assertIn(f"backend:{backend}/devices:2", result.out)

    def test_ranks_with_different_arguments_are_refused(self):
        for backend in sorted(COMMS & {"gloo", "mpi"}):
            with self.subTest(backend=backend):
                command = [*TRAIN, "--backend", backend, "--seed"]
                result = mpirun("-n", 1, *command, 1, ":", "-n", 1, *command, 2)
                self.assert_told(result, "rank 1 of 2 is not what rank 0 is", "--seed 2", "--seed 1")

    def test_tasks_that_are_all_told_to_be_alone_are_refused(self):
        alone = ["env", "RANK=0", "WORLD_SIZE=1", *TRAIN]
        self.assert_told(mpirun("-n", 2, *alone), "mpirun started 2 tasks, but WORLD_SIZE=1")
        alone[2] = "WORLD_SIZE=2"
        self.assert_told(mpirun("-n", 2, *alone), "RANK=0, but mpirun says rank 1 of 2")

    def test_more_ranks_than_cores_need_oversubscribe(self):
        command = [word for word in TRAIN if word != "--oversubscribe"]
        self.assert_told(mpirun("-n", CORES + 1, *command, "--backend", "gloo"),
                         f"{CORES + 1} devices", "--oversubscribe")

    @unittest.skipUnless(COMMS >= {"gloo", "mpi"}, "gloo or mpi cannot be used here")
    def test_backends_are_compared_between_its_ranks(self):
        done = mpirun("-n", 2, programs.BIN / "howmany", "backend", "--devices", "cpu:0,cpu:1", "--oversubscribe",
                      "--ops", "all_reduce", "--min-bytes", "64K", "--max-bytes", "64K", "--time-budget", 20, "--json", "--quiet", "--out",
                      self.folder / "out")
        self.assertEqual(done.code, 0, done)
        told = done.json()
        self.assertEqual({m["case"] for m in told["measurements"] if m["parameters"].get("devices") == "2"},
                         {"all_reduce/gloo", "all_reduce/mpi", "pace/gloo", "pace/mpi"})
        self.assertIn(told["answer"]["backend"]["recommended"], ("gloo", "mpi"))
        self.assertIn("mpirun started 2 ranks", " ".join(told["answer"]["backend"]["notes"]))

    def test_copies_are_measured_by_one_of_its_ranks(self):
        done = mpirun("-n", 2, programs.BIN / "howmany", "transfer", "--max-bytes", "4K", "--time-budget", 4, "--quiet",
                      "--out", self.folder / "out")
        self.assertEqual(done.code, 0, done)
        self.assertEqual(done.out.count("Files: "), 1, done)

    def test_the_measuring_command_is_not_started_many_times(self):
        result = mpirun("-n", 2, programs.BIN / "howmany", "gpus", "--out", self.folder / "out")
        self.assert_told(result, "mpirun started this command 2 times")
        self.assertFalse((self.folder / "out").exists())


programs.main()
