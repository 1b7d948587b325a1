# SPDX-License-Identifier: Apache-2.0
# labels: process cpu_only
# timeout: 180
"""Tests `howmany` through the command line: answers, files and errors."""
import csv
import json
import os
import pathlib
import subprocess
import sys

import programs
from fake import HERE, Fake

SCHEMA = HERE.parent.parent / "reports" / "summary.schema.json"
COMPARE = pathlib.Path("/usr/share/benchmark/compare.py")


class Answer(Fake):
    def test_comes_first_then_the_table_then_the_files(self):
        done = self.gpus()
        self.assertEqual(done.code, 0, done)
        answer = self.summary()["answer"]["gpus"]
        self.assertEqual([answer["recommended"], answer["reason"]], [2, "pays"])
        self.assertTrue(" ".join(done.out.split()).startswith(answer["because"]), done)
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
                         ["plan.json", "report.html", "speedup.json", "speedup.samples.jsonl", "summary.csv",
                          "summary.json"])

    def test_the_page_says_what_the_terminal_says_and_report_writes_it_again(self):
        done = self.gpus()
        page = self.out / "report.html"
        text = page.read_text()
        self.assertIn(" ".join(done.out.split("\n20")[0].split())[:60], " ".join(text.split()))
        page.unlink()
        self.assertEqual(self.howmany("report", self.out, "--min-efficiency", "0.5").code, 0)
        self.assertIn("target 0.50", page.read_text())
        self.assertNotIn("target 0.50", text)

    def test_memory_estimates_the_batch_that_gpus_measures(self):
        for model in ("mlp", "resnet18", "simple_net"):
            with self.subTest(model):
                out = self.folder / model
                self.assertEqual(self.howmany("gpus", "--model", model, "--devices", "cpu:0", "--rounds", 1,
                                              "--out", out).code, 0)
                measured = json.loads((out / "plan.json").read_text())["request"]["workloads"][0]["batch"]
                estimated = programs.run("howmany", "memory", "--model", model, "--json").json()
                self.assertEqual(estimated["rows"][0]["batch_per_device"], measured)

    def test_report_prints_where_its_page_cannot_be_written(self):
        self.gpus()
        page = self.out / "report.html"
        page.unlink()
        page.mkdir()
        done = self.howmany("report", self.out)
        self.assertEqual(done.code, 0, done)
        self.assertTrue(done.out.startswith("Use 2 CPU devices"), done)
        self.assertIn("report.html is not written again: ", done.err)

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
        self.gpus("--rounds", "3", FAKE_SERIAL="0.9")
        answer = self.summary()["answer"]["gpus"]
        self.assertEqual([answer["recommended"], answer["reason"]], [1, "does_not_pay"])

    def test_gpus_get_a_line_for_the_job_script_and_cpus_do_not(self):
        done = self.howmany("gpus", "--mode", "ddp", "--out", self.out, FAKE_GPUS="4")
        self.assertIn("#SBATCH --nodes=1 --gpus-per-node=4\n", done.out)
        self.assertTrue(done.out.startswith("Use 4 GPUs"), done)
        other = self.howmany("gpus", "--mode", "ddp", "--out", self.folder / "cpu")
        self.assertNotIn("SBATCH", other.out)
        self.assertIn("not how GPUs would", other.out)

    def test_all_modes_are_those_the_build_tells_and_are_compared(self):
        done = self.gpus("--mode", "all")
        ran = {(run["mode"], run["backend"]) for run in self.started()}
        self.assertEqual(ran, {("single", "local"), ("data_parallel", "local"), ("ddp", "gloo")})
        self.assertRegex(" ".join(done.out.split()), r"On 2 CPU devices ddp over gloo is the fastest way, "
                                                     r"efficiency \d\.\d\d; data_parallel \d\.\d\d\.")

    def test_options_of_a_mode_may_hold_commas(self):
        self.gpus("--mode", "single,ddp:a=0:x,1:y,b=2+c")
        self.assertEqual({run["mode"] for run in self.started()}, {"single", "ddp", "ddp:a=0:x,1:y,b=2+c"})

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

    def test_the_tour_says_first_that_it_measured_cpu_cores_and_what_answers_for_gpus(self):
        done = self.howmany("--out", self.out, "--rounds", "1", FAKE_CORES="2")
        self.assertRegex(done.out, r"\A(?s:Measured on the CPU cores .*?howmany gpus --model \w+ --cluster \w+ --up-to \d+)")
        on_gpus = self.howmany("--out", self.folder / "gpus", "--rounds", "1", FAKE_GPUS="2")
        self.assertNotIn("--cluster", on_gpus.out)

    def test_json_prints_the_summary_and_nothing_else(self):
        done = self.gpus("--json", "--quiet")
        self.assertEqual((done.code, done.err), (0, ""))
        self.assertEqual(done.out, (self.out / "summary.json").read_text())

    def test_progress_goes_to_stderr_a_line_a_run(self):
        told = self.gpus("--backend", "gloo").err.splitlines()
        lines = [line for line in told if line.startswith("[")]
        self.assertEqual(len(lines), 3)
        self.assertRegex(lines[0], r"^\[1/3\] mlp, single, 1 device, round 1 of 1: .* a step \(.*elapsed, about .* left\)$")

    def test_report_renders_the_same_again_and_answers_other_questions(self):
        measured = self.gpus("--rounds", "3").out
        self.assertEqual(self.howmany("report", self.out).out, measured)
        self.assertEqual(self.howmany("report", self.out / "summary.json").out, measured)
        other = self.howmany("report", self.out, "--min-efficiency", "1.5", "--samples", "2k")
        self.assertTrue(other.out.startswith("Use 1 CPU device"), other)
        self.assertIn("2 k samples", other.out)

    def test_the_time_budget_leaves_out_rounds_but_no_configuration(self):
        done = self.gpus("--rounds", "900", "--time-budget", "2")
        self.assertEqual(done.code, 0, done)
        self.assertIn("time budget", done.err)
        self.assertEqual({m["case"] for m in self.summary()["measurements"]}, {"single/mlp", "ddp/mlp"})


