# SPDX-License-Identifier: Apache-2.0
# labels: slurm process
# timeout: 300
"""`howmany gpus --submit` from a login node: what it submits, that it starts nothing else, and what `--resume` makes of
the jobs' results. Slurm is a fake for many nodes, and a real one (slurm_cluster.py) for one."""
import json
import os
import pathlib
import shlex
import shutil
import subprocess
import sys
import unittest

import fake
import fake_slurm
import programs
import slurm_cluster

SOURCE = pathlib.Path(__file__).resolve().parents[2]
SBATCH = "sbatch -A 'my proj' -p gpu --gpus-per-node=4 -t 15"
COMMAND = ("python", "train.py", "--name", "a b", "it's $HOME")


class Study(programs.TestCase):
    def setUp(self):
        super().setUp()
        self.slurm = fake_slurm.Slurm(self.folder / "slurm")
        self.study = self.folder / "study"

    def howmany(self, *arguments, **environment):
        done = programs.run("howmany", *arguments, **{**self.slurm.environment(os.environ["PATH"]), **environment})
        self.assertEqual(self.slurm.started(), [], "on the login node")
        return done

    def gpus(self, *more, nodes="1,2,4,8", submit=SBATCH, command=COMMAND):
        return self.howmany("gpus", "--submit", submit, "--nodes", nodes, "--out", self.study, *more,
                            *(("--", *command) if command else ()))

    def submit(self, *more, **options):
        done = self.gpus(*more, **options)
        self.assertEqual(done.code, 0, done)
        return done

    def resume(self, *more, code=0):
        done = self.howmany("gpus", "--resume", self.study, *more)
        self.assertEqual(done.code, code, done)
        return done

    def collected(self, code=0):
        summary = self.resume("--json", code=code).json()
        return summary, {job["nodes"]: job for job in summary["context"]["howmany_study"]["jobs"]}

    def read(self, name="study.json"):
        return json.loads((self.study / name).read_text())

    def words_in(self, script):
        line = next(line for line in script.read_text().splitlines() if " gpus --nodes " in line)
        return shlex.split(line)


