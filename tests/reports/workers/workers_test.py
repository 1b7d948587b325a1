# SPDX-License-Identifier: Apache-2.0
# labels: process
# timeout: 180
"""Tests `howmany workers` through the command line: answers, files and errors."""
import csv
import json
import subprocess
import sys

import programs
from fake import HERE
from fake_workers import FakeLoader

SCHEMA = HERE.parent.parent / "reports" / "summary.schema.json"


class Answer(FakeLoader):
    def test_comes_first_then_the_line_to_paste_then_the_curve(self):
        done = self.workers("--samples-per-second", "900")
        self.assertEqual(done.code, 0, done)
        lines = done.out.splitlines()
        self.assertEqual(self.answer()["recommended"], 2)
        self.assertEqual(self.answer()["reason"], "feeds_demand")
        self.assertIn("DataLoader(dataset, batch_size=64, num_workers=2, prefetch_factor=2, persistent_workers=True, "
                      "pin_memory=True)", done.out)
        self.assertIn("--cpus-per-task=3", done.out)
        self.assertIn("/dev/shm", done.out)
        self.assertTrue(done.out.rstrip().endswith(f"Files: {self.out}"), done)
        self.assertNotIn("\033", done.out + done.err)

    def test_how_busy_others_were_is_recorded(self):
        self.assertEqual(self.workers("--samples-per-second", "900", "--max-wait-percent", "2").code, 0)
        busy = json.loads((self.out / "summary.json").read_text())["context"]["busy_elsewhere_fraction"]
        self.assertTrue(0 <= busy <= 1, busy)

    def test_a_sweep_then_the_numbers_around_the_answer(self):
        for demand in ((), ("--samples-per-second", "1300")):
            out = self.folder / f"out{len(demand)}"
            self.log.unlink(missing_ok=True)
            self.assertEqual(self.workers(*demand, out=out).code, 0)
            self.assertEqual(set(self.trials()[0]), {0, 1, 2, 4, 8})
            self.assertLessEqual({3, 4}, set(self.trials()[1]))
            self.assertTrue(all(float(run["time-budget"]) <= 60 for run in self.started() if "cache" not in run))

    def test_without_a_demand_the_knee(self):
        done = self.workers()
        self.assertEqual(done.code, 0, done)
        self.assertEqual(self.answer()["recommended"], 4)
        self.assertTrue(self.answer()["certain"], done)
        runs = {r["workers"]: r["runs"] for r in self.answer()["table"]}
        self.assertEqual(sorted(runs), [0, 1, 2, 3, 4, 8])
        self.assertGreaterEqual(min(runs[w] for w in (3, 4, 8)), 5)
        self.assertIn("No demand was given", done.out)
        self.assertIsNone(self.answer()["feeds"])

    def test_how_far_a_large_folder_is_listed_is_told_unless_quiet(self):
        large = {"FAKE_FAIL": '{"look": "listing"}'}
        self.assertIn("photos: 5000000 files listed\n", self.workers(**large).err)
        self.assertEqual(self.workers("--quiet", out=self.folder / "quiet", **large).err, "")

    def test_files_that_could_not_be_read_are_told_with_what_training_does(self):
        note = ("2 of 21 files could not be read and were left out, the first is cat/7.jpg: empty; howmany train "
                "refuses such data unless --on-bad-image skip.")
        data_note = "The data: 24 files of a format that is not read: .bmp."
        done = self.workers("--workers", "1", FAKE_FAIL='{"look": "bad files"}')
        self.assertEqual(done.code, 0, done)
        self.assertIn(note, " ".join(done.out.split()))
        self.assertIn(note, self.answer()["notes"])
        self.assertIn(data_note, self.answer()["notes"])
        self.assertNotIn("left out", self.workers("--workers", "1", out=self.folder / "good").out)

    def test_no_count_can(self):
        done = self.workers("--samples-per-second", "9k")
        self.assertEqual(done.code, 0, done)
        self.assertEqual([self.answer()[key] for key in ("reason", "feeds", "recommended")], ["demand_not_met", False, 4])

    def test_a_short_budget_gives_each_number_one_turn(self):
        done = self.workers("--time-budget", "0.1")
        self.assertEqual(done.code, 0)
        self.assertEqual(self.trials(), [(0, 1, 2, 4, 8)])
        self.assertEqual(self.answer()["recommended"], 4)
        self.assertFalse(self.answer()["certain"])
        for line in ("pytorch", "slurm"):
            self.assertTrue(self.answer()[line].endswith("# uncertain"), self.answer())

    def test_the_table_shows_the_ratios_that_decide(self):
        self.assertEqual(self.workers().code, 0)
        rows = {row["workers"]: row for row in self.answer()["table"]}
        self.assertAlmostEqual(rows[2]["of_best"], 0.5)
        self.assertLessEqual(rows[2]["of_best_low"], rows[2]["of_best_high"])

    def test_a_small_shm_bounds_the_count_before_anything_runs(self):
        self.workers("--samples-per-second", "1900", FAKE_SHM="200e6")
        self.assertLessEqual(max(map(max, self.trials())), 1)
        self.assertIn("/dev/shm (PyTorch)", [b["what"] for b in self.answer()["bounds"] if b["most"] < 2])

    def test_every_file_is_left_and_they_agree(self):
        self.assertEqual(self.workers("--workers", "0,1,2").code, 0)
        self.assertEqual(sorted(p.name for p in self.out.iterdir()),
                         ["loader.json", "loader.samples.jsonl", "report.html", "summary.csv", "summary.json"])
        summary = json.loads((self.out / "summary.json").read_text())
        rows = json.loads((self.out / "loader.json").read_text())["benchmarks"]
        self.assertEqual(len(summary["measurements"]), len({row["name"] for row in rows}))
        run_again, = [m["metrics"]["samples_per_s"] for m in summary["measurements"]
                      if m["parameters"].get("workers") == "2" and m["parameters"].get("cache") != "cold"]
        runs = self.answer()["table"][2]["runs"]
        self.assertGreaterEqual(runs, 5)
        self.assertEqual((run_again["n"], run_again["basis"], round(run_again["value"])), (runs, "rounds", 1000))
        with open(self.out / "summary.csv", newline="") as file:
            told = list(csv.DictReader(file))
        self.assertEqual(len(told), sum(len(m["metrics"]) for m in summary["measurements"]))
        self.assertEqual([(r["workers"], r["runs"]) for r in self.answer()["table"]], [(w, runs) for w in (0, 1, 2)])
        self.assertEqual({workers for trial in self.trials() for workers in trial}, {0, 1, 2})

    def test_the_summary_holds_to_the_schema(self):
        self.workers("--samples-per-second", "900")
        done = subprocess.run([sys.executable, HERE.parent / "support" / "check_schema.py", SCHEMA, self.out / "summary.json"],
                              capture_output=True, text=True)
        if done.returncode == 77:
            self.skipTest("jsonschema is not installed")
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_json_prints_the_summary_and_nothing_else(self):
        done = self.workers("--json", "--quiet", "--workers", "1")
        self.assertEqual((done.code, done.err), (0, ""))
        self.assertEqual(done.out, (self.out / "summary.json").read_text())

    def test_report_renders_the_same_again(self):
        measured = self.workers("--samples-per-second", "900").out
        done = programs.run("howmany", "report", self.out, **self.environment)
        self.assertEqual(done.out, measured)

    def test_an_interrupted_run_can_be_read(self):
        for when, recommended in (("look", None), ("0", None), ("3", 4)):
            out = self.folder / when
            done = self.workers("--time-budget", "20", out=out, FAKE_FAIL=json.dumps({when: "interrupt"}))
            self.assertEqual(done.code, 130, done)
            self.assertIn(str(out), done.err)
            again = programs.run("howmany", "report", out, "--json")
            self.assertEqual(again.code, 0, again)
            answer = again.json()["answer"]["workers"]
            self.assertEqual((answer["recommended"], answer["certain"]), (recommended, False))

    def test_the_demand_of_an_earlier_run(self):
        done = programs.run("howmany", "gpus", "--devices", "cpu:0,cpu:1", "--mode", "ddp", "--rounds", "1", "--out",
                            self.folder / "gpus", timeout=120, **{**self.environment, "HOWMANY_BENCH_DIR": str(self.imitations())})
        self.assertEqual(done.code, 0, done)
        done = self.workers("--from", self.folder / "gpus")
        self.assertEqual(done.code, 0, done)
        self.assertGreater(self.answer()["demand"]["samples_per_s_per_device"], 0)
        self.assertIn(str(self.folder / "gpus"), self.answer()["demand"]["from"])

    def imitations(self):
        tools = self.folder / "bin"
        (tools / "howmany-devices").write_text((tools / "speedup_bench").read_text())
        (tools / "howmany-devices").chmod(0o755)
        return tools

    def test_the_demand_of_a_model_trained_now(self):
        done = self.workers("--model", "mlp", "--batch-per-device", "9")
        self.assertEqual(done.code, 0, done)
        self.assertAlmostEqual(self.answer()["demand"]["samples_per_s_per_device"], 900, delta=60)

    def test_a_worker_count_that_fails_is_named_and_3(self):
        for how in ("error", "exit", "die", "garbage"):
            done = self.workers("--workers", "1,2", out=self.folder / how, FAKE_FAIL=json.dumps({"2": how}))
            self.assertEqual(done.code, 3, done)
            self.assertIn("Failed: 2 workers", done.out)
            self.assertEqual(json.loads((self.out.parent / how / "summary.json").read_text())["answer"]["workers"]["recommended"], 1)
            self.assertTrue((self.folder / how / "summary.json").exists())


