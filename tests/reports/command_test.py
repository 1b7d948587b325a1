# labels: process
# timeout: 180
"""`howmany` as a user meets it, with programs that imitate the bench (fake_bench.py)."""
import collections
import csv
import json
import os
import pathlib
import signal
import subprocess
import sys
import time

import programs

HERE = pathlib.Path(__file__).resolve().parent
SCHEMA = HERE.parent.parent / "reports" / "summary.schema.json"
COMPARE = pathlib.Path("/usr/share/benchmark/compare.py")


class Fake(programs.TestCase):
    def setUp(self):
        super().setUp()
        self.out = self.folder / "out"
        self.log = self.folder / "log"
        tools = self.folder / "bin"
        tools.mkdir()
        for name in ("speedup_bench", "howmany-devices", "howmany-train"):
            (tools / name).symlink_to(HERE / "fake_bench.py")
        self.environment = {"HOWMANY_BENCH_DIR": str(tools), "FAKE_LOG": str(self.log)}

    def howmany(self, *arguments, **environment):
        return programs.run("howmany", *arguments, timeout=120, **{**self.environment, **environment})

    def gpus(self, *more, **environment):
        """One round of single and ddp on 1 and 2 devices: three runs."""
        return self.howmany(*self.arguments(), *more, **environment)

    def arguments(self):
        return ("gpus", "--devices", "cpu:0,cpu:1", "--mode", "ddp", "--rounds", "1", "--out", self.out)

    def started(self):
        return [json.loads(line) for line in self.log.read_text().splitlines()] if self.log.exists() else []

    def summary(self):
        return json.loads((self.out / "summary.json").read_text())

    def samples(self):
        return [json.loads(line) for line in (self.out / "speedup.samples.jsonl").read_text().splitlines()]

    def rows(self):
        return json.loads((self.out / "speedup.json").read_text())["benchmarks"]