class Submitted(Study):
    def test_one_job_for_each_number_of_nodes(self):
        self.submit("--rounds", "2", "--private", nodes="4,1,2")
        jobs = self.slurm.jobs()
        self.assertEqual(list(jobs), ["101", "102", "103"])
        for nodes, words in zip((1, 2, 4), jobs.values(), strict=True):
            self.assertEqual(words[:-2], ["-A", "my proj", "-p", "gpu", "--gpus-per-node=4", "-t", "15"])
            script = pathlib.Path(words[-1])
            self.assertEqual(script, self.study / f"nodes-{nodes}.sh")
            lines = script.read_text().splitlines()
            self.assertLessEqual({f"#SBATCH --nodes={nodes}", "#SBATCH --ntasks-per-node=1",
                                  f"#SBATCH --output={self.study}/nodes-{nodes}.out"}, set(lines))
            self.assertEqual(lines[0], "#!/bin/bash")
            self.assertIn(f"cd {os.getcwd()} || exit", lines)
        study = self.read()
        self.assertEqual([study["schema"], study["command"]], ["howmany.study/1", list(COMMAND)])
        self.assertEqual([(job["nodes"], job["job_id"]) for job in study["jobs"]],
                         [(1, "101"), (2, "102"), (4, "103")])

    def test_the_job_measures_with_the_options_and_the_command(self):
        self.submit("--rounds", "2", "--private", "--devices", "cuda:0-3", "--min-efficiency=0.7", "--quiet", nodes="2")
        words = self.words_in(self.study / "nodes-2.sh")
        self.assertEqual(words[:6], [str(programs.BIN.resolve() / "howmany"), "gpus", "--nodes", "2", "--out",
                                     f"{self.study}/nodes-2"])
        dashes = words.index("--")
        self.assertEqual(words[dashes + 1:], list(COMMAND))
        options = words[6:dashes]
        for name, value in (("--rounds", "2"), ("--devices", "cuda:0-3"), ("--min-efficiency", "0.7"),
                            ("--time-budget", "660")):
            self.assertEqual(options[options.index(name) + 1], value)
        self.assertIn("--private", options)
        self.assertFalse({"--submit", "--quiet"} & set(options))

    def test_lists_and_repeated_options_arrive(self):
        self.submit("--model", "mlp", "--model", "simple_net", "--mode", "ddp,pipeline:micro_batches=2", "--mode",
                    "single", nodes="1", command=())
        words = self.words_in(self.study / "nodes-1.sh")
        self.assertEqual([words[i + 1] for i, word in enumerate(words) if word == "--model"], ["mlp", "simple_net"])
        self.assertEqual(",".join(words[i + 1] for i, word in enumerate(words) if word == "--mode"),
                         "ddp,pipeline:micro_batches=2,single")

    def test_one_job_for_all(self):
        self.submit("--one-job", "--device-count", "1,4,8", nodes="1,2")
        (words,) = self.slurm.jobs().values()
        script = pathlib.Path(words[-1])
        self.assertIn("#SBATCH --nodes=2\n", script.read_text())
        words = self.words_in(script)
        self.assertEqual(words[2:6], ["--nodes", "1,2", "--out", f"{self.study}/all"])
        self.assertEqual([words[i + 1] for i, word in enumerate(words) if word == "--device-count"], ["1", "4", "8"])

    def test_a_given_time_budget_stays(self):
        self.submit("--time-budget", "99", nodes="1")
        words = self.words_in(self.study / "nodes-1.sh")
        self.assertEqual([words[i + 1] for i, word in enumerate(words) if word == "--time-budget"], ["99"])

    def test_the_example_submits(self):
        done = subprocess.run(["bash", SOURCE / "examples/slurm/submit.sh", SBATCH, "1,2", *COMMAND], text=True,
                              capture_output=True, cwd=self.folder,
                              env={**os.environ, **self.slurm.environment(f"{programs.BIN.resolve()}:/usr/bin:/bin"),
                                   "OUT": str(self.study)})
        self.assertEqual((done.returncode, self.slurm.started()), (0, []), done)
        self.assertEqual([self.words_in(pathlib.Path(words[-1]))[3] for words in self.slurm.jobs().values()], ["1", "2"])

    def test_the_reason_of_sbatch_is_printed_and_the_rest_can_be_submitted(self):
        self.slurm.refuse("sbatch: error: AssocMaxSubmitJobLimit")
        done = self.gpus(nodes="1,2")
        self.assert_refused(done, "AssocMaxSubmitJobLimit", f"--resume {self.study} --submit", code=3)
        _, jobs = self.collected()
        self.assertEqual({job["state"] for job in jobs.values()}, {"NOT_SUBMITTED"})
        self.slurm.accept()
        self.resume("--submit", SBATCH)
        self.assertEqual(len(self.slurm.jobs()), 2)


class DryRun(Study):
    def test_submits_and_writes_nothing(self):
        done = self.gpus("--dry-run")
        self.assertEqual(done.code, 0, done)
        self.assertEqual((self.slurm.jobs(), self.study.exists()), ({}, False))
        self.assertEqual(done.out.count("#!/bin/bash"), 4)
        checked = subprocess.run(["bash", "-n"], input=done.out, text=True, capture_output=True)
        self.assertEqual((checked.returncode, checked.stderr), (0, ""))

    def test_says_the_most_that_the_jobs_cost(self):
        study = self.gpus("--dry-run", "--json").json()
        self.assertEqual([job["device_hours"] for job in study["jobs"]], [1, 2, 4, 8])
        self.assertEqual((study["device_hours"], study["node_hours"]), (15, 3.75))
        self.assertEqual(len(study["jobs"][3]["text"].split("#SBATCH --nodes=8")), 2)

    def cost(self, words, nodes="2"):
        done = self.gpus("--dry-run", "--json", nodes=nodes, submit=f"sbatch {words}")
        self.assertEqual(done.code, 0, done)
        study = done.json()
        return study["node_hours"], study["device_hours"]

    def test_reads_time_limits_as_slurm_does(self):
        for words, hours in (("-t 30", 0.5), ("-t30", 0.5), ("--time=90:00", 1.5), ("--time 1:30:00", 1.5),
                             ("-t 1-12", 36), ("-t 1-0:30", 24.5), ("-t 0-0:30:00", 0.5), ("-t 60 -t 30", 0.5)):
            with self.subTest(words):
                self.assertEqual(self.cost(words), (2 * hours, None))
        for words in ("", "-t 0", "-t infinite", "-t 1:2:3:4", "-A x-t"):
            with self.subTest(words):
                self.assertEqual(self.cost(words), (None, None))

    def test_counts_the_gpus_of_the_words(self):
        for words, gpus in (("--gpus-per-node=4", 8), ("--gpus-per-node a100:4", 8), ("--gpus=6", 6), ("-G6", 6),
                            ("--gres=gpu:4", 8), ("--gres=gpu:a100:4,lscratch:20", 8), ("--gres=gpu", 2)):
            with self.subTest(words):
                self.assertEqual(self.cost(f"-t 60 {words}"), (2, gpus))