class Start(Fake):
    """What a run does before it measures."""

    def test_a_run_announces_itself_unless_quiet(self):
        announced = self.gpus().err
        for word in ("Measuring mlp", "single and ddp", "1 and 2 CPU devices", "3 configurations", str(self.out)):
            self.assertIn(word, announced)
        self.out = self.folder / "quiet"
        self.assertEqual(self.gpus("--quiet").err, "")

    def test_runs_of_one_second_have_folders_of_their_own(self):
        words = [programs.BIN.resolve() / "howmany", "gpus", "--devices", "cpu:0,cpu:1", "--mode", "ddp", "--rounds",
                 "1", "--json"]
        runs = [subprocess.Popen(words, cwd=self.folder, env={**os.environ, **self.environment}, text=True,
                                 stdout=subprocess.PIPE, stderr=subprocess.PIPE) for _ in range(3)]
        for run in runs:
            out, err = run.communicate(timeout=120)
            self.assertEqual(run.returncode, 0, err)
            self.assertEqual(len(json.loads(out)["measurements"]), 3)
        self.assertEqual(len(list((self.folder / "howmany-out").glob("*/summary.json"))), 3)

    def test_a_folder_with_other_files_is_refused(self):
        self.out.mkdir()
        (self.out / "thesis.txt").write_text("text")
        self.assert_refused(self.gpus(), str(self.out), "not empty")
        self.assertEqual([path.name for path in self.out.iterdir()], ["thesis.txt"])

    def test_the_tour_refuses_a_login_node(self):
        tools = self.folder / "slurm"
        tools.mkdir()
        (tools / "sinfo").write_text("#!/bin/sh\necho 'gpu* up infinite 4 idle node[1-4]'\n")
        (tools / "sinfo").chmod(0o755)
        path = f"{tools}:{os.environ['PATH']}"
        few = ("--rounds", "1", "--devices", "cpu:0")
        self.assert_refused(self.howmany("run", *few, "--out", self.out, PATH=path), "login node", "srun",
                            "howmany gpus")
        self.assertEqual(self.howmany("gpus", *few, "--out", self.out, PATH=path).code, 0)
        in_a_job = self.howmany("run", *few, "--out", self.folder / "b", PATH=path, SLURM_JOB_ID="7")
        self.assertEqual(in_a_job.code, 0, in_a_job)


