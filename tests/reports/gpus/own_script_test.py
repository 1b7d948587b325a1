# SPDX-License-Identifier: Apache-2.0
# labels: process
# timeout: 300
"""Tests `howmany gpus -- CMD` with a script that writes the records of the hook itself, so without
PyTorch. tests/benches/script/matrix_test.py has real scripts."""

import json
import pathlib
import re
import subprocess
import sys

import programs
from clusters import cpu_cluster, straggler_factor

SCRIPT = pathlib.Path(__file__).resolve().parent / "recorded_script.py"
PRINTING = SCRIPT.parent / "printing_program.py"


class OwnScript(programs.TestCase):
    def gpus(self, *arguments, options=(), rounds=3, **environment):
        self.out = self.folder / "out"
        return programs.run("howmany", "gpus", "--devices", "cpu:0,cpu:1", "--oversubscribe", "--rounds", rounds,
                            "--out", self.out, *options, "--", sys.executable, SCRIPT, "{n}", *arguments,
                            timeout=200, **environment)

    def summary(self):
        return json.loads((self.out / "summary.json").read_text())

    def answer(self, done):
        self.assertEqual(done.code, 0, done)
        return self.summary()["answer"]["gpus"]

    def speedups(self):
        return [m["metrics"]["speedup"]["value"] for m in self.summary()["measurements"]]

    def test_names_the_script_its_mode_and_its_backend(self):
        answer = self.answer(self.gpus())
        rows = [(row["devices"], row["mode"], row["backend"]) for row in answer["table"]]
        self.assertEqual(rows, [(1, "single", "local"), (2, "ddp", "gloo")])
        self.assertEqual(answer["cases"][0]["model"], "recorded_script.py")

    def test_the_lost_time_has_parts(self):
        done = self.gpus(RECORDED_WAIT="0.3")
        self.answer(done)
        why = self.summary()["answer"]["why"]
        one, two = why["counts"]
        self.assertEqual([one["devices"], one["cause"], one["refused"]], [1, "data", None])
        for count in why["counts"]:
            self.assertAlmostEqual(sum(part["seconds"] for part in count["parts"]), count["lost_s"])
        self.assertAlmostEqual(one["parts"][0]["share"], 0.3, delta=0.01)
        self.assertEqual([two["devices"], two["cause"]], [2, None])
        self.assertTrue(two["refused"])  # its exchange was not recorded
        again = programs.run("howmany", "report", self.out)
        self.assertIn(" ".join(two["because"].split()), " ".join(again.out.split()))
        self.assertEqual(programs.run("howmany", "report", self.out, "--json").json()["answer"]["why"], why)
        done = subprocess.run([sys.executable, SCRIPT.parents[2] / "support" / "check_schema.py",
                               SCRIPT.parents[3] / "reports" / "summary.schema.json", self.out / "summary.json"],
                              capture_output=True, text=True, check=False)
        self.assertIn(done.returncode, (0, 77), done.stderr)

    def test_in_a_copy_the_folder_stays_as_it_is(self):
        (self.folder / "here").mkdir()
        (self.folder / "here" / "mine.txt").write_text("mine")
        script = self.folder / "here" / "writes.py"
        script.write_text(f"import runpy, sys\nopen('mine.txt', 'a').write(open('mine.txt').read())\n"
                          f"open('checkpoint', 'w').close()\nrunpy.run_path({str(SCRIPT)!r}, run_name='__main__')\n")
        done = subprocess.run([programs.BIN.resolve() / "howmany", "gpus", "--devices", "cpu:0", "--rounds", "1", "--out",
                               self.folder / "out", "--in-copy", "--", sys.executable, "writes.py", "{n}"],
                              cwd=script.parent, capture_output=True, text=True, check=False, timeout=200)
        self.assertGreater(len((self.folder / "out" / "speedup.samples.jsonl").read_text()), 0, done)
        self.assertEqual(sorted(file.name for file in script.parent.iterdir()), ["mine.txt", "writes.py"])
        self.assertEqual((script.parent / "mine.txt").read_text(), "mine")

    def test_says_which_variables_were_set(self):
        done = self.gpus(rounds=1)
        self.assertIn("WANDB_MODE=offline", self.summary()["context"]["script_environment"])
        self.assertIn("Set for your command: PYTHONPATH, WANDB_MODE=offline", " ".join(done.out.split()))

    def test_equal_batches_per_rank_are_weak_scaling(self):
        self.answer(self.gpus(RECORDED_SPEED="0.9"))
        self.assertEqual(self.summary()["measurements"][0]["parameters"]["scaling"], "weak")
        self.assertAlmostEqual(self.speedups()[1], 1.8, delta=0.05)

    def test_equal_global_batches_are_strong_scaling(self):
        self.answer(self.gpus("--strong", RECORDED_SPEED="1.6"))
        self.assertEqual(self.summary()["measurements"][1]["parameters"]["scaling"], "strong")
        self.assertAlmostEqual(self.speedups()[1], 1.6, delta=0.05)

    def test_a_run_that_fails_is_quoted_and_the_others_are_kept(self):
        done = self.gpus("--fail", 2)
        self.assertEqual(done.code, 3, done)
        failed = self.summary()["measurements"][1]["flags"][0]
        self.assertIn("the disk is full", failed)
        self.assertGreater(self.speedups_of_one(), 0)

    def speedups_of_one(self):
        return self.summary()["measurements"][0]["metrics"]["samples_per_s"]["value"]

    def test_the_job_script_runs_the_command_and_results_do_not_show_it(self):
        self.answer(self.gpus("--batch", "32"))
        job = programs.run("howmany", "report", self.out, "--emit", "slurm").out
        self.assertIn(f"{SCRIPT} 2 --batch 32", job)
        for name in ("summary.json", "summary.csv", "report.html", "speedup.json", "speedup.samples.jsonl"):
            self.assertNotIn("--batch 32", (self.out / name).read_text(), name)
            self.assertNotIn(str(SCRIPT.parent), (self.out / name).read_text(), name)

    def test_private_results_hold_no_name_and_no_message(self):
        done = self.gpus("--fail", 2, options=("--private",))
        self.assertEqual(done.code, 3, done)
        self.assertIn("exited with", self.summary()["measurements"][1]["flags"][0])
        for file in self.out.iterdir():
            if file.name == "plan.json":
                continue
            for secret in (SCRIPT.name, "the disk is full"):
                self.assertNotIn(secret, file.read_text(), file.name)
        self.assertIn(str(SCRIPT), (self.out / "plan.json").read_text())

    def test_an_interrupted_run_goes_on_with_the_same_command(self):
        self.answer(self.gpus(rounds=1))
        file = self.out / "speedup.json"
        bench = json.loads(file.read_text())
        bench["benchmarks"].pop()
        file.write_text(json.dumps(bench))
        done = programs.run("howmany", "gpus", "--resume", self.out)
        self.assertEqual(done.code, 0, done)
        self.assertEqual(len(json.loads(file.read_text())["benchmarks"]), 2)