class Answer(Fake):
    def test_comes_first_then_the_table_then_the_files(self):
        done = self.gpus()
        self.assertEqual(done.code, 0, done)
        self.assertTrue(done.out.startswith("Ask for 2 CPU devices, because 2 with ddp over gloo "), done)
        self.assertTrue(done.out.rstrip().endswith(f"Files: {self.out}"), done)
        self.assertNotIn("\033", done.out + done.err)

    def test_every_file_is_left_and_they_agree(self):
        self.assertEqual(self.gpus().code, 0)
        self.assertEqual([len(self.rows()), len(self.samples())], [3, 3])
        summary = self.summary()
        self.assertEqual(len(summary["measurements"]), 3)
        with open(self.out / "summary.csv", newline="") as file:
            rows = list(csv.DictReader(file))
        for m in summary["measurements"]:
            mine = {r["metric"]: r for r in rows if (r["case"], r["devices"]) == (m["case"], m["parameters"]["devices"])}
            self.assertEqual({k: float(r["value"]) for k, r in mine.items()},
                             {k: v["value"] for k, v in m["metrics"].items()})
        self.assertEqual(sorted(p.name for p in self.out.iterdir()),
                         ["plan.json", "speedup.json", "speedup.samples.jsonl", "summary.csv", "summary.json"])

    def test_speedup_is_that_of_the_known_curve(self):
        self.gpus("--rounds", "3", "--mode", "ddp", FAKE_SERIAL="0.25", FAKE_NOISE="0.001")
        row = self.summary()["answer"]["gpus"]["table"][-1]
        self.assertAlmostEqual(row["efficiency"], 1 / 1.25, delta=0.01)
        self.assertAlmostEqual(row["speedup"], 2 / 1.25, delta=0.02)

    def test_strong_scaling_divides_the_global_batch(self):
        self.gpus("--global-batch", "64", "--rounds", "3", FAKE_SERIAL="0.25", FAKE_NOISE="0.001")
        row = self.summary()["answer"]["gpus"]["table"][-1]
        self.assertAlmostEqual(row["speedup"], 1 / (0.25 + 0.75 / 2), delta=0.02)
        self.assertEqual(self.summary()["measurements"][-1]["parameters"]["global_batch"], "64")
        self.assertEqual({run.get("global-batch") for run in self.started()}, {"64"})

    def test_nothing_pays(self):
        done = self.gpus("--rounds", "3", FAKE_SERIAL="0.9")
        self.assertTrue(done.out.startswith("Stay on 1 CPU device, because more does not pay for mlp"), done)
        self.assertEqual(self.summary()["answer"]["gpus"]["recommended"], 1)

    def test_gpus_get_a_line_for_the_job_script_and_cpus_do_not(self):
        done = self.howmany("gpus", "--mode", "ddp", "--out", self.out, FAKE_GPUS="4")
        self.assertIn("#SBATCH --nodes=1 --gpus-per-node=4\n", done.out)
        self.assertTrue(done.out.startswith("Ask for 4 GPUs, because"), done)
        other = self.howmany("gpus", "--mode", "ddp", "--out", self.folder / "cpu")
        self.assertNotIn("SBATCH", other.out)
        self.assertIn("not how GPUs would", other.out)

    def test_every_round_measures_everything_once_in_another_order(self):
        self.gpus("--rounds", "4")
        order = [(run["mode"], run["devices"]) for run in self.started()]
        rounds = [order[i:i + 3] for i in range(0, 12, 3)]
        self.assertEqual(rounds[0], rounds[1][::-1])
        self.assertEqual({len(set(r)) for r in rounds}, {3})
        self.assertEqual([r["repetition_index"] for r in self.rows()], [0, 1, 2, 3] * 3)

    def test_the_default_is_the_quick_tour_of_two_models(self):
        done = self.howmany("--out", self.out, "--rounds", "1", FAKE_CORES="2")
        self.assertEqual(done.code, 0, done)
        self.assertEqual({run["model"] for run in self.started()}, {"mlp", "resnet18:image=64"})
        self.assertEqual([c["model"] for c in self.summary()["answer"]["gpus"]["cases"]], ["mlp", "resnet18:image=64"])

    def test_json_prints_the_summary_and_nothing_else(self):
        done = self.gpus("--json", "--quiet")
        self.assertEqual((done.code, done.err), (0, ""))
        self.assertEqual(done.out, (self.out / "summary.json").read_text())

    def test_progress_goes_to_stderr_a_line_a_run(self):
        lines = self.gpus().err.splitlines()
        self.assertEqual(len(lines), 3)
        self.assertRegex(lines[0], r"^\[1/3\] mlp, single, 1 device, round 1 of 1: .* a step \(.*elapsed, about .* left\)$")

    def test_report_renders_the_same_again_and_answers_other_questions(self):
        measured = self.gpus("--rounds", "3").out
        self.assertEqual(self.howmany("report", self.out).out, measured)
        self.assertEqual(self.howmany("report", self.out / "summary.json").out, measured)
        other = self.howmany("report", self.out, "--min-efficiency", "1.5", "--samples", "2k")
        self.assertTrue(other.out.startswith("Stay on 1"), other)
        self.assertIn("2 k samples", other.out)

    def test_the_time_budget_leaves_out_rounds_but_no_configuration(self):
        done = self.gpus("--rounds", "900", "--time-budget", "2")
        self.assertEqual(done.code, 0, done)
        self.assertIn("time budget", done.err)
        self.assertEqual({m["case"] for m in self.summary()["measurements"]}, {"single/mlp", "ddp/mlp"})


