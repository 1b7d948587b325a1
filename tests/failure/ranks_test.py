# SPDX-License-Identifier: Apache-2.0
# labels: process kill
# timeout: 180
"""A rank that dies and a rank that hangs, over gloo and mpi: one line naming the rank, exit code 3,
nothing left behind."""

import os
import pathlib
import re
import signal
import time
import unittest

import processes
import programs

COMMS = {part["name"] for part in
         programs.run("howmany-devices", "--json").json()["backends"]["comms"] if part["usable"]}
PATIENCE = 60  # seconds that a failure may take on a busy machine; far less than ctest's limit


class Ranks:
    backend = "gloo"

    def setUp(self):
        super().setUp()
        self.scratch = self.folder / "tmp"
        self.scratch.mkdir()

    def start(self, program, *arguments):
        """A run of two ranks that would go on for ever; its temporary files go to self.scratch."""
        self.out = open(self.folder / "out", "w+")
        self.err = open(self.folder / "err", "w+")
        self.addCleanup(self.out.close)
        self.addCleanup(self.err.close)
        return self.popen(
            programs.BIN / program, *arguments, "--model", "mlp:sizes=64-64-10", "--mode", "ddp",
            "--backend", self.backend, "--devices", "cpu:0,cpu:1", "--oversubscribe",
            stdout=self.out, stderr=self.err, env={**os.environ, "TMPDIR": str(self.scratch)})

    def read(self, file):
        file.flush()
        return pathlib.Path(file.name).read_text()

    def start_training(self, *arguments):
        """Returns the process and its ranks' pids once both ranks are in the middle of steps."""
        process = self.start("howmany-train", "--epochs", 1_000_000, *arguments)
        self.wait_until("a second epoch", lambda: "Epoch 2" in self.read(self.out))
        return process, processes.ranks_below(process.pid)

    def assert_clean_failure(self, process, ranks, *words):
        self.assertEqual(process.wait(PATIENCE), 3, self.read(self.err))
        # Ignores lines of MPI itself: "[host:4711] Read -1, expected 19268, errno = 3".
        lines = [line for line in self.read(self.err).strip().splitlines()
                 if not re.match(r"\[[\w.-]+:\d+\] ", line)]
        told = [line for line in lines if all(word in line for word in words)]
        self.assertTrue(told, lines)
        self.assertLessEqual(len(lines), 1 + len(ranks), lines)  # one per survivor, and the summary
        self.assert_nothing_left(ranks)

    def assert_nothing_left(self, ranks):
        self.assertEqual([pid for pid in ranks.values() if processes.alive(pid)], [], "orphans")
        self.assertEqual(list(self.scratch.rglob("*")), [], "files left behind")

    def test_killed_rank_is_named(self):
        process, ranks = self.start_training()
        self.assertEqual(sorted(ranks), [0, 1])
        os.kill(ranks[1], signal.SIGKILL)
        self.assert_clean_failure(process, ranks, "rank 1 of 2", "signal 9 (SIGKILL")
        self.assertIn("Epoch 1, Loss: ", self.read(self.out))

    def test_killed_first_rank_is_named(self):
        process, ranks = self.start_training()
        os.kill(ranks[0], signal.SIGKILL)
        self.assert_clean_failure(process, ranks, "rank 0 of 2", "signal 9 (SIGKILL")

    def test_hanging_rank_is_named_after_the_timeout(self):
        process, ranks = self.start_training("--timeout", 2)
        os.kill(ranks[1], signal.SIGSTOP)
        self.assert_clean_failure(process, ranks, f"rank 0 of 2 ({self.backend})", "peer 1")

    def test_suspended_job_goes_on(self):
        process, _ = self.start_training("--timeout", 3)
        everyone = [process.pid, *processes.below(process.pid)]
        for pid in everyone:
            os.kill(pid, signal.SIGSTOP)
        trained = len(self.read(self.out))
        time.sleep(5)
        for pid in reversed(everyone):
            os.kill(pid, signal.SIGCONT)
        self.wait_until("further epochs", lambda: len(self.read(self.out)) > trained + 100)
        process.send_signal(signal.SIGINT)
        self.assertEqual(process.wait(PATIENCE), 130, self.read(self.err))

    def test_killed_parent_takes_its_ranks_along(self):
        process, ranks = self.start_training()
        process.kill()
        process.wait()
        self.wait_until("the ranks to end", lambda: not any(map(processes.alive, ranks.values())))

    def test_interrupt_ends_all_ranks_and_keeps_the_epochs(self):
        process, ranks = self.start_training()
        process.send_signal(signal.SIGINT)
        self.assertEqual(process.wait(PATIENCE), 130, self.read(self.err))
        self.assertIn("Epoch 1, Loss: ", self.read(self.out))
        self.assert_nothing_left(ranks)

    def test_bench_reports_the_case_that_lost_a_rank(self):
        results = self.folder / "results.json"
        process = self.start("speedup_bench", "--case-budget", 600, "--max-iterations", 10**9,
                             "--batch-per-device", 8, f"--benchmark_out={results}")
        ranks = self.wait_until("two ranks", lambda: (
            lambda found: found if len(found) == 2 else None)(processes.ranks_below(process.pid)))
        self.wait_until("threads of a joined group", lambda: processes.threads(ranks[1]) > 2)
        os.kill(ranks[1], signal.SIGKILL)
        self.assertEqual(process.wait(PATIENCE), 3, self.read(self.err))
        self.assertIn("rank 1 of 2", self.read(self.err))
        self.assert_nothing_left(ranks)


@unittest.skipUnless("gloo" in COMMS, "gloo cannot be used here")
class Gloo(Ranks, programs.TestCase):
    pass


@unittest.skipUnless("mpi" in COMMS, "mpi cannot be used here")
class Mpi(Ranks, programs.TestCase):
    backend = "mpi"


programs.main()