class Beyond(programs.TestCase):
    """Numbers of devices that are not here."""

    def gpus(self, up_to, *arguments, devices="cpu:0,cpu:1", cluster=None, out="out", options=(), **environment):
        path = self.folder / "cluster.toml"
        path.write_text(cpu_cluster(latency_us=1000))
        self.out = self.folder / out
        return programs.run("howmany", "gpus", "--devices", devices, "--oversubscribe", "--rounds", 2, "--out",
                            self.out, "--up-to", up_to, "--cluster", cluster or path, *options, "--", sys.executable,
                            SCRIPT, "{n}", *arguments, timeout=200, **environment)

    def beyond(self, done):
        self.assertEqual(done.code, 0, done)
        return json.loads((self.out / "summary.json").read_text())["answer"]["beyond"]

    def test_kinds_of_evidence_are_apart_and_predictions_have_intervals(self):
        done = self.gpus(16)
        beyond = self.beyond(done)
        self.assertEqual([[row["devices"] for row in beyond[kind]] for kind in ("measured", "rehearsed", "predicted")],
                         [[1, 2], [16], [4, 8]])
        for row in beyond["rehearsed"] + beyond["predicted"]:
            self.assertLess(row["low"], row["samples_per_s"])
            self.assertLess(row["samples_per_s"], row["high"])
        rows = json.loads((self.out / "summary.json").read_text())["measurements"]
        self.assertEqual([row["suite"] for row in rows], ["speedup", "speedup", "rehearsal"])
        self.assertEqual(rows[2]["parameters"]["evidence"], "rehearsed")
        self.assertEqual([beyond["cluster"], beyond["devices_per_node"]], ["ours", 4])
        page = (self.out / "report.html").read_text()
        self.assertEqual([page.count(f'<tr class="{kind}">') for kind in ("measured", "rehearsed", "predicted")],
                         [2, 1, 2])

    def test_the_replay_agrees_with_a_rehearsal(self):
        of_more, again = self.beyond(self.gpus(32)), self.beyond(self.gpus(16, out="again"))
        replayed, rehearsed = of_more["predicted"][-1], again["rehearsed"][0]
        self.assertEqual([replayed["devices"], rehearsed["devices"]], [16, 16])
        without = [row["efficiency"] * straggler_factor(beyond, 16) / straggler_factor(beyond, 2)
                   for row, beyond in ((replayed, of_more), (rehearsed, again))]
        self.assertAlmostEqual(without[0] / without[1], 1, delta=0.02)

    def test_the_forecast_is_first_if_one_device_was_measured(self):
        for devices, first in (("cpu:0", True), ("cpu:0,cpu:1", False)):
            done = self.gpus(8, devices=devices, out=f"out-{first}")
            self.beyond(done)
            page = (self.out / "report.html").read_text()
            measured = re.search(r"devices +mode +backend", done.out).start()
            self.assertEqual(re.search(r"devices +evidence", done.out).start() < measured, first)
            self.assertEqual(page.index("More devices than were measured") < page.index("How many devices</h2>"), first)

    def test_the_report_shows_the_same(self):
        done = self.gpus(8)
        again = programs.run("howmany", "report", self.out)
        self.assertEqual(again.out, done.out)

    def test_limits_of_time_and_device_hours(self):
        self.assert_refused(self.gpus(8, options=("--budget", 3)), "--samples")
        beyond = self.beyond(self.gpus(8, options=("--samples", "1M", "--finish-within", 1, "--budget", 500)))
        self.assertEqual([beyond["samples"], beyond["finish_within_hours"], beyond["budget_device_hours"]], [1e6, 1, 500])
        self.assertIn("hours_high", beyond["rehearsed"][0])
        self.assertEqual(beyond["recommended"], 1)  # the fewest that finish
        again = programs.run("howmany", "report", self.out, "--samples", "1G", "--json").json()["answer"]["beyond"]
        self.assertIsNone(again["recommended"])

    def test_an_interrupted_run_goes_on_without_the_file(self):
        self.beyond(self.gpus(8))
        (self.out / "speedup.json").unlink()
        (self.folder / "cluster.toml").unlink()
        self.assert_refused(programs.run("howmany", "gpus", "--resume", self.out, "--up-to", 16), "--up-to")
        done = programs.run("howmany", "gpus", "--resume", self.out, timeout=200)
        self.assertEqual(self.beyond(done)["rehearsed"][0]["devices"], 8)

    def test_its_steps_are_replayed_on_another_cluster(self):
        rehearsed = self.beyond(self.gpus(16))["rehearsed"][0]
        same = programs.run("howmany", "predict", self.out, "--cluster", self.folder / "cluster.toml", "--up-to", 16, "--json")
        self.assertEqual([row["devices"] for row in same.json()["rehearsed"]], [16])
        self.assertAlmostEqual(same.json()["rehearsed"][0]["efficiency"] / rehearsed["efficiency"], 1, delta=0.02)
        slower = self.folder / "slower.toml"
        slower.write_text(cpu_cluster(latency_us=1000, name="slower", gbit_per_s=1))
        other = programs.run("howmany", "predict", self.out, "--cluster", slower, "--up-to", 16, "--json").json()
        self.assertEqual([other["rehearsed"], [row["devices"] for row in other["predicted"]]], [[], [4, 8, 16]])
        self.assertLess(other["predicted"][-1]["efficiency"], 0.9 * rehearsed["efficiency"])
        self.assert_refused(programs.run("howmany", "predict", self.out, "--cluster", "a100x8", "--up-to", 16), "A100")

    def test_in_strong_scaling_only_the_rehearsed_number_is_known(self):
        beyond = self.beyond(self.gpus(8, "--strong", "--batch", "64"))
        self.assertEqual(beyond["scaling"], "strong")
        self.assertEqual([row["devices"] for row in beyond["rehearsed"]], [8])
        self.assertEqual([(row["devices"], "refused" in row) for row in beyond["predicted"]], [(4, True)])

    def test_clusters_that_say_nothing_are_refused_before_measuring(self):
        for up_to, cluster, words in ((16, "a100x8", "A100"), (16, "a100x9", "a100x9"), (2, None, "--up-to 2")):
            self.assert_refused(self.gpus(up_to, cluster=cluster), words)
            self.assertFalse(self.out.exists())
        done = programs.run("howmany", "gpus", "--devices", "cpu:0", "--up-to", 4)
        self.assert_refused(done, "--cluster")