class Failure(Fake):
    def assert_failed(self, how, words, *more):
        done = self.gpus("--run-timeout", "1", *more, FAKE_FAIL=json.dumps({"ddp@2": how}))
        self.assertEqual(done.code, 3, done)
        flags = self.summary()["measurements"][-1]["flags"]
        self.assertTrue(any(f.startswith("failed: ") and words in f for f in flags), flags)
        self.assertEqual([len(self.samples()), len(self.rows())], [2, 3])
        self.assertIn("Failed: ddp over gloo on 2 CPU devices", " ".join(done.out.split()))

    def test_exit_tells_its_last_line(self):
        self.assert_failed("exit", "exited with 3: [gloo] peer 1 closed")

    def test_death_tells_its_signal(self):
        self.assert_failed("die", "signal 9")

    def test_hang_is_ended(self):
        self.assert_failed("hang", "stopped after", "--time-budget", "0.5")

    def test_garbage_is_named(self):
        self.assert_failed("garbage", "not JSON")

    def test_error_of_the_bench_is_told(self):
        self.assert_failed("error", "the loss is wrong")

    def test_no_result_is_told(self):
        self.assert_failed("silent", "0 results")

    def test_without_a_baseline_there_is_no_answer(self):
        done = self.gpus(FAKE_FAIL='{"single@1": "exit"}')
        self.assertEqual(done.code, 3)
        self.assertTrue(done.out.startswith("No answer for mlp, because the baseline"), done)
        self.assertIsNone(self.summary()["answer"]["gpus"]["recommended"])

    def test_a_failed_configuration_is_not_tried_every_round(self):
        self.gpus("--rounds", "3", FAKE_FAIL='{"ddp@2": "exit"}')
        counts = collections.Counter((run["mode"], run["devices"]) for run in self.started())
        self.assertEqual(counts[("ddp", "cpu:0,cpu:1")], 1)
        self.assertEqual(counts[("single", "cpu:0")], 3)

    def test_oversubscribed_never_wins(self):
        done = self.howmany("gpus", "--mode", "ddp", "--devices", "cpu:0,cpu:1", "--oversubscribe", "--out", self.out,
                            FAKE_CORES="1")
        self.assertEqual(self.summary()["answer"]["gpus"]["recommended"], 1)
        self.assertIn("oversubscribed", done.out)


class Refusal(Fake):
    def refused(self, words, *arguments, **environment):
        self.assert_refused(self.howmany(*arguments, **environment), *words)
        self.assertEqual(self.started(), [])

    def test_unknown_names_with_the_nearest(self):
        self.refused(["mpl", "did you mean mlp?"], "gpus", "--model", "mpl", "--out", self.out)
        self.refused(["did you mean ddp?"], "gpus", "--mode", "dpd", "--out", self.out)
        self.refused(["did you mean gloo?"], "gpus", "--backend", "glo", "--out", self.out)
        self.refused(["did you mean gpus?"], "gpu")
        self.refused(["did you mean --rounds?"], "gpus", "--round", "3")
        self.refused(["did you mean quick?"], "run", "--preset", "quik")
        self.assertFalse(self.out.exists())

    def test_what_cannot_be_measured(self):
        self.refused(["--oversubscribe"], "gpus", "--devices", "cpu:0,cpu:9", "--out", self.out)
        self.refused(["--global-batch 1 is smaller"], "gpus", "--devices", "cpu:0,cpu:1", "--global-batch", "1")
        self.refused(["twice"], "gpus", "--devices", "cpu:0,cpu:0", "--out", self.out)
        self.refused(["--samples", "lots"], "gpus", "--samples", "lots")
        self.refused(["--batch-per-device"], "gpus", "--batch-per-device", "0")

    def test_what_the_bench_refuses_is_refused_before_measuring(self):
        self.refused(['unknown model "mpl"; did you mean mlp?'], "gpus", "--devices", "cpu:0-2", "--out", self.out,
                     FAKE_FAIL='{"ddp@3": "refuse"}')
        self.assertFalse(self.out.exists())

    def test_the_line_of_the_bench_is_passed_on(self):
        done = self.gpus(FAKE_FAIL='{"ddp@1": "usage"}')
        self.assertEqual(done.code, 2)
        self.assertEqual(done.err.splitlines()[-1], 'howmany: unknown model "mpl"; did you mean mlp?')
        self.assertEqual(len(self.samples()), 1)

    def test_a_folder_that_cannot_be_written(self):
        self.refused(["/proc/here"], "gpus", "--out", "/proc/here")
        (self.folder / "file").write_text("")
        self.refused(["file"], "gpus", "--out", self.folder / "file")

    def test_a_folder_that_holds_a_run(self):
        self.gpus()
        self.assert_refused(self.gpus(), "--resume")
        self.assertEqual(len(self.started()), 3)

    def test_missing_programs_are_named(self):
        self.refused(["howmany-devices", "HOWMANY_BENCH_DIR"], "gpus", HOWMANY_BENCH_DIR=str(self.folder))
        self.refused(["howmany-train"], "train", HOWMANY_BENCH_DIR=str(self.folder))

    def test_a_broken_summary_tells_the_place(self):
        self.gpus()
        summary = self.summary()
        summary["measurements"][0]["metrics"]["median_s"]["n"] = -1
        (self.out / "summary.json").write_text(json.dumps(summary))
        self.refused_report("measurements[0].metrics.median_s.n")
        summary["measurements"][0]["metrics"]["median_s"]["n"] = 1
        del summary["measurements"][0]["parameters"]["devices"]
        (self.out / "summary.json").write_text(json.dumps(summary))
        self.refused_report("devices")
        (self.out / "summary.json").write_text('{"schema":')
        self.refused_report("not JSON")

    def refused_report(self, words):
        self.assert_refused(self.howmany("report", self.out), words)