class Refused(Study):
    def test_what_a_study_cannot_have(self):
        for more, options, word in (((), {"submit": "qsub -l nodes=2"}, "--one-job"),
                                    ((), {"submit": "sbatch -N 2"}, "--nodes"),
                                    ((), {"submit": "sbatch --array=1-3"}, "--array"),
                                    ((), {"submit": "sbatch -M other"}, "--clusters"),
                                    ((), {"submit": "sbatch -A x job.sh"}, "job.sh"),
                                    ((), {"submit": "sbatch 'x"}, "--submit"),
                                    (("--hosts", "file"), {}, "--hosts"),
                                    (("--emit", "slurm"), {}, "--emit"),
                                    (("--in-copy",), {}, "--in-copy"),
                                    (("--device-count", "1,2"), {}, "--device-count"),
                                    (("--up-to", "64"), {}, "howmany predict"),
                                    (("--model", "mlp"), {}, "--model"),
                                    (("--rate", "x"), {"command": ()}, "--rate"),
                                    ((), {"command": ("python", "-c", "pass")}, "-c")):
            with self.subTest(more=more, **options):
                self.assert_refused(self.gpus(*more, **options), word)
                self.assertFalse(self.study.exists())
        self.assert_refused(self.howmany("gpus", "--submit", SBATCH, "--", *COMMAND), "--nodes")
        self.assertEqual(self.slurm.jobs(), {})

    def test_a_folder_that_holds_a_study(self):
        self.submit(nodes="1")
        self.assert_refused(self.gpus(nodes="1"), "holds a run already")

    def test_a_folder_that_a_job_script_cannot_name(self):
        self.study = self.folder / "a\nb"
        self.assert_refused(self.gpus("--dry-run"), "control characters")

    def test_no_sbatch(self):
        (self.slurm.folder / "bin" / "sbatch").unlink()
        done = self.howmany("gpus", "--submit", "sbatch", "--nodes", "1", "--out", self.study, "--", *COMMAND,
                            PATH=f"{self.slurm.folder}/bin")
        self.assert_refused(done, "sbatch")
        self.assertFalse(self.study.exists())

    def test_other_options_with_resume(self):
        self.submit(nodes="1")
        for more in (("--rounds", "5"), ("--nodes", "2"), ("--", "python", "other.py")):
            with self.subTest(more):
                self.assert_refused(self.howmany("gpus", "--resume", self.study, *more), "study")
        self.assert_refused(self.howmany("gpus", "--resume", self.folder, "--submit", SBATCH), "no study")

    def test_an_edited_study(self):
        self.submit(nodes="1,2")
        good = self.read()
        for place, edit in (("jobs[0].job_id", lambda s: s["jobs"][0].update(job_id="1;rm -r x")),
                            ("jobs[0].job_id", lambda s: s["jobs"][0].update(job_id=7)),
                            ("jobs[1].script", lambda s: s["jobs"][1].update(script="../other.sh")),
                            ("jobs[1].nodes", lambda s: s["jobs"][1].update(nodes=64)),
                            ("jobs", lambda s: s["jobs"].pop()),
                            ("nodes[0]", lambda s: s.update(nodes=[0, 2])),
                            ("nodes[1]", lambda s: s.update(nodes=[2, 1])),
                            ("nodes", lambda s: s.update(nodes=[])),
                            ("command[0]", lambda s: s.update(command=[1])),
                            ("options", lambda s: s.pop("options")),
                            ("one_job", lambda s: s.update(one_job="no")),
                            ("schema", lambda s: s.update(schema="howmany.study/9"))):
            with self.subTest(place):
                bad = json.loads(json.dumps(good))
                edit(bad)
                (self.study / "study.json").write_text(json.dumps(bad))
                self.assert_refused(self.howmany("gpus", "--resume", self.study), "study.json", place)

    def test_a_study_that_others_can_write(self):
        self.addCleanup(os.umask, os.umask(0))
        self.submit(nodes="1")
        self.assertEqual([(self.study / name).stat().st_mode & 0o022 for name in ("", "study.json", "nodes-1.sh")],
                         [0, 0, 0])
        (self.study / "study.json").chmod(0o664)
        self.assert_refused(self.howmany("gpus", "--resume", self.study), "other users")