class Rates(programs.TestCase):
    """A program without PyTorch that prints its rate."""

    def gpus(self, *words, pattern=r"(?<samples_per_s>[0-9.]+) img/s", options=()):
        self.out = self.folder / "out"
        done = programs.run("howmany", "gpus", "--devices", "cpu:0,cpu:1", "--rounds", 2, "--time-budget", 20,
                            "--out", self.out, "--rate", pattern, *options, "--", sys.executable, PRINTING, *words,
                            timeout=200)
        return done, json.loads((self.out / "summary.json").read_text()) if self.out.exists() else None

    def test_one_process_gets_all_the_devices(self):
        done, summary = self.gpus("rate", 100000)
        self.assertEqual(done.code, 0, done)
        one, two = summary["measurements"]
        self.assertAlmostEqual(one["metrics"]["samples_per_s"]["value"], 100)
        self.assertAlmostEqual(two["metrics"]["speedup"]["value"], 1.8)
        self.assertEqual(summary["answer"]["gpus"]["cases"][0]["recommended"], 2)
        self.assertIn("rate from the program's own output", two["flags"])
        self.assertIn("data wait not visible", two["flags"])
        self.assertNotIn("median_s", two["metrics"])
        self.assertNotIn("data_wait_fraction", two["metrics"])
        self.assertNotIn("scaling", two["parameters"])
        for name in ("summary.json", "report.html", "speedup.json"):
            self.assertNotIn("img/s", (self.out / name).read_text(), name)
        again = programs.run("howmany", "report", self.out)
        self.assertEqual(again.code, 0, again)
        job = programs.run("howmany", "report", self.out, "--emit", "slurm").out
        self.assertIn(f"{PRINTING.name} rate 100000", job)

    def test_seconds_per_step(self):
        _, summary = self.gpus("step", 100000, pattern=r": (?<step_s>[0-9.]+) s$",
                               options=("--samples-per-step", 64))
        two = summary["measurements"][1]
        self.assertAlmostEqual(two["metrics"]["median_s"]["value"], 64 / 180, places=3)
        self.assertEqual(two["parameters"]["global_batch"], "128")

    def test_a_program_that_prints_too_little(self):
        done, summary = self.gpus("rate", 3)
        self.assertEqual(done.code, 3, done)
        self.assertIn("matched 3 of the printed lines", summary["measurements"][0]["flags"][0])

    def test_what_does_not_go_together(self):
        for pattern, options, named in [("[0-9]+", (), "--rate"), ("(", (), "--rate"),
                                        ("(?<step_s>1)", (), "--samples-per-step"),
                                        ("(?<samples_per_s>1)", ("--samples-per-step", 8), "--samples-per-step"),
                                        ("(?<samples_per_s>1)", ("--try-ddp",), "--try-ddp")]:
            done, _ = self.gpus("rate", 3, pattern=pattern, options=options)
            self.assert_refused(done, named)
            self.assertFalse(self.out.exists())