class Refusal(Fake):
    def test_cores_are_not_measured_in_place_of_the_gpus_of_a_job(self):
        done = self.howmany("gpus", "--out", self.out, SLURM_GPUS_ON_NODE="2")
        self.assertEqual(done.code, 2, done)
        self.assertIn("SLURM_GPUS_ON_NODE", done.err)
        self.assertEqual(self.gpus(SLURM_GPUS_ON_NODE="2").code, 0)

    def test_counts_that_the_devices_do_not_have(self):
        for options in (("--nodes", "2"), ("--device-count", "3")):
            done = self.gpus(*options)
            self.assertEqual(done.code, 2, done)
            self.assertIn(options[0] if options[0] == "--nodes" else "2 given", done.err)
        self.assertEqual(self.gpus("--device-count", "2").code, 0)
        self.assertEqual(sorted({m["parameters"]["devices"] for m in self.summary()["measurements"]}), ["1", "2"])

    def refused(self, words, *arguments, **environment):
        self.assert_refused(self.howmany(*arguments, **environment), *words)
        self.assertEqual(self.started(), [])

    def test_unknown_names_with_the_nearest(self):
        self.refused(["mpl", "did you mean mlp?"], "gpus", "--model", "mpl", "--out", self.out)
        self.refused(["did you mean ddp?"], "gpus", "--mode", "dpd", "--out", self.out)
        self.refused(["did you mean gloo?"], "gpus", "--backend", "glo", "--out", self.out)
        self.refused(["did you mean gpus?"], "gpu")
        self.refused(["unknown option --round; did you mean --rounds?"], "gpus", "--round", "3")
        self.refused(["unknown option --batch; did you mean --batch-per-device?"], "gpus", "--batch", "3")
        self.refused(['"cpu:0" is not expected there', "howmany gpus --help"], "gpus", "cpu:0", "cpu:1")
        self.refused(["did you mean quick?"], "run", "--preset", "quik")
        self.assertFalse(self.out.exists())

    def test_what_cannot_be_measured(self):
        self.refused(["--oversubscribe"], "gpus", "--devices", "cpu:0,cpu:9", "--out", self.out)
        self.refused(["--global-batch 1 is smaller"], "gpus", "--devices", "cpu:0,cpu:1", "--global-batch", "1")
        self.refused(["twice"], "gpus", "--devices", "cpu:0,cpu:0", "--out", self.out)
        self.refused(["--samples", "lots"], "gpus", "--samples", "lots")
        self.refused(["--batch-per-device"], "gpus", "--batch-per-device", "0")

    def test_numbers_that_are_none(self):
        for command, option in (("gpus", "--time-budget"), ("gpus", "--run-timeout"), ("selftest", "--run-timeout"),
                                ("transfer", "--time-budget"), ("workers", "--time-budget"),
                                ("backend", "--time-budget")):
            for value in ("nan", "inf", "-1", "0", "1e999", "5x"):
                self.refused([f'{option}: expected a number above 0, not "{value}"'], command, f"{option}={value}")
        self.refused(['--min-efficiency: expected a number from 0.01 to 2, not "nan"'], "report", self.out,
                     "--min-efficiency", "nan")
        self.refused(['--max-wait-percent: expected a number from 0.01 to 99, not "nan"'], "workers", "--max-wait-percent", "nan")

    def test_numbers_that_are_too_large(self):
        self.refused(["--samples", '"1e99" is not a count above 0 and up to 1e15'], "gpus", "--samples", "1e99")
        self.refused(["--time-budget: 1e300 is too large: 1e9 is the most"], "backend", "--time-budget", "1e300")

    def test_batches_that_no_memory_holds(self):
        for value in (str(2 ** 30 + 1), "9223372036854775807", "99999999999999999999", "0"):
            for option in ("--batch-per-device", "--global-batch"):
                self.refused([f'{option}: expected a whole number from 1 to 1073741824, not "{value}"'], "gpus", option,
                             value)
            self.refused([f'--batch-per-device: expected a whole number from 1 to 1073741824, not "{value}"'], "transfer",
                         "--batch-per-device", value)

    def test_a_list_with_a_value_that_is_empty(self):
        for devices in ("", "cpu:0,", ",cpu:0", "cpu:0,,cpu:1"):
            self.refused(["--devices", "is empty"], "--devices", devices)
        self.refused(["--mode", "is empty"], "--mode", "ddp,")

    def test_transfers_of_no_size_or_into_no_folder(self):
        self.assert_refused(self.howmany("transfer", "--min-bytes", "1G", "--max-bytes", "1K"),
                            "--min-bytes 1073741824 is above --max-bytes 1024")
        self.assert_refused(self.howmany("transfer", "--out", ""), "--out")

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


class Readers(Fake):
    def test_the_report_of_a_tour_is_that_of_the_tour(self):
        done = self.howmany("run", "--rounds", "1", "--out", self.out)
        self.assertEqual(self.howmany("report", self.out).out, done.out)
        resumed = self.howmany("gpus", "--resume", self.out)
        self.assertEqual(resumed.out.splitlines()[0], done.out.splitlines()[0])

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
        done = subprocess.run([sys.executable, HERE.parent / "support" / "check_schema.py", SCHEMA, *paths], capture_output=True, text=True)
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
        self.assertRegex(self.howmany("--version").out, r"^howmany \d+\.\d+\.\d+ \(commit ")

    def test_programs_get_their_arguments(self):
        # The fake program prints the same JSON for all arguments, so this only tests that it ran.
        self.assertIn("cpu_devices", self.howmany("devices", "--json").json())


if __name__ == "__main__":
    programs.main()
