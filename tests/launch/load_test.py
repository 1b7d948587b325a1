# SPDX-License-Identifier: Apache-2.0
# labels: process alone
# timeout: 900
"""Each measuring command on a machine that other programs keep busy: its answer is not certain, and says why."""
import json
import resource
import subprocess
import time
import unittest

import load
import processes
import programs

COMMS = [part["name"] for part in programs.run("howmany-devices", "--json").json()["backends"]["comms"]
         if part["usable"]]


class UnderLoad(programs.TestCase):
    def answer(self, question, *arguments):
        with load.busy_cores(nice=0):
            done = programs.run("howmany", question, *arguments, "--json", "--quiet", "--out", self.folder / "out",
                                timeout=280)
        self.assertEqual(done.code, 0, done)
        self.assertEqual(json.loads((self.folder / "out/summary.json").read_text()), done.json())
        return done.json()["answer"][question]

    def assert_marked(self, answer):
        self.assertIs(answer["certain"], False, answer["because"])
        self.assertIs(answer["disturbed"], True, answer["because"])
        self.assertTrue(answer["because"].startswith("Uncertain"), answer["because"])

    def test_gpus(self):
        answer = self.answer("gpus", "--model", "mlp", "--devices", "cpu:0", "--mode", "data_parallel", "--rounds", "1",
                             "--time-budget", "20")
        self.assert_marked(answer)
        self.assert_marked(answer["cases"][0])

    def test_workers(self):
        self.assert_marked(self.answer("workers", "--workers", "1,2", "--image-size", "64", "--time-budget", "8"))

    def test_backend(self):
        self.assert_marked(self.answer("backend", "--backend", "local", "--ops", "all_reduce", "--max-bytes", "1M",
                                       "--oversubscribe", "--time-budget", "12"))

    def test_transfer(self):
        self.assert_marked(self.answer("transfer", "--max-bytes", "1M", "--time-budget", "6"))


def waited_for():
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


class OwnRanks(programs.TestCase):
    """CPU time of ranks counts as that of howmany, which holds on a busy machine as well as on an idle one."""

    def assert_counted(self, backend):
        before, seen = waited_for(), {}
        measuring = subprocess.Popen(
            [programs.BIN / "howmany", "gpus", "--model", "mlp", "--devices", "cpu:0,cpu:1", "--mode", "ddp",
             "--backend", backend, "--rounds", "1", "--time-budget", "6", "--run-timeout", "280", "--oversubscribe",
             "--quiet", "--out", self.folder / "out"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        while measuring.poll() is None:
            for pid in processes.below(measuring.pid):
                seen[pid] = max(seen.get(pid, 0), processes.cpu_seconds(pid))
            time.sleep(0.05)
        with measuring.stdout as out:
            self.assertEqual(measuring.returncode, 0, out.read())
        ranks = sum(seen.values())
        self.assertGreater(ranks, 0.5)
        self.assertGreater(waited_for() - before, 0.95 * ranks)

    @unittest.skipUnless("gloo" in COMMS, "gloo was not built or cannot be used here")
    def test_of_gloo(self):
        self.assert_counted("gloo")

    @unittest.skipUnless("mpi" in COMMS, "MPI was not built or cannot be used here")
    def test_of_mpirun(self):
        self.assert_counted("mpi")


if __name__ == "__main__":
    programs.main()
