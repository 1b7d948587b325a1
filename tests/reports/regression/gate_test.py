# SPDX-License-Identifier: Apache-2.0
# labels: process
# timeout: 300
"""Tests `howmany gate` on programs with known times: verdicts, files, errors and exit codes."""
import json
import os
import shutil
import signal
import subprocess
import sys
import time

import programs
from fake import HERE

QUICK = ("--screen", "6", "--pairs", "8", "--quiet", "--repetitions", "1")


class Gate(programs.TestCase):
    def setUp(self):
        super().setUp()
        self.out = self.folder / "out"
        self.log = self.folder / "log"
        program = (HERE / "fake_gbench.py").read_text().split("\n", 1)[1]
        self.program = self.folder / "fake_bench"
        self.program.write_text(f"#!{sys.executable} -S\n{program}")
        self.program.chmod(0o755)

    def command(self, how="", **times):
        return f"{self.program} 'times={json.dumps(times or {'a': 0.001, 'b': 0.002})}' how={how}"

    def gate(self, base, candidate, *more, quick=QUICK):
        return programs.run("howmany", "gate", "--base", base, "--candidate", candidate, "--out", self.out, *quick,
                            *more, timeout=200, FAKE_LOG=str(self.log))

    def started(self):
        return [json.loads(line) for line in self.log.read_text().splitlines()] if self.log.exists() else []

    def verdicts(self, done):
        rows = done.json()["rows"]
        return {(r["benchmark"], r["metric"]): r["verdict"] for r in rows}

    def samples(self, side):
        """The samples that a gate kept of a side: {benchmark: [block, ...]}."""
        blocks = {}
        for row in json.loads((self.out / f"{side}.json").read_text())["benchmarks"]:
            blocks.setdefault(row["name"], []).append(row["repetition_index"])
        return blocks

    def test_a_slowdown_is_found_and_confirmed_on_fresh_pairs(self):
        done = self.gate(self.command(a=0.001, b=0.002), self.command(a=0.0016, b=0.002), "--min-effect", "20%",
                         "--json")
        self.assertEqual(done.code, 1, done)
        self.assertEqual(self.verdicts(done)["a", "real_time"], "SLOWER")
        self.assertEqual(self.verdicts(done)["b", "bytes"], "SAME")
        told = " ".join(done.json()["notes"])
        self.assertIn("measured again, on fresh pairs", told)
        again = programs.run("howmany", "compare", self.out / "base.json", self.out / "candidate.json", "--json")
        self.assertTrue(again.json()["paired"])
        self.assertEqual(again.code, 1, again)

    def test_each_block_is_both_sides_once_and_each_is_first_equally_often(self):
        self.gate(self.command(), self.command(a=0.001, b=0.0021))
        blocks = self.samples("base")["a"]
        self.assertEqual(blocks, list(range(len(blocks))))
        candidate = ["0.0021" in " ".join(words) for words in self.started()[-2 * len(blocks):]]
        pairs = list(zip(candidate[::2], candidate[1::2]))
        self.assertTrue(all(sorted(pair) == [False, True] for pair in pairs), pairs)
        first = [pair[0] for pair in pairs]
        for pair in zip(first[::2], first[1::2]):
            self.assertNotEqual(*pair)

    def test_no_change_is_exit_0(self):
        done = self.gate(self.command(), self.command(a=0.001, b=0.002) + " x", "--json")
        self.assertEqual(done.code, 0, done)
        self.assertNotIn("SLOWER", self.verdicts(done).values())

    def test_a_metric_that_no_benchmark_has_is_refused_before_measuring(self):
        done = self.gate(self.command(), self.command(a=0.001, b=0.0021), "--metric", "byts")
        self.assert_refused(done, "did you mean bytes?")
        self.assertLess(len(self.started()), 10)

    def test_identical_programs_are_not_measured(self):
        copy = self.folder / "copy"
        shutil.copy(self.program, copy)
        done = self.gate(f"{self.program} x", f"{copy} x")
        self.assertEqual(done.code, 0, done)
        self.assertIn("identical", done.out)
        self.assertTrue(done.out.startswith("No regression in 0 measurements."), done)
        self.assertEqual(self.started(), [])
        self.assertFalse(self.out.exists())
        self.assertEqual(self.gate(f"{self.program} x", f"{copy} x", "--no-shortcut").code, 0)
        self.assertGreater(len(self.started()), 10)

    def test_exact_metrics_need_no_test(self):
        done = self.gate(self.command(), self.command("fat"), "--json")
        self.assertEqual(done.code, 1, done)
        self.assertEqual(self.verdicts(done)["a", "bytes"], "SLOWER")
        self.assertNotEqual(self.verdicts(done)["a", "real_time"], "SLOWER")

    def test_iterations_are_fixed_where_the_program_can(self):
        done = self.gate(self.command("new"), self.command("new", a=0.001, b=0.0021), "--json")
        self.assertNotIn("iterations: as each", " ".join(done.json()["notes"]))
        flags = [next(f for f in words if f.startswith("--benchmark_min_time")) for words in self.started()]
        self.assertEqual({f for f in flags[-20:]}, {"--benchmark_min_time=512x"})

    def test_programs_before_interleaving_and_before_fixed_iterations(self):
        done = self.gate(self.command("old"), self.command("old", a=0.001, b=0.0021), "--json")
        self.assertIn("iterations: as each process chooses them", done.json()["notes"])
        self.assertIn(done.code, (0, 1), done)

    def test_a_command_may_print_its_json(self):
        done = self.gate(self.command(), self.command(a=0.002, b=0.002), "--plain", "--json")
        self.assertEqual(done.code, 1, done)
        self.assertFalse(any(w.startswith("--benchmark") for words in self.started() for w in words))

    def test_a_side_that_fails_is_exit_3(self):
        for how, words in (("exit", ("candidate", "out of luck")), ("garbage", ("candidate", "left no results"))):
            with self.subTest(how):
                shutil.rmtree(self.out, ignore_errors=True)
                self.assert_refused(self.gate(self.command(), self.command(how)), *words, code=3)
        shutil.rmtree(self.out, ignore_errors=True)
        done = self.gate(self.command(), self.command("error"))
        self.assertEqual(done.code, 3, done)
        self.assertIn("the sum is wrong", done.out)

    def test_a_side_that_hangs_is_exit_3(self):
        self.assert_refused(self.gate(self.command(), self.command("hang"), "--run-timeout", "1"), "candidate",
                            "stopped after", code=3)

    def test_sides_of_two_machines_are_exit_4(self):
        done = self.gate(self.command(), self.command("elsewhere"))
        self.assert_refused(done, "num_cpus: 2 in the base, 4 in the candidate", code=4)

    def test_the_smallest_slowdown_that_it_finds_is_reported(self):
        done = self.gate(self.command(), self.command(a=0.001, b=0.002) + " x", "--json", "--min-effect", "50%")
        self.assertEqual(done.code, 0, done)
        for row in done.json()["rows"]:
            if row["metric"] == "real_time":
                _, high = row["change_interval"]
                self.assertEqual(row["verdict"], "SAME")
                self.assertGreater(row["finds"], 0.5 - high)
        self.assertIn("would have been found", " ".join(done.json()["notes"]))

    def test_the_time_budget_is_kept_and_said(self):
        done = self.gate(self.command(), self.command(a=0.001, b=0.0021), "--time-budget", "3", "--json",
                         quick=("--quiet", "--pairs", "5000"))
        self.assertIn("the time budget of 3 s allows", " ".join(done.json()["notes"]))

    def test_ctrl_c_keeps_what_was_measured(self):
        process = subprocess.Popen([programs.BIN / "howmany", "gate", "--base", self.command(), "--candidate",
                                    self.command(a=0.001, b=0.0021), "--out", self.out, "--pairs", "2000",
                                    "--time-budget", "500"], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
                                   env={**os.environ, "FAKE_LOG": str(self.log)})
        self.addCleanup(process.stderr.close)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        end = time.monotonic() + 60
        while len(self.started()) < 20:
            self.assertLess(time.monotonic(), end)
            time.sleep(0.02)
        process.send_signal(signal.SIGINT)
        told = process.communicate(timeout=60)[1]
        self.assertEqual(process.returncode, 130, told)
        self.assertIn(str(self.out), told)
        self.assertTrue(self.samples("base"))
        self.assertEqual(self.samples("base"), self.samples("candidate"))

    def test_build_folders(self):
        for side in ("old", "new"):
            (self.folder / side / "bin").mkdir(parents=True)
            text = self.program.read_text() + ("" if side == "old" else "# changed\n")
            (self.folder / side / "bin" / "x_bench").write_text(text)
            (self.folder / side / "bin" / "x_bench").chmod(0o755)
        builds = ("gate", "--base-build", self.folder / "old", "--candidate-build", self.folder / "new", "--out", self.out)
        done = programs.run("howmany", *builds, *QUICK, timeout=200)
        self.assertIn(done.code, (0, 1), done)
        self.assertIn("pairs of launches", done.out)
        self.assert_refused(programs.run("howmany", *builds, "--bench", "y_bench"), "y_bench")

    def test_usage(self):
        good = self.command()
        self.assert_refused(programs.run("howmany", "gate"), "--base CMD")
        self.assert_refused(programs.run("howmany", "gate", "--base", good), "--candidate")
        self.assert_refused(self.gate("/none/x", good), "/none/x")
        self.assert_refused(self.gate("'open", good), "quote")
        self.assert_refused(self.gate(good, good + " x", "--pairs", "2"), "--pairs")
        self.assertFalse(self.out.exists())
        self.out.mkdir()
        (self.out / "base.json").write_text("")
        self.assert_refused(self.gate(good, good + " x"), "--out")


