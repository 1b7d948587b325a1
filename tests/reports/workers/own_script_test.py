# SPDX-License-Identifier: Apache-2.0
# labels: process
# timeout: 200
"""Tests `howmany workers -- CMD` with a script that writes the records of the hook itself, so without
PyTorch. tests/benches/script/matrix_test.py has real scripts."""

import json
import pathlib
import sys

import programs

SCRIPT = pathlib.Path(__file__).resolve().parents[1] / "gpus" / "recorded_script.py"


class OwnScript(programs.TestCase):
    def workers(self, *arguments, words=("1",), **environment):
        self.out = self.folder / "out"
        return programs.run("howmany", "workers", "--out", self.out, *arguments, "--", sys.executable, SCRIPT, *words,
                            timeout=100, **environment)

    def summary(self):
        return json.loads((self.out / "summary.json").read_text())

    def answer(self, done):
        self.assertEqual(done.code, 0, done)
        return self.summary()["answer"]["workers"]

    def test_recommends_the_knee_of_the_script(self):
        answer = self.answer(self.workers())
        self.assertEqual([answer["recommended"], answer["script"], answer["as"]], [2, "recorded_script.py", "script"])
        self.assertEqual([row["workers"] for row in answer["table"]], [0, 1, 2])
        self.assertTrue(answer["table"][0]["own"])

    def test_numbers_of_the_command_line_are_measured_as_they_are(self):
        answer = self.answer(self.workers("--workers", "0,1"))
        self.assertEqual([row["workers"] for row in answer["table"]], [0, 1])
        self.assertEqual([answer["recommended"], answer["reason"]], [1, "more_not_measured"])

    def test_ranks_share_the_answer(self):
        answer = self.answer(self.workers("--ranks", 2, words=("{n}",)))
        self.assertEqual([answer["devices"], answer["batch"]], [2, 16])

    def test_the_report_shows_the_same_answer(self):
        done = self.workers()
        again = programs.run("howmany", "report", self.out)
        self.assertEqual(again.code, 0, again)
        self.assertEqual(again.out.strip(), done.out.strip())

    def test_results_do_not_show_the_command(self):
        self.answer(self.workers(words=("1", "--batch", "32")))
        for file in self.out.iterdir():
            self.assertNotIn("--batch 32", file.read_text(), file)
            self.assertNotIn(str(SCRIPT.parent), file.read_text(), file)

    def test_a_script_that_fails_is_quoted(self):
        done = self.workers("--quiet", words=("1", "--fail", "1"))
        self.assert_refused(done, "the disk is full", code=3)

    def test_options_that_the_script_decides_are_refused(self):
        for option, value in (("--data", "x"), ("--batch-per-device", "8"), ("--worker-type", "pytorch")):
            self.assert_refused(self.workers(option, value), option)

    def test_the_choice_of_a_loader_is_for_scripts(self):
        self.assert_refused(programs.run("howmany", "workers", "--loader", 2), "--loader")


if __name__ == "__main__":
    programs.main()