class Interrupted(Fake):
    def start_and_wait_for_the_hanging_run(self):
        """howmany whose run of ddp on 2 devices hangs, the first time."""
        fail = json.dumps({"ddp@2": "wait-once"})
        process = subprocess.Popen([programs.BIN / "howmany", *self.arguments()], text=True, stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, env={**os.environ, **self.environment, "FAKE_FAIL": fail})
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        while not (self.folder / "log.waited").exists():
            self.assertIsNone(process.poll(), "ended too early")
            time.sleep(0.01)
        return process

    def assert_bench_gone(self):
        pid = self.started()[-1]["pid"]
        while True:  # ctest's limit ends this, should it live on
            try:
                os.kill(pid, 0)
            except ProcessLookupError:
                return
            time.sleep(0.01)

    def interrupt(self, number):
        process = self.start_and_wait_for_the_hanging_run()
        process.send_signal(number)
        out, err = process.communicate()
        self.assert_bench_gone()
        return process.returncode, out, err

    def assert_kept(self, code, out, err):
        self.assertEqual(code, 3, err)
        self.assertIn("interrupted", err)
        self.assertIn(f"--resume {self.out}", err)
        self.assertTrue(out.startswith("Stay on 1 CPU device, because nothing above 1 was measured"), out)
        self.assertEqual(len(self.samples()), 2)

    def test_ctrl_c_keeps_what_was_measured_and_answers(self):
        self.assert_kept(*self.interrupt(signal.SIGINT))

    def test_sigterm_does_the_same(self):
        self.assert_kept(*self.interrupt(signal.SIGTERM))

    def test_resume_measures_only_what_is_missing(self):
        self.interrupt(signal.SIGINT)
        done = self.howmany("gpus", "--resume", self.out)
        self.assertEqual(done.code, 0, done)
        self.assertTrue(done.out.startswith("Ask for 2"), done)
        self.assertEqual(len(self.started()), 4)
        self.assertEqual([len(self.samples()), len(self.rows())], [3, 3])

    def test_a_killed_run_keeps_its_files_and_resumes(self):
        code, _, _ = self.interrupt(signal.SIGKILL)
        self.assertEqual(code, -signal.SIGKILL)
        self.assertEqual([len(self.samples()), len(self.summary()["measurements"])], [2, 3])
        self.assertEqual(self.howmany("gpus", "--resume", self.out).code, 0)
        self.assertEqual(len(self.samples()), 3)
        self.assertFalse(any(p.name.startswith(".") for p in self.out.iterdir()))

    def test_resume_tries_again_what_failed(self):
        self.gpus(FAKE_FAIL='{"ddp@2": "exit"}')
        done = self.howmany("gpus", "--resume", self.out)
        self.assertEqual(done.code, 0, done)
        self.assertEqual(len(self.started()), 4)

    def test_resume_of_a_finished_run_measures_nothing(self):
        first = self.gpus()
        again = self.howmany("gpus", "--resume", self.out)
        self.assertEqual((again.code, again.out), (0, first.out))
        self.assertEqual(len(self.started()), 3)

    def test_resume_refuses_other_arguments_but_not_another_question(self):
        self.gpus()
        self.assert_refused(self.howmany("gpus", "--resume", self.out, "--mode", "data_parallel"), "mode", "ddp")
        self.assert_refused(self.howmany("gpus", "--resume", self.out, "--seed", "7"), "seed")
        self.assertEqual(self.howmany("gpus", "--resume", self.out, "--min-efficiency", "0.5").code, 0)
        self.assertEqual(self.howmany("gpus", "--resume", self.out, "--mode", "ddp").code, 0)

    def test_resume_refuses_another_machine_and_other_programs(self):
        self.gpus()
        plan = json.loads((self.out / "plan.json").read_text())
        for key in ("cpu", "programs"):
            changed = {**plan, "machine": {**plan["machine"], key: "other"}}
            (self.out / "plan.json").write_text(json.dumps(changed))
            self.assert_refused(self.howmany("gpus", "--resume", self.out), key, "start afresh")

    def test_resume_of_nothing_is_refused(self):
        self.assert_refused(self.howmany("gpus", "--resume", self.folder / "none"), "plan.json")


