# SPDX-License-Identifier: Apache-2.0
# labels: process
"""`howmany compare` and Google Benchmark's compare.py find changes of equal sign and size."""
import json
import pathlib
import random
import subprocess
import sys

import programs

TOOLS = pathlib.Path("/usr/share/benchmark")
FORCE = ("--force", "--json")


class ComparePy(programs.TestCase):
    def setUp(self):
        super().setUp()
        scipy = subprocess.run([sys.executable, "-c", "import scipy"], capture_output=True)
        if scipy.returncode != 0 or not (TOOLS / "compare.py").exists():
            self.skipTest("libbenchmark-tools or python3-scipy is missing")

    def theirs(self, base, candidate):
        out = self.folder / "theirs.json"
        done = subprocess.run([sys.executable, TOOLS / "compare.py", "--dump_to_json", out, "benchmarks", base, candidate],
                              capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        return {b["name"]: [m["time"] for m in b["measurements"]] for b in json.loads(out.read_text())
                if b["run_type"] != "aggregate"}

    def ours(self, base, candidate):
        rows = programs.run("howmany", "compare", base, candidate, *FORCE).json()["rows"]
        return {r["benchmark"]: r["change"] for r in rows if r["metric"] == "real_time" and r["change"] is not None}

    def test_agrees_on_the_inputs_of_google_benchmark(self):
        inputs = TOOLS / "gbench" / "Inputs"
        files = inputs / "test1_run1.json", inputs / "test1_run2.json"
        theirs, ours = self.theirs(*files), self.ours(*files)
        names = sorted(theirs.keys() & ours.keys())
        self.assertGreaterEqual(len(names), 12)
        for name in names:
            with self.subTest(name):
                self.assertEqual(len(theirs[name]), 1)
                self.assertAlmostEqual(theirs[name][0], ours[name], delta=1e-6)

    def test_agrees_on_repetitions(self):
        rng = random.Random(1)
        ratios = {"same": 1, "slower": 1.3, "faster": 0.6, "twice": 2}
        for side in ("base", "candidate"):
            rows = [{"name": name, "run_name": name, "run_type": "iteration", "family_index": family,
                     "per_family_instance_index": 0, "repetitions": 20, "repetition_index": i, "iterations": 10,
                     "real_time": (ratio if side == "candidate" else 1) * 100 * rng.gauss(1, 0.01), "cpu_time": 1.0,
                     "time_unit": "ns"} for family, (name, ratio) in enumerate(ratios.items()) for i in range(20)]
            (self.folder / f"{side}.json").write_text(json.dumps({"context": {}, "benchmarks": rows}))
        files = self.folder / "base.json", self.folder / "candidate.json"
        theirs, ours = self.theirs(*files), self.ours(*files)
        for name, ratio in ratios.items():
            changes = sorted(theirs[name])
            self.assertAlmostEqual(changes[len(changes) // 2], ours[name], delta=0.02)
            self.assertAlmostEqual(ours[name], ratio - 1, delta=0.02)


programs.main()
