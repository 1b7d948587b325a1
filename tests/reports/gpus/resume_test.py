# SPDX-License-Identifier: Apache-2.0
# labels: process
# timeout: 180
"""Tests that results survive a failed measurement or an interrupt, and that --resume continues them."""
import collections
import json
import os
import re
import signal
import subprocess
import time

import programs
from fake import Fake


class Folders(programs.TestCase):
    def test_report_of_a_folder_without_an_answer_names_the_command(self):
        for name, remedy in (("plan.json", "--resume"), ("base.json", "howmany compare")):
            folder = self.folder / name
            folder.mkdir()
            (folder / name).write_text("{}")
            self.assert_refused(programs.run("howmany", "report", folder), str(folder), remedy)


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

    def test_a_hang_does_not_outlast_a_short_budget_by_minutes(self):
        done = self.gpus("--time-budget", "3", FAKE_FAIL='{"ddp@2": "hang"}')
        self.assertEqual(done.code, 3, done)
        stopped, = re.findall(r"stopped after (\d+) s without a result", " ".join(done.out.split()))
        self.assertNotEqual(int(stopped), 120, "the limit without a budget")

    def test_a_run_that_hangs_tells_what_to_do(self):
        for scaling, option in ((("--batch-per-device", "8"), "--batch-per-device"),
                                (("--global-batch", "8"), "--global-batch")):
            out = self.folder / option
            done = self.gpus("--run-timeout", "1", "--time-budget", "0.5", *scaling, "--out", out,
                             FAKE_FAIL='{"ddp@2": "hang"}')
            self.assertRegex(" ".join(done.out.split()),
                             rf"stopped after \d s without a result; try a smaller {option} or a larger "
                             r"--run-timeout\. ")

    def test_garbage_is_named(self):
        self.assert_failed("garbage", "not JSON")

    def test_error_of_the_bench_is_told(self):
        self.assert_failed("error", "the loss is wrong")

    def test_no_result_is_told(self):
        self.assert_failed("silent", "0 results")

    def test_without_a_baseline_there_is_no_answer(self):
        done = self.gpus(FAKE_FAIL='{"single@1": "exit"}')
        self.assertEqual(done.code, 3)
        self.assertTrue(done.out.startswith("No answer for mlp: the baseline"), done)
        self.assertIsNone(self.summary()["answer"]["gpus"]["recommended"])

    def test_a_failed_configuration_is_not_tried_every_round(self):
        self.gpus("--rounds", "3", FAKE_FAIL='{"ddp@2": "exit"}')
        counts = collections.Counter((run["mode"], run["devices"]) for run in self.started())
        self.assertEqual(counts[("ddp", "cpu:0,cpu:1")], 1)
        self.assertEqual(counts[("single", "cpu:0")], 3)

    def test_oversubscribed_never_wins(self):
        done = self.howmany("gpus", "--mode", "ddp", "--devices", "cpu:0,cpu:1", "--oversubscribe", "--out", self.out,
                            FAKE_CORES="1")
        answer = self.summary()["answer"]["gpus"]
        self.assertEqual((answer["recommended"], answer["reason"]), (None, "one_device_measured"))
        self.assertIn("oversubscribed", done.out)


class Interrupted(Fake):
    def start_and_wait_for_the_hanging_run(self):
        """Starts howmany with a run of ddp on 2 devices that hangs the first time."""
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
        while True:  # ctest's timeout ends this loop if the process lives on
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
        self.assertEqual(code, 130, err)
        self.assertIn("interrupted", err)
        self.assertIn(f"--resume {self.out}", err)
        self.assertTrue(out.startswith("No answer yet"), out)
        self.assertEqual(self.summary()["answer"]["gpus"]["reason"], "one_device_measured")
        self.assertEqual(len(self.samples()), 2)

    def test_ctrl_c_keeps_what_was_measured_and_answers(self):
        self.assert_kept(*self.interrupt(signal.SIGINT))

    def test_sigterm_does_the_same(self):
        self.assert_kept(*self.interrupt(signal.SIGTERM))

    def test_resume_measures_only_what_is_missing(self):
        self.interrupt(signal.SIGINT)
        done = self.howmany("gpus", "--resume", self.out)
        self.assertEqual(done.code, 0, done)
        self.assertTrue(done.out.startswith("Use 2"), done)
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


if __name__ == "__main__":
    programs.main()