class Collected(Study):
    """Results as of nodes with 2 devices, made from those of one node."""

    @classmethod
    def setUpClass(cls):
        maker = fake.Fake()
        maker.setUp()
        cls.addClassCleanup(maker.doCleanups)
        done = maker.howmany("gpus", "--devices", "cpu:0,cpu:1", "--device-count", "2", "--mode", "ddp", "--rounds", "3",
                             "--out", maker.out, "--samples", "5M")
        assert done.code == 0, done
        cls.one_node = maker.out

    def setUp(self):
        super().setUp()
        self.submit(nodes="1,2,4", command=())

    def come(self, nodes, rate=1.0):
        """Puts the results of a job: `nodes` times the devices, all at `rate` times the speed."""
        out = self.study / f"nodes-{nodes}"
        shutil.copytree(self.one_node, out)
        plan, summary = (json.loads((out / name).read_text()) for name in ("plan.json", "summary.json"))
        across = {"names": [f"n{i}" for i in range(nodes)], "launcher": "srun", "source": "Slurm job 7",
                  "environment": []}
        for request in (plan["request"], summary["context"]["howmany_request"]):
            request["counts"] = [2 * nodes]
            if nodes > 1:
                request["nodes"] = across
        for m in summary["measurements"]:
            more = nodes if m["parameters"]["devices"] == "2" else 1
            m["parameters"].update(devices=str(more * int(m["parameters"]["devices"])), nodes=str(more))
            for name, by in (("samples_per_s", more * rate), ("speedup", more)):
                for key in ("value", "low", "high"):
                    if m["metrics"].get(name, {}).get(key) is not None:
                        m["metrics"][name][key] *= by
        (out / "plan.json").write_text(json.dumps(plan))
        (out / "summary.json").write_text(json.dumps(summary))
        (self.study / f"nodes-{nodes}.exit").write_text("0\n")
        self.slurm.set_state({1: "101", 2: "102", 4: "103"}[nodes], "COMPLETED")
        return summary

    def speedups(self, summary):
        return {m["parameters"]["devices"]: m["metrics"]["speedup"]["value"] for m in summary["measurements"]
                if m["parameters"]["mode"] == "ddp"}

    def test_before_anything_has_come(self):
        summary, jobs = self.collected()
        self.assertEqual({job["state"] for job in jobs.values()}, {"PENDING"})
        self.assertEqual(summary["measurements"], [])
        self.assertFalse((self.study / "summary.json").exists())
        self.assertIn("Missing: ", self.resume().out)

    def test_after_one_job(self):
        self.slurm.set_state("103", "RUNNING")
        self.come(2)
        summary, jobs = self.collected()
        self.assertEqual([jobs[n]["state"] for n in (1, 2, 4)], ["PENDING", "COMPLETED", "RUNNING"])
        self.assertEqual([(row["devices"], row["nodes"]) for row in summary["answer"]["gpus"]["table"]],
                         [(1, 1), (4, 2)])
        out = self.resume().out
        self.assertLess(out.index("Missing: "), out.index(summary["answer"]["gpus"]["because"][:30]))

    def test_after_all_jobs(self):
        one, two, four = (self.come(nodes, rate) for nodes, rate in ((1, 1.0), (2, 1.1), (4, 0.9)))
        summary, jobs = self.collected()
        self.assertEqual({job["state"] for job in jobs.values()}, {"COMPLETED"})
        gpus = summary["answer"]["gpus"]
        self.assertEqual([(row["devices"], row["nodes"]) for row in gpus["table"]], [(1, 1), (2, 1), (4, 2), (8, 4)])
        self.assertEqual(self.speedups(summary), {**self.speedups(one), **self.speedups(two), **self.speedups(four)})
        self.assertEqual((gpus["recommended"], gpus["reason"], gpus["samples_to_train"]), (8, "pays", 5e6))
        self.assertEqual([row["devices"] for row in gpus["one_node"]], [4, 8])
        request = summary["context"]["howmany_request"]
        self.assertEqual(request["counts"], [2, 4, 8])
        (spread,) = [f for f in summary["measurements"][0]["flags"] if f.startswith("rates of one device")]
        self.assertIn("3 jobs, 22.2 %", spread)
        self.assertTrue(any("3 jobs, 22.2 %" in note for note in gpus["cases"][0]["notes"]))
        self.assertNotIn("Missing", self.resume().out)
        self.assertEqual(self.read("summary.json")["answer"], summary["answer"])

    def test_the_folder_is_that_of_a_run(self):
        for nodes in (1, 2, 4):
            self.come(nodes)
        self.resume()
        checked = subprocess.run([sys.executable, SOURCE / "tests/support/check_schema.py",
                                  SOURCE / "reports/summary.schema.json", self.study / "summary.json"],
                                 capture_output=True, text=True)
        self.assertIn(checked.returncode, (0, 77), checked)
        report = self.howmany("report", self.study, "--json")
        self.assertEqual(report.json()["answer"]["gpus"]["recommended"], 8)
        self.assertIn("#SBATCH --nodes=4\n", self.howmany("report", self.study, "--emit", "slurm").out)
        self.assertIn("#SBATCH --nodes=4\n", self.resume("--emit", "slurm").out)
        self.assertTrue((self.study / "report.html").exists() and (self.study / "summary.csv").exists())

    def test_jobs_that_end_badly_are_named_and_submitted_again_alone(self):
        self.come(1)
        (self.study / "nodes-4.out").write_text("starting\nslurmstepd: error: *** JOB 103 DUE TO TIME LIMIT ***\nFiles: x\n\n")
        for state in ("TIMEOUT", "PREEMPTED", "FAILED", "NODE_FAIL", "CANCELLED by 1000"):
            with self.subTest(state):
                self.slurm.set_state("103", state)
                summary, jobs = self.collected(code=3)
                self.assertEqual((jobs[4]["state"], jobs[4]["complete"]), (state.split()[0], False))
                self.assertIn("TIME LIMIT", jobs[4]["why"])
                self.assertEqual(summary["answer"]["gpus"]["recommended"], 2)
        self.assertIn(f"--resume {self.study} --submit", self.resume(code=3).out)
        self.resume("--submit", "sbatch -t 40")
        (words,) = [words for job, words in self.slurm.jobs().items() if job > "103"]
        self.assertEqual(words, ["-t", "40", "--parsable", str(self.study / "nodes-4.sh")])
        self.assertEqual(self.words_in(self.study / "nodes-4.sh")[6:8], ["--time-budget", "1860"])
        _, jobs = self.collected()
        self.assertEqual([(jobs[n]["job_id"], jobs[n]["state"]) for n in (1, 2, 4)],
                         [("101", "COMPLETED"), ("102", "PENDING"), ("104", "PENDING")])

    def test_nothing_is_submitted_twice(self):
        self.come(1)
        self.assert_refused(self.howmany("gpus", "--resume", self.study, "--submit", SBATCH), "nothing to submit")
        self.assertEqual(len(self.slurm.jobs()), 3)

    def test_states_without_accounting_are_those_of_the_files(self):
        self.come(1)
        (self.study / "nodes-2.exit").write_text("")  # the disk was full
        for job in ("101", "102", "103"):
            self.slurm.forget(job)
        _, jobs = self.collected(code=3)
        self.assertEqual([jobs[n]["state"] for n in (1, 2, 4)], ["COMPLETED", "FAILED", "NOT_IN_QUEUE"])

    def test_sacct_is_enough(self):
        (self.slurm.folder / "queue").unlink()
        (self.slurm.folder / "accounting").touch()
        self.slurm.set_state("103", "OUT_OF_MEMORY")
        _, jobs = self.collected(code=3)
        self.assertEqual([jobs[n]["state"] for n in (1, 2, 4)], ["PENDING", "PENDING", "OUT_OF_MEMORY"])

    def test_jobs_are_unknown_if_slurm_does_not_answer(self):
        (self.slurm.folder / "queue").unlink()
        self.come(1)
        _, jobs = self.collected()
        self.assertEqual([jobs[n]["state"] for n in (1, 2, 4)], ["COMPLETED", "UNKNOWN", "UNKNOWN"])
        self.assert_refused(self.howmany("gpus", "--resume", self.study, "--submit", SBATCH), "nothing to submit")

    def test_results_of_other_devices_are_left_out(self):
        self.come(1)
        self.come(2)
        plan = self.read("nodes-2/plan.json")
        plan["request"].update(devices=["cpu:0", "cpu:1", "cpu:2"], counts=[6])
        (self.study / "nodes-2/plan.json").write_text(json.dumps(plan))
        summary, jobs = self.collected()
        self.assertIn("left out", jobs[2]["why"])
        self.assertEqual([row["devices"] for row in summary["answer"]["gpus"]["table"]], [1, 2])

    def edit(self, path, change):
        json_of = self.read(path)
        change(json_of)
        (self.study / path).write_text(json.dumps(json_of))

    def test_a_failed_baseline_is_replaced(self):
        self.come(1)
        self.come(2)
        self.edit("nodes-1/summary.json", lambda s: s["measurements"][0].update(metrics={}, flags=["failed: no memory"]))
        summary, _ = self.collected()
        self.assertEqual(summary["answer"]["gpus"]["recommended"], 4)
        self.assertEqual(summary["measurements"][0]["flags"], [])

    def test_a_script_that_fails_on_several_nodes_is_named(self):
        self.come(1)
        self.come(2)
        self.edit("nodes-2/summary.json", lambda s: s.update(measurements=s["measurements"][:1]))
        self.edit("nodes-2/summary.json",
                  lambda s: s["measurements"][0]["flags"].append("fails on several nodes: no route to host"))
        gpus = self.collected()[0]["answer"]["gpus"]
        self.assertEqual((gpus["recommended"], gpus["certain"]), (2, False))
        self.assertTrue(any("no route to host" in note for note in gpus["cases"][0]["notes"]))

    def test_a_script_that_uses_one_device_is_named(self):
        self.come(1)
        self.come(2)
        for nodes in (1, 2):
            self.edit(f"nodes-{nodes}/summary.json", lambda s: s.update(measurements=s["measurements"][:1]))
        self.edit("nodes-2/summary.json", lambda s: s["measurements"][0].update(
            flags=["uses one device", "fails with several ranks: no GPU"]))
        gpus = self.collected()[0]["answer"]["gpus"]
        self.assertEqual(gpus["reason"], "uses_one_device")
        self.assertIn("no GPU", gpus["because"])

    def test_another_machine_is_named(self):
        for nodes in (1, 2, 4):
            self.come(nodes)
        self.edit("nodes-2/plan.json", lambda p: p["machine"].update(cpu="another one"))
        self.edit("nodes-4/plan.json", lambda p: p["machine"].update(
            memory_bytes=p["machine"]["memory_bytes"] - 8192))
        summary, jobs = self.collected()
        self.assertIn("another one", jobs[2]["why"])
        self.assertEqual((jobs[4]["why"], summary["answer"]["gpus"]["recommended"]), ("", 8))

    def test_unreadable_results_do_not_hide_the_others(self):
        self.come(1)
        self.come(2)
        (self.study / "nodes-2/summary.json").write_text("{")
        summary, jobs = self.collected()
        self.assertIn("summary.json", jobs[2]["why"])
        self.assertEqual([row["devices"] for row in summary["answer"]["gpus"]["table"]], [1, 2])


