# labels: process
# timeout: 180
"""examples/gate/run builds two versions of a library with the user's own benchmark and finds the slower one."""
import json
import os
import pathlib
import subprocess
import unittest

import programs

RUN = pathlib.Path(os.environ["HOWMANY_SOURCE"]) / "examples/gate/run"


class GateExample(programs.TestCase):
    def test_finds_the_slower_version(self):
        done = subprocess.run([RUN, self.folder / "out"], capture_output=True, text=True, cwd=self.folder,
                              env={**os.environ, "PATH": f"{programs.BIN.resolve()}:{os.environ['PATH']}"})
        if "Could not find a package configuration file provided by \"benchmark\"" in done.stderr:
            raise unittest.SkipTest("Google Benchmark is not installed")
        self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
        comparison = json.loads((self.folder / "out/result/comparison.json").read_text())
        verdicts = {row["benchmark"]: row["verdict"] for row in comparison["rows"]}
        self.assertEqual(verdicts, {"BM_Split/10": "SLOWER", "BM_Split/1000": "SLOWER"})
        self.assertIn("SLOWER", (self.folder / "out/compare.txt").read_text())
        self.assertIn("<failure", (self.folder / "out/gate.xml").read_text())


programs.main()