class GateOfScripts(programs.TestCase):
    def gate(self, candidate, *options, base=f"{sys.executable} {SCRIPT} 1"):
        return programs.run("howmany", "gate", "--base-script", base, "--candidate-script", candidate, "--screen", 6,
                            "--pairs", 8, "--repetitions", 1, "--json", "--out", self.folder / "out",
                            *options, timeout=200)

    def verdict(self, done):
        rows = {row["metric"]: row["verdict"] for row in done.json()["rows"]}
        return rows["real_time"]

    def test_a_slower_script_is_found(self):
        done = self.gate(f"env RECORDED_STEP=0.02 {sys.executable} {SCRIPT} 1")
        self.assertEqual((done.code, self.verdict(done)), (1, "SLOWER"), done)

    def test_the_same_script_is_measured_and_not_slower(self):
        done = self.gate(f"{sys.executable} {SCRIPT} 1")
        self.assertEqual((done.code, self.verdict(done)), (0, "SAME"), done)

    def test_a_script_that_fails_is_a_failed_side(self):
        done = self.gate(f"{sys.executable} {SCRIPT} 1 --fail 1")
        self.assertEqual(done.code, 3, done)
        self.assertIn("the disk is full", done.err)

    def test_slow_starts_count_as_time(self):
        starts = self.folder / "starts"
        slow = self.folder / "slow.sh"
        slow.write_text(f'echo >> "{starts}"\nsleep 0.5\nexec "$@"\n')
        for budget in (1, 5):
            starts.unlink(missing_ok=True)
            done = self.gate(f"sh {slow} {sys.executable} {SCRIPT} 1", "--time-budget", budget, "--out",
                             self.folder / str(budget), base=f"sh {slow} {sys.executable} {SCRIPT} 1")
            self.assertEqual((done.code, self.verdict(done)), (5, "INCONCLUSIVE"), done)
            count = len(starts.read_text().splitlines())
            self.assertLessEqual(count, max(2, 1.2 * budget / 0.5))  # each takes 0.5 s, and each side starts once
            self.assertEqual(count % 2, 0)
            self.assertIn("of the 12 pairs that a verdict needs", " ".join(done.json()["notes"]))

    def test_one_script_is_not_enough(self):
        self.assert_refused(programs.run("howmany", "gate", "--base-script", "x", "--candidate", "y"),
                            "--candidate-script")