class Script(fake.Fake):
    """A job script that bash runs, with a fake bench on one node."""

    def test_leaves_results_and_keeps_those_of_an_earlier_start(self):
        slurm = fake_slurm.Slurm(self.folder / "slurm")
        study = self.folder / "a 'study' 100%"
        path = f"{slurm.folder}/bin:{os.environ['PATH']}"
        done = self.howmany("gpus", "--submit", "sbatch", "--nodes", "1", "--out", study, "--devices", "cpu:0,cpu:1",
                            "--mode", "ddp", "--rounds", "1", PATH=path)
        self.assertEqual(done.code, 0, done)
        for starts in (1, 2):
            ran = subprocess.run(["bash", study / "nodes-1.sh"], env={**os.environ, **self.environment},
                                 capture_output=True, text=True, timeout=100)
            self.assertEqual(ran.returncode, 0, ran)
            self.assertEqual((study / "nodes-1.exit").read_text(), "0\n")
            self.assertEqual(len(list(study.glob("nodes-1*/summary.json"))), starts)
        slurm.set_state("101", "COMPLETED")
        summary = self.howmany("gpus", "--resume", study, "--json", PATH=path).json()
        self.assertEqual([row["devices"] for row in summary["answer"]["gpus"]["table"]], [1, 2])

    def test_leaves_the_exit_code_of_a_failure(self):
        slurm = fake_slurm.Slurm(self.folder / "slurm")
        done = self.howmany("gpus", "--submit", "sbatch", "--nodes", "1", "--out", self.out, "--devices", "cpu:0,cpu:1",
                            "--mode", "ddp", "--rounds", "1", PATH=f"{slurm.folder}/bin:{os.environ['PATH']}")
        self.assertEqual(done.code, 0, done)
        ran = subprocess.run(["bash", self.out / "nodes-1.sh"], capture_output=True, text=True, timeout=100,
                             env={**os.environ, **self.environment, "FAKE_FAIL": '{"ddp@2": "exit"}'})
        self.assertEqual((ran.returncode, (self.out / "nodes-1.exit").read_text()), (3, "3\n"))


