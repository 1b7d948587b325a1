# SPDX-License-Identifier: Apache-2.0
# labels: slurm process
# timeout: 420
"""Ranks under a real Slurm (slurmctld, slurmd and munged of this test's own): srun's variables are
enough to meet, the cores Slurm gives are the devices, and the job examples run as they are."""

import json
import pathlib
import re
import subprocess
import unittest
import unittest.mock

import programs
import slurm_cluster

SOURCE = pathlib.Path(__file__).resolve().parents[2]
COMMS = {part["name"] for part in
         programs.run("howmany-devices", "--json").json()["backends"]["comms"] if part["usable"]}
ONE = [programs.BIN / "howmany-train", "--model", "mlp:sizes=16-16-10", "--epochs", "2", "--mode",
       "single"]
TRAIN = [*ONE[:-1], "ddp"]


class Slurm(programs.TestCase):
    @classmethod
    def setUpClass(cls):
        try:
            cls.cluster = slurm_cluster.Cluster()
        except (slurm_cluster.CannotStart, OSError, subprocess.SubprocessError) as problem:
            raise unittest.SkipTest(f"no Slurm here: {problem}") from None
        cls.addClassCleanup(cls.cluster.stop)

    def srun(self, *arguments, **options):
        done = self.cluster.run("srun", *arguments, **options)
        return programs.Result(done.returncode, done.stdout, done.stderr)

    def assert_trained(self, result, backend, ranks):
        self.assertEqual(result.code, 0, result)
        told = result.json()
        self.assertEqual((told["backend"], len(told["devices"])), (backend, ranks))
        return [epoch["mean_loss"] for epoch in told["epochs"]]

    @unittest.skipUnless("gloo" in COMMS, "gloo cannot be used here")
    def test_ranks_of_srun_meet_without_being_told_where(self):
        single = programs.run(*ONE, "--json").json()
        result = self.srun("-n", 2, "--cpu-bind=cores", *TRAIN, "--backend", "auto", "--json")
        self.assertIn("backend gloo: ", result.err)
        got = self.assert_trained(result, "gloo", 2)
        for mine, one in zip(got, single["epochs"], strict=True):
            self.assertAlmostEqual(mine, one["mean_loss"], places=4)
        self.assertEqual(set(result.json()["devices"]), {"cpu:0"}, "each task has cores of its own")

    @unittest.skipUnless("gloo" in COMMS, "gloo cannot be used here")
    def test_tasks_without_cores_of_their_own_share_them_out(self):
        result = self.srun("-n", 2, "--cpu-bind=none", *TRAIN, "--backend", "gloo", "--json")
        self.assert_trained(result, "gloo", 2)
        self.assertEqual(result.json()["devices"], ["cpu:0", "cpu:1"])

    @unittest.skipUnless("gloo" in COMMS, "gloo cannot be used here")
    def test_backends_are_compared_between_ranks_of_srun(self):
        done = self.srun("-n", 2, "--cpu-bind=cores", programs.BIN / "howmany", "backend", "--backend", "gloo", "--ops",
                         "broadcast", "--max-bytes", "4K", "--time-budget", 10, "--quiet", "--out",
                         self.folder / "out")
        self.assertEqual(done.code, 0, done)
        self.assertIn("srun started 2 ranks", done.out)
        self.assertIn("broadcast, f32, 2 ranks", done.out)

    @unittest.skipUnless("mpi" in COMMS, "mpi cannot be used here")
    def test_ranks_of_srun_use_mpi(self):
        kinds = self.srun("--mpi=list")
        if "pmix" not in kinds.out + kinds.err:
            self.skipTest("this Slurm has no pmix plugin")
        self.assert_trained(self.srun("--mpi=pmix", "-n", 2, *TRAIN, "--backend", "mpi", "--json"),
                            "mpi", 2)

    def test_one_task_is_alone(self):
        result = self.srun("-n", 1, *ONE)
        self.assertEqual(result.code, 0, result)

    @unittest.skipUnless("gloo" in COMMS, "gloo cannot be used here")
    def test_the_ddp_example_has_the_losses_of_one_process(self):
        ddp = programs.BIN / "examples/ddp"
        result = self.srun("-n", 2, ddp)
        self.assertEqual(result.code, 0, result)
        self.assertEqual(result.out.replace("2 ranks", "1 ranks"), programs.run("examples/ddp", 1).out)

    def test_tasks_that_are_all_told_to_be_alone_are_refused(self):
        result = self.srun("-n", 2, "env", "RANK=0", "WORLD_SIZE=1", *TRAIN)
        self.assertNotEqual(result.code, 0)
        self.assertIn("srun started 2 tasks, but WORLD_SIZE=1", result.err)

    def test_the_measuring_command_is_not_started_many_times(self):
        result = self.srun("-n", 2, programs.BIN / "howmany", "gpus", "--out", self.folder / "out")
        self.assertIn("srun started this command 2 times", result.err)

    @unittest.skipUnless("gloo" in COMMS, "gloo cannot be used here")
    def test_examples_run_as_they_are(self):
        for example in sorted((SOURCE / "scripts/slurm").glob("*.sh")):
            with self.subTest(example=example.name):
                if example.name == "mpi.sh" and "mpi" not in COMMS:
                    self.skipTest("mpi cannot be used here")
                out = self.run_batch(example)
                self.assertRegex(out, "Epoch 1, Loss: |Use [12] ")

    @unittest.skipUnless("gloo" in COMMS, "gloo cannot be used here")
    def test_question_jobs_leave_their_answers(self):
        for question, name in (("gpus", "ask-and-train"), ("workers", "workers"), ("backend", "backend")):
            with self.subTest(example=name), unittest.mock.patch.dict("os.environ", NO_SUBMIT="1", BUDGET="5"):
                out = self.run_batch(SOURCE / f"examples/slurm/{name}.sh")
                newest = max(self.folder.glob("howmany-out/*/summary.json"), key=lambda p: p.stat().st_mtime)
                answer = json.loads(newest.read_text())["answer"]
                self.assertIn("recommended", answer[question], out)
                if question == "gpus":
                    self.assertIn("#SBATCH --ntasks=", out)

    @unittest.skipUnless("gloo" in COMMS, "gloo cannot be used here")
    def test_the_job_for_several_nodes_asks_and_writes_a_job(self):
        with unittest.mock.patch.dict("os.environ", NODES="1", BUDGET="10"):
            self.run_batch(SOURCE / "examples/slurm/nodes.sh", "--nodes=1", "--cpus-per-task=2")
        self.assertIn("#SBATCH --nodes=1\n", next(self.folder.glob("howmany-out/*/job.sh")).read_text())

    @unittest.skipUnless("gloo" in COMMS, "gloo cannot be used here")
    def test_emitted_script_runs(self):
        measured = programs.run("howmany", "gpus", "--model", "simple_net", "--mode", "ddp", "--backend",
                                "gloo", "--rounds", "1", "--quiet", "--min-efficiency", "0.01",
                                "--samples", "100", "--emit", "slurm", "--out", self.folder / "out",
                                timeout=120)
        self.assertEqual(measured.code, 0, measured)
        script = self.folder / "job.sh"
        script.write_text(measured.out)
        tasks = int(re.search("--ntasks=([0-9]+)", measured.out).group(1))
        out = self.run_batch(script)
        self.assertIn("Epoch 1, Loss: ", out)
        self.assertEqual(out.count("Epoch 1,"), 1, f"{tasks} ranks of one run, not {tasks} runs")

    def run_batch(self, script, *arguments):
        out = self.folder / "job.out"
        done = self.cluster.run("sbatch", "--wait", f"--output={out}", f"--chdir={self.folder}",
                                f"--export=ALL,PATH={programs.BIN.resolve()}:/usr/bin:/bin", *arguments,
                                script, timeout=200)
        told = out.read_text() if out.exists() else ""
        self.assertEqual(done.returncode, 0, f"{done.stderr}\n{told}")
        return told


programs.main()