class Refusal(FakeLoader):
    def refused(self, words, *arguments, **environment):
        self.assert_refused(self.workers(*arguments, **environment), *words)
        self.assertEqual(self.started(), [])

    def test_copies_that_would_measure_each_other_are_refused(self):
        self.refused(("mpirun started this command 2 times", "--ranks"), OMPI_COMM_WORLD_SIZE="2")

    def test_numbers_that_are_none(self):
        self.refused(["--workers"], "--workers", "-1")
        self.refused(["--workers 10000"], "--workers", "10000")
        self.refused(["--workers two"], "--workers", "two")
        self.refused(["--ranks"], "--ranks", "0")
        self.refused(["--batch-per-device"], "--batch-per-device", "-3")
        self.refused(["--samples-per-second"], "--samples-per-second", "fast")
        self.refused(["--samples-per-second", '"1e30" is not a count'], "--samples-per-second", "1e30")
        self.refused(["--time-budget"], "--time-budget", "-1")

    def test_options_that_would_change_nothing(self):
        self.refused(["--device is the device of --model"], "--device", "cuda:0")
        self.refused(["--python is for --worker-type pytorch"], "--python", "python3")
        self.refused(["--start-method is for --worker-type pytorch"], "--start-method", "fork")
        self.refused(["--max-wait-percent is relative to a demand"], "--max-wait-percent", "2")
        self.assertFalse(self.out.exists())

    def test_data_that_pytorch_cannot_read(self):
        self.refused(["--worker-type pytorch needs --data DIR"], "--worker-type", "pytorch")

    def test_a_python_that_is_not_there(self):
        self.assert_refused(self.workers("--worker-type", "pytorch", "--python", "no-such-python", "--data", self.folder),
                            "no-such-python is not in PATH")

    def test_two_demands(self):
        self.refused(["give one"], "--model", "mlp", "--samples-per-second", "3")

    def test_a_misspelt_option(self):
        self.refused(["did you mean --device?"], "--device-s", "3")

    def test_a_folder_that_holds_a_run(self):
        self.assertEqual(self.workers("--workers", "1").code, 0)
        before = (self.out / "summary.json").read_text()
        self.assert_refused(self.workers("--workers", "2"), "holds a run already")
        self.assertEqual((self.out / "summary.json").read_text(), before)

    def test_a_demand_that_no_file_tells(self):
        self.refused(["none.json"], "--from", self.folder / "none.json")

    def test_what_the_bench_refuses(self):
        done = self.workers(FAKE_FAIL=json.dumps({"look": "usage"}))
        self.assertEqual(done.code, 2, done)
        self.assertIn("/nowhere does not exist", done.err)

    def test_limits_that_are_garbage(self):
        self.refused(["loader_limits"], FAKE_FAIL=json.dumps({"look": "limits"}))

    def test_too_little_memory_names_what_to_lower(self):
        done = self.workers(FAKE_FAIL=json.dumps({"look": "memory"}))
        self.assertEqual(done.code, 2, done)
        self.assertIn("lower --batch-per-device or --image-size", done.err)

    def test_more_devices_than_batches_fit_for_are_not_measured(self):
        done = self.workers("--ranks", "1024")
        self.assertEqual(done.code, 3, done)
        self.assertTrue(done.out.startswith("No answer: the batches of 1024 devices do not fit"), done)
        self.assertEqual(self.trials(), [])

    def test_a_folder_without_a_name(self):
        self.assert_refused(programs.run("howmany", "workers", "--out", "", **self.environment), "--out")

    def test_a_first_run_that_dies(self):
        for how in ("die", "exit", "garbage"):
            done = self.workers("--quiet", out=self.folder / how, FAKE_FAIL=json.dumps({"look": how}))
            self.assertIn(done.code, (2, 3), done)
            self.assertEqual(len(done.err.strip().splitlines()), 1, done)


if __name__ == "__main__":
    programs.main()
