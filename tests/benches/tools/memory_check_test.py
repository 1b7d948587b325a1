# SPDX-License-Identifier: Apache-2.0
# labels: process nightly
# timeout: 120
"""Tests scripts/studies/memory-check."""
import json
import pathlib
import subprocess
import sys

import programs

CHECK = pathlib.Path(__file__).resolve().parents[3] / "scripts" / "studies" / "memory-check"
COLUMNS = "model,MBS,DP,PP,TP,ZeRO,GPU memory\n"


class MemoryCheck(programs.TestCase):
    def check(self, *rows, options=()):
        table = self.folder / "table.csv"
        table.write_text(COLUMNS + "\n".join(rows) + "\n")
        done = subprocess.run([sys.executable, CHECK, table, "--howmany", programs.BIN / "howmany", "--json", *options],
                              capture_output=True, text=True, check=False, timeout=100)
        return done

    def test_rows_are_compared_with_the_estimates_of_their_modes(self):
        done = self.check("1B,1,8,1,1,0,36.7", "1B,1,8,1,1,1,24.2", "1B,64,8,1,1,0,nan", "1B,1,4,2,1,0,20", "1B,1,4,1,2,1,12")
        self.assertEqual(done.returncode, 0, done.stderr)
        lines = {line["rows"]: line for line in json.loads(done.stdout)}
        told = programs.run("howmany", "memory", "--model", "llama:width=2048,layers=16,heads=32,hidden=8192,length=4096,"
                            "vocabulary=131072,tied=yes", "--mode", "ddp", "--device-count", "8", "--batch-per-device", "1",
                            "--precision", "bf16", "--optimizer", "adamw", "--json").json()
        plain = lines["1B, TP 1, ZeRO 0"]
        logits = 6 * 4096 * 131072  # that nanotron keeps more
        self.assertAlmostEqual(plain["median_ratio"], (told["rows"][0]["peak_bytes"] + logits) / 36.7e9, places=9)
        self.assertAlmostEqual(json.loads(self.check("1B,1,8,1,1,0,36.7", options=["--same-loss"]).stdout)[0]["median_ratio"],
                               told["rows"][0]["peak_bytes"] / 36.7e9, places=9)
        self.assertEqual((plain["ran"], plain["out_of_memory"], plain["called"]), (1, 1, 1))
        self.assertEqual((lines["all"]["ran"], lines["all"]["out_of_memory"]), (2, 1))
        self.assertEqual(lines["1B, TP 1, ZeRO 1"]["ran"], 1)

    def test_a_run_that_finished_elsewhere_did_not_fail_for_memory(self):
        done = self.check("1B,1,8,1,1,1,24.2", "1B,1,8,1,1,1,nan", "1B,1,16,1,1,1,nan", "1B,1,4,1,1,1,nan", "1B,1,8,1,1,0,nan")
        lines = {line["rows"]: line for line in json.loads(done.stdout)}
        self.assertEqual((lines["all"]["ran"], lines["all"]["failed_otherwise"], lines["all"]["out_of_memory"]), (1, 2, 2))
        self.assertEqual(lines["1B, TP 1, ZeRO 0"]["failed_otherwise"], 0)

    def test_a_table_without_a_row_to_compare_is_refused(self):
        done = self.check("1B,1,4,2,1,0,20")
        self.assertEqual((done.returncode, done.stderr.strip()), (1, "memory-check: no row that a mode can express"))


if __name__ == "__main__":
    programs.main()
