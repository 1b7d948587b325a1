# SPDX-License-Identifier: Apache-2.0
# labels: process
# timeout: 120
"""Tests `howmany memory -- COMMAND` with a program that writes the records of a script."""
import json
import pathlib
import sys

import programs

SCRIPT = pathlib.Path(__file__).resolve().parents[1] / "gpus" / "recorded_script.py"


class Memory(programs.TestCase):
    def memory(self, *options, script=(SCRIPT, "1"), **environment):
        return programs.run("howmany", "memory", *options, "--", sys.executable, *script, timeout=100, **environment)

    def test_the_answer_comes_first(self):
        done = self.memory("--device-memory", "24GB")
        self.assertEqual(done.code, 0, done)
        self.assertTrue(done.out.startswith("recorded_script.py fits devices of 24 GB with 1 rank"), done)
        self.assertIn("counting a step of recorded_script.py", done.err)

    def test_what_does_not_fit(self):
        done = self.memory("--device-memory", "2KB", "--json", "--quiet")
        self.assertEqual((done.code, done.err), (0, ""))
        answer = json.loads(done.out)
        self.assertEqual(answer["rows"], [{"devices": 1, "evidence": "estimated", "parameter_bytes": 400.0,
                                           "gradient_bytes": 400.0, "optimizer_bytes": 800.0, "peak_bytes": 2000.0,
                                           "reserved_bytes": 2097152.0, "fits": False}])

    def test_names_can_be_kept_private(self):
        done = self.memory("--private", "--quiet")
        self.assertEqual(done.code, 0, done)
        self.assertNotIn("recorded", done.out)

    def test_a_script_that_fails_is_3_with_its_reason(self):
        done = self.memory("--quiet", script=(SCRIPT, "1", "--fail", "1"))
        self.assertEqual(done.code, 3, done)
        self.assertIn("the disk is full", done.out)

    def test_bad_usage_is_one_line_and_2(self):
        for words, options in ((("--device-memory",), ("--device-memory", "0")),
                               (("--device-memory", "much"), ("--device-memory", "much")),
                               (("--device-count",), ("--device-count", "0")),
                               (("--model",), ("--model", "mlp"))):
            self.assert_refused(self.memory(*options), *words)
        self.assert_refused(programs.run("howmany", "memory", "--", timeout=20), "no command after --")
        self.assert_refused(self.memory(script=("-c", "1")), "python -c")


if __name__ == "__main__":
    programs.main()