class Readers(Fake):
    def test_summaries_hold_to_the_schema(self):
        self.howmany("run", "--rounds", "1", "--out", self.out)
        self.howmany("gpus", "--rounds", "3", "--out", self.folder / "b", FAKE_FAIL='{"ddp@2": "exit"}')
        self.howmany("gpus", "--rounds", "1", "--out", self.folder / "c", FAKE_FAIL='{"single@1": "exit"}')
        paths = [folder / "summary.json" for folder in (self.out, self.folder / "b", self.folder / "c")]
        done = self.check_schema(*paths)
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_the_schema_refuses_what_is_wrong(self):
        self.gpus()
        good = self.summary()
        for path, value in ((("schema",), "x"), (("measurements", 0, "flags"), [1]),
                            (("measurements", 0, "metrics", "cv", "n"), -1), (("answer", "gpus", "recommended"), 0)):
            bad = json.loads(json.dumps(good))
            place = bad
            for step in path[:-1]:
                place = place[step]
            place[path[-1]] = value
            (self.folder / "bad.json").write_text(json.dumps(bad))
            self.assertEqual(self.check_schema(self.folder / "bad.json").returncode, 1, path)

    def check_schema(self, *paths):
        done = subprocess.run([sys.executable, HERE / "check_schema.py", SCHEMA, *paths], capture_output=True, text=True)
        if done.returncode == 77:
            self.skipTest("python3-jsonschema is missing")
        return done

    def test_google_benchmarks_compare_reads_speedup_json(self):
        if not COMPARE.exists() or subprocess.run([sys.executable, "-c", "import scipy"], capture_output=True).returncode:
            self.skipTest("libbenchmark-tools or python3-scipy is missing")
        self.gpus("--rounds", "3", FAKE_FAIL='{"ddp@2": "exit"}')
        done = subprocess.run([sys.executable, COMPARE, "--no-color", "benchmarks", self.out / "speedup.json",
                               self.out / "speedup.json"], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(done.stdout, r"speedup/ddp/mlp/.*devices:1/.*_pvalue +1\.0000 .*Repetitions: 3 vs 3")


class Help(Fake):
    def test_every_help_has_examples(self):
        for command in ([], ["run"], ["gpus"], ["report"]):
            done = self.howmany(*command, "--help")
            self.assertEqual(done.code, 0)
            self.assertIn("Examples:\n  howmany", done.out)

    def test_version(self):
        self.assertRegex(self.howmany("--version").out, r"^howmany \d+\.\d+\.\d+\n$")

    def test_programs_get_their_arguments(self):
        # The imitation prints its JSON whatever it is told, so that it ran is all there is to see.
        self.assertIn("cpu_devices", self.howmany("devices", "--json").json())


if __name__ == "__main__":
    programs.main()
