# SPDX-License-Identifier: Apache-2.0
# labels: process
# timeout: 180
"""examples/gate/run builds two versions of a library with the user's own benchmark and compares them."""
import json
import os
import pathlib
import subprocess
import unittest

import programs

RUN = pathlib.Path(os.environ["HOWMANY_SOURCE"]) / "examples/gate/run"


class GateExample(programs.TestCase):
    def test_exits_with_1_if_a_benchmark_is_slower(self):
        done = subprocess.run([RUN, self.folder / "out"], capture_output=True, text=True, cwd=self.folder,
                              env={**os.environ, "PATH": f"{programs.BIN.resolve()}:{os.environ['PATH']}"})
        if "Could not find a package configuration file provided by \"benchmark\"" in done.stderr:
            raise unittest.SkipTest("Google Benchmark is not installed")
        # A loaded machine may hide the difference, or leave no time for the least number of pairs or for fresh ones.
        too_few = "pairs, 8 are needed" in done.stdout or "the time budget is spent" in done.stdout
        self.assertIn(done.returncode, (5,) if too_few else (0, 1), done.stdout + done.stderr)
        comparison = json.loads((self.folder / "out/result/comparison.json").read_text())
        verdicts = {row["benchmark"]: row["verdict"] for row in comparison["rows"]}
        self.assertEqual(set(verdicts), {"BM_Split/10", "BM_Split/1000"})
        self.assertLessEqual(set(verdicts.values()), {"SLOWER", "INCONCLUSIVE"})  # the version after is slower
        self.assertEqual(done.returncode == 1, "SLOWER" in verdicts.values())
        self.assertEqual(done.returncode == 1, "<failure" in (self.folder / "out/gate.xml").read_text())
        self.assertIn("BM_Split/1000", (self.folder / "out/compare.txt").read_text())


programs.main()
