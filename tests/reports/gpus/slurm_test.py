# SPDX-License-Identifier: Apache-2.0
# labels: process
# timeout: 120
"""Tests `--emit slurm`, which prints only a job script for the recommendation, and the reported choice of
the backend `auto`."""
import json
import subprocess

import programs
from fake import Fake


class JobScript(Fake):
    def script(self, *more, mode="ddp", **environment):
        done = self.howmany("gpus", "--mode", mode, "--rounds", "1", "--emit", "slurm", "--out", self.out,
                            *more, **environment)
        self.assertEqual(done.code, 0, done)
        self.assertTrue(done.out.startswith("#!/bin/bash\n"), done)
        checked = subprocess.run(["bash", "-n"], input=done.out, text=True, capture_output=True)
        self.assertEqual((checked.returncode, checked.stderr), (0, ""))
        return done.out

    def command(self, script):
        return script.split("--kill-on-bad-exit=1 \\\n  ")[1].split()

    def test_the_job_trains_with_the_options_that_were_measured(self):
        script = self.script("--devices", "cpu:0,cpu:1", "--batch-per-device", "32", "--sync-batchnorm", "--seed", "7")
        self.assertIn("--sync-batchnorm", self.command(script))

    def test_asks_for_a_task_and_its_cores_for_each_device(self):
        script = self.script("--devices", "cpu:0,cpu:1", "--batch-per-device", "32")
        self.assertIn("# Use 2 CPU devices", script)
        self.assertIn("#SBATCH --ntasks=2\n#SBATCH --cpus-per-task=1\n", script)
        self.assertNotIn("--gpus", script)
        words = self.command(script)
        self.assertEqual(words[:2], ["howmany", "train"])
        for flag, value in (("--model", "mlp"), ("--mode", "ddp"), ("--backend", "gloo"), ("--global-batch", "64")):
            self.assertEqual(words[words.index(flag) + 1], value)
        self.assertNotIn("--devices", words, "srun gives each task its own")

    def test_asks_for_gpus_where_gpus_were_measured(self):
        script = self.script(FAKE_GPUS="4")
        self.assertIn("#SBATCH --gpus=4\n", script)
        self.assertIn("#SBATCH --ntasks=4\n#SBATCH --cpus-per-task=1\n", script)
        words = self.command(script)
        self.assertEqual(words[words.index("--devices") + 1], "cuda:0-3")

    def test_ranks_of_several_devices_are_tasks_where_those_are_gpus(self):
        script = self.script(FAKE_GPUS="4", FAKE_RANKS="2")
        self.assertIn("#SBATCH --ntasks=2\n#SBATCH --cpus-per-task=2\n", script)
        self.assertIn("#SBATCH --gpus=4\n", script)
        self.assertIn("--devices cuda:0-3 --backend gloo", script)

    def test_ranks_of_several_slices_of_the_cores_are_started_by_one_task(self):
        script = self.script("--devices", "cpu:0,cpu:1", FAKE_RANKS="1")
        self.assertIn("#SBATCH --ntasks=1\n#SBATCH --cpus-per-task=2\n", script)
        self.assertIn("--devices cpu:0-1 --backend gloo", script)

    def test_a_mix_of_devices_is_no_job(self):
        done = self.howmany("gpus", "--devices", "cuda:0,cpu:0", "--emit", "slurm", "--out", self.out, FAKE_GPUS="1")
        self.assertEqual(done.out, "")
        self.assertIn("the devices are both", done.err)

    def test_one_task_drives_all_devices_without_processes(self):
        script = self.script("--devices", "cpu:0,cpu:1", mode="data_parallel")
        self.assertIn("#SBATCH --ntasks=1\n#SBATCH --cpus-per-task=2\n", script)
        words = self.command(script)
        self.assertEqual(words[words.index("--devices") + 1], "cpu:0-1")

    def test_time_limit_follows_the_samples(self):
        self.assertIn("#SBATCH --time=0-00:05:00", self.script("--devices", "cpu:0,cpu:1", "--samples", "10"))
        again = self.howmany("report", self.out, "--emit", "slurm", "--samples", "10G")
        self.assertEqual(again.code, 0, again)
        self.assertRegex(again.out, "#SBATCH --time=[1-9][0-9]*-")

    def test_trains_the_samples_that_the_time_is_for(self):
        self.script("--devices", "cpu:0,cpu:1")
        for asked, samples in ((("--samples", "100M"), "100000000"), (("--samples", "12345"), "12345"),
                               ((), "1281167")):
            done = self.howmany("report", self.out, "--emit", "slurm", *asked)
            self.assertIn(f"  # for {samples} samples, ", done.out)
            words = self.command(done.out)
            self.assertEqual(words[words.index("--synthetic-samples") + 1], samples)
            self.assertEqual(words[words.index("--epochs") + 1], "1")

    def test_of_files_the_epochs_are_left_to_be_told(self):
        script = self.script("--devices", "cpu:0,cpu:1", "--data", "photos")
        self.assertIn("Add the --epochs that train the samples below", script)
        self.assertNotIn("--synthetic-samples", script)
        self.assertIn("--data photos --epochs 1", script)

    def test_a_time_limit_that_is_the_least_is_called_so(self):
        least = "#SBATCH --time=0-00:05:00  # for 10 samples, which take [0-9.]+ .?s; five minutes are the least\n"
        self.assertRegex(self.script("--devices", "cpu:0,cpu:1", "--samples", "10"), least)
        again = self.howmany("report", self.out, "--emit", "slurm", "--samples", "1G")
        self.assertIn("# for 1000000000 samples, half as long again as measured\n", again.out)

    def test_no_job_is_as_long_as_what_was_never_measured(self):
        self.script("--devices", "cpu:0,cpu:1")
        path = self.out / "summary.json"
        summary = json.loads(path.read_text())
        for measurement in summary["measurements"]:
            measurement["metrics"]["samples_per_s"]["value"] = 1e-300
        path.write_text(json.dumps(summary))
        self.assert_refused(self.howmany("report", self.out, "--emit", "slurm"), "longer than any job")

    def test_what_tells_no_number_of_devices_is_no_job(self):
        for question in ("workers", "backend", "transfer"):
            summary = {"schema": "howmany.summary/1", "context": {}, "answer": {question: {}}, "measurements": []}
            path = self.folder / f"{question}.json"
            path.write_text(json.dumps(summary))
            self.assert_refused(self.howmany("report", path, "--emit", "slurm"), "needs the results of howmany gpus", question)

    def test_no_recommendation_means_no_script(self):
        done = self.gpus("--emit", "slurm", FAKE_FAIL='{"single@1": "exit", "ddp@1": "exit", "ddp@2": "exit"}')
        self.assertEqual(done.out, "")
        self.assertIn("no job script", done.err)


class Auto(Fake):
    def test_choice_of_backend_is_explained(self):
        done = self.gpus("--backend", "auto")
        self.assertEqual(done.code, 0, done)
        self.assertIn("backend gloo: built in; nccl is for GPUs\n", done.err)
        self.assertEqual({run["backend"] for run in self.started()}, {"gloo", "local"})

    def test_gpus_would_rather_have_nccl(self):
        done = self.howmany("gpus", "--mode", "ddp", "--rounds", "1", "--out", self.out, FAKE_GPUS="2")
        self.assertIn("backend gloo: built in; nccl: not built\n", done.err)

    def test_copies_under_a_launcher_are_refused(self):
        for launcher, variable in (("mpirun", "OMPI_COMM_WORLD_SIZE"), ("srun", "SLURM_STEP_NUM_TASKS"),
                                   ("torchrun", "WORLD_SIZE")):
            self.assert_refused(self.gpus(**{variable: "3"}), f"{launcher} started this command 3 times")
        self.assertEqual(self.gpus(SLURM_STEP_NUM_TASKS="1").code, 0)


programs.main()
