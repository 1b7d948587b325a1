# SPDX-License-Identifier: Apache-2.0
# labels: process nightly
# timeout: 120
"""Tests scripts/studies/split-check."""
import json
import pathlib
import subprocess
import sys

import programs

CHECK = pathlib.Path(__file__).resolve().parents[3] / "scripts" / "studies" / "split-check"
COLUMNS = "model,Nodes,MBS,GradAcc,DP,PP,TP,ZeRO,tok/s/gpu\n"


class SplitCheck(programs.TestCase):
    def check(self, *rows):
        table = self.folder / "table.csv"
        table.write_text(COLUMNS + "\n".join(rows) + "\n")
        return subprocess.run([sys.executable, CHECK, table, "--howmany", programs.BIN / "howmany", "--json"],
                              capture_output=True, text=True, check=False, timeout=100)

    def test_rows_are_predicted_and_one_is_chosen(self):
        done = self.check("1B,1,2,16,8,1,1,0,40000", "1B,1,1,32,8,1,1,1,39000", "1B,1,16,8,2,1,4,0,34000", "1B,1,8,32,1,4,2,0,36000",
                          "1B,1,8,32,1,4,2,0,nan", "80B,1,1,32,8,1,1,0,10")
        self.assertEqual(done.returncode, 0, done.stderr)
        rows = [json.loads(line) for line in done.stdout.splitlines()]
        self.assertEqual([(row["pp"], row["tp"], row["zero"]) for row in rows], [(1, 1, 0), (1, 1, 1), (1, 4, 0), (4, 2, 0)])
        for row in rows:
            self.assertLess(0, row["predicted"])
            self.assertLess(row["predicted"], 1)
        self.assertIn("chosen rows are slower than the best by 0.0 %", done.stderr)

    def test_rows_that_no_mode_can_run_are_counted(self):
        done = self.check("1B,1,2,16,8,1,3,0,40000")  # no 3 of 8 GPUs
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("1 rows refused", done.stderr)


if __name__ == "__main__":
    programs.main()