class RealSlurm(programs.TestCase):
    def test_a_job_measures_and_its_answer_comes(self):
        try:
            cluster = slurm_cluster.Cluster()
        except (slurm_cluster.CannotStart, OSError, subprocess.SubprocessError) as problem:
            self.skipTest(f"no Slurm here: {problem}")
        self.addCleanup(cluster.stop)
        study = self.folder / "a 'study' 5%j"
        environment = {"SLURM_CONF": cluster.environment["SLURM_CONF"]}
        done = programs.run("howmany", "gpus", "--submit", "sbatch -t 10 --cpus-per-task=2", "--nodes", "1", "--model",
                            "simple_net", "--mode", "data_parallel", "--devices", "cpu:0,cpu:1", "--rounds", "1",
                            "--out", study, "--json", **environment)
        self.assertEqual(done.code, 0, done)
        self.assertRegex(done.json()["jobs"][0]["job_id"], "^[0-9]+$")

        def complete():
            done = programs.run("howmany", "gpus", "--resume", study, "--json", **environment)
            self.assertEqual(done.code, 0, done)
            summary = done.json()
            return summary if summary["context"]["howmany_study"]["jobs"][0]["complete"] else None

        summary = self.wait_until("the job", complete, 120)
        self.assertEqual([row["devices"] for row in summary["answer"]["gpus"]["table"]], [1, 2])
        self.assertIn(summary["answer"]["gpus"]["because"][:20], (study / "nodes-1.out").read_text())


programs.main()