class Refusals(programs.TestCase):
    def refuse(self, *arguments):
        return programs.run("howmany", "gpus", "--out", self.folder / "out", *arguments)

    def test_options_that_the_script_decides(self):
        self.assert_refused(self.refuse("--mode", "ddp", "--", "python3", "t.py", "{n}"), "--mode")
        self.assert_refused(self.refuse("--global-batch", "8", "--", "python3", "t.py", "{n}"), "--global-batch")

    def test_commands_that_cannot_be_measured(self):
        self.assert_refused(self.refuse("--", "python3", "-c", "1"), "python -c")
        self.assert_refused(self.refuse("--", "/no/such/program", "{n}"), "/no/such/program")
        self.assert_refused(self.refuse("--"), "no command")
        self.assert_refused(programs.run("howmany", "report", "--", "x"), "howmany report")

    def test_options_of_scripts_without_a_script(self):
        for options in (("--rate", "x"), ("--private",), ("--in-copy",), ("--try-ddp",), ("--samples-per-step", 8)):
            self.assert_refused(self.refuse(*options), options[0])

    def test_nothing_is_left_of_a_refused_run(self):
        self.refuse("--", "python3", "-c", "1")
        self.assertEqual(list(self.folder.iterdir()), [])


if __name__ == "__main__":
    programs.main()