class History(programs.TestCase):
    def line(self, i, ratio):
        return json.dumps({"commit": f"c{i:02}", "date": f"2026-01-{i + 1:02}", "benchmark": "x", "metric": "real_time",
                           "ratio": ratio * (1 + 0.002 * (i * 7 % 5 - 2))}) + "\n"

    def write(self, folder):
        for i in range(30):
            (folder / f"{i:02}.jsonl").write_text(self.line(i, 1.0 if i < 15 else 1.1))

    def test_a_folder_names_the_commits_and_never_blocks(self):
        self.write(self.folder)
        done = programs.run("howmany", "history", self.folder)
        self.assertEqual(done.code, 0, done)
        self.assertRegex(done.out, r"step +x +30 +1\.1\d\d +\+10\.\d % in c14\.\.c15")

    def test_long_names_and_large_ratios_are_short_in_the_table(self):
        out = self.folder / "h.jsonl"
        out.write_text("".join(json.dumps({"commit": "c" * 5000, "date": f"{i:02}", "benchmark": "b" * 5000,
                                           "metric": "m", "ratio": 1e308 if i > 9 else 1.0}) + "\n" for i in range(20)))
        done = programs.run("howmany", "history", out)
        self.assertIn("> 1000x", done.out)
        self.assertLess(max(map(len, done.out.splitlines())), 300)
        self.assertIn("b" * 5000, programs.run("howmany", "history", out, "--json").out)

    def test_a_git_branch_is_read_without_checking_it_out(self):
        git = ["git", "-C", str(self.folder), "-c", "user.name=x", "-c", "user.email=x@y"]
        subprocess.run([*git, "init", "-q", "-b", "results"], check=True)
        self.write(self.folder)
        subprocess.run([*git, "add", "."], check=True)
        subprocess.run([*git, "commit", "-q", "-m", "results"], check=True)
        done = subprocess.run([programs.BIN.resolve() / "howmany", "history", "git:results", "--json"], cwd=self.folder,
                              capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        series = json.loads(done.stdout)["series"][0]
        self.assertEqual((series["status"], series["steps"][0]["after"]), ("step", "c14"))

    def test_what_gates_write_is_read_back(self):
        base, candidate = self.folder / "a.json", self.folder / "b.json"
        for path, time_ns in ((base, 100), (candidate, 110)):
            rows = [{"name": "x", "repetition_index": i, "real_time": time_ns + i % 3} for i in range(12)]
            path.write_text(json.dumps({"context": {"commit": "abc", "date": "2026-01-01"}, "benchmarks": rows}))
        out = self.folder / "h.jsonl"
        programs.run("howmany", "compare", base, candidate, "--write", f"history={out}")
        self.assertEqual(json.loads(out.read_text())["commit"], "abc")
        self.assertIn("too short", programs.run("howmany", "history", out).out)

    def test_what_is_no_history(self):
        self.assert_refused(programs.run("howmany", "history", self.folder), "holds no history")
        self.assert_refused(programs.run("howmany", "history", self.folder / "none"), "none")
        self.assert_refused(programs.run("howmany", "history", "git:no-such-branch"), "git ls-tree")
        self.assert_refused(programs.run("howmany", "history", "git:--output=x"), "is not a branch")
        (self.folder / "bad.jsonl").write_text("{}\n")
        self.assert_refused(programs.run("howmany", "history", self.folder), "bad.jsonl:1")


programs.main()
