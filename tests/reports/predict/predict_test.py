# SPDX-License-Identifier: Apache-2.0
# labels: process
"""Tests `howmany predict` and scripts/studies/predict-check."""

import json
import pathlib
import subprocess
import sys

import programs

CHECK = pathlib.Path(__file__).resolve().parents[3] / "scripts" / "studies" / "predict-check"
COLUMNS = "source,curve_id,n_gpus,throughput,scaling_mode,flag,gpus_per_node,system"


class Predict(programs.TestCase):
    def predict(self, *arguments):
        return programs.run("howmany", "predict", *arguments)

    def test_rates_of_the_users_own_logs(self):
        done = self.predict("--rates", "1=100,2=195,4=380,8=740", "--up-to", 32, "--json")
        self.assertEqual(done.code, 0, done)
        answer = done.json()
        self.assertEqual([row["devices"] for row in answer["measured"]], [1, 2, 4, 8])
        self.assertEqual([row["devices"] for row in answer["predicted"]], [16, 32])
        for row in answer["predicted"]:
            self.assertLess(row["low"], row["samples_per_s"])
            self.assertLess(row["samples_per_s"], row["high"])
        self.assertEqual(answer["interval"], 0.9)

    def test_a_table_and_seconds_per_step(self):
        path = self.folder / "rates.csv"
        path.write_text("n,step_s\n1,0.5\n8,0.5\n")
        for arguments in ([path], ["--rates", path], ["--rates", "1=0.5s, 8=0.5s"]):
            answer = self.predict(*arguments, "--json").json()
            self.assertEqual([row["samples_per_s"] for row in answer["measured"]], [2, 16])
            self.assertEqual(answer["rate_unit"], "gpu_batches_per_s")
        self.assert_refused(self.predict(path, "--samples", "1M"), "samples")

    def test_text_never_shows_a_prediction_without_its_interval(self):
        done = self.predict("--rates", "1=100,2=195", "--up-to", 8)
        rows = [line for line in done.out.splitlines() if "predicted  " in line]
        self.assertEqual(len(rows), 2)
        for row in rows:
            self.assertEqual(row.count(" to "), 2, row)

    def test_a_cluster_gives_the_size_of_a_node_and_the_price(self):
        path = self.folder / "ours.toml"
        path.write_text('name = "ours"\ndevice = "A100"\ndevices_per_node = 2\nsource = "a test"\nmax_devices = 16\n'
                        "price_per_device_hour = 2.5\n[node]\nbusbw_gb_per_s = 200\nlatency_us = 20\n"
                        "[network]\nlinks = 1\ngbit_per_s = 100\n")
        answer = self.predict("--rates", "1=100,2=195", "--up-to", 8, "--cluster", path, "--json").json()
        self.assertEqual([answer["devices_per_node"], answer["price_per_device_hour"]], [2, 2.5])
        self.assertEqual({row["rung"] for row in answer["predicted"]}, {"node"})
        self.assert_refused(self.predict("--rates", "1=100", "--up-to", 32, "--cluster", path), "16 devices")

    def test_time_and_device_hours_of_the_samples(self):
        done = self.predict("--rates", "1=100,2=200", "--samples", "3.6M", "--finish-within", 3, "--json")
        self.assertEqual(done.code, 0, done)
        answer = done.json()
        self.assertEqual(answer["measured"][1]["device_hours"], 10)
        row = next(row for row in answer["predicted"] if row["devices"] == answer["recommended"])
        self.assertLessEqual(row["hours_high"], 3)
        self.assert_refused(self.predict("--rates", "1=1", "--finish-within", 3), "--samples")

    def test_a_run_on_cpus_is_refused(self):
        out = self.folder / "out"
        done = programs.run("howmany", "gpus", "--devices", "cpu:0", "--rounds", 1, "--time-budget", 5, "--model",
                            "mlp", "--out", out, timeout=100)
        self.assertEqual(done.code, 0, done)
        self.assert_refused(self.predict(out), "CPU")

    def test_bad_input_is_refused(self):
        self.assert_refused(self.predict(), "--rates")
        self.assert_refused(self.predict("--rates", "1=x"), "--rates")
        self.assert_refused(self.predict("--rates", "4=100", "--up-to", 4), "4 devices")
        self.assert_refused(self.predict("--rates", "1=1", "--up-to", 100000), "--up-to")
        self.assert_refused(self.predict(self.folder / "nothing"), "nothing")


class PredictCheck(programs.TestCase):
    def check(self, text, *arguments):
        curves = self.folder / "curves.csv"
        curves.write_text(text)
        return subprocess.run([sys.executable, CHECK, curves, "--howmany", programs.BIN / "howmany", "--json", *arguments],
                              capture_output=True, text=True, check=False, timeout=100)

    def rows(self, done):
        self.assertEqual(done.returncode, 0, done)
        return {(row["rung"], row["n"]): row for row in json.loads(done.stdout)["rows"]}

    def test_errors_and_coverage_beside_the_rules(self):
        curve = [(1, 100), (2, 190), (4, 340), (8, 600), (16, 1000), (32, 1700)]
        text = COLUMNS + "\n" + "".join(f"s,c,{n},{rate},weak,,8,x\n" for n, rate in curve)
        text += "s,c,64,9999,weak,superlinear>5%,8,x\ns,d,1,1,strong,,,\ns,e,1,nan,weak,,,\n"
        done = self.check(text)
        rows = self.rows(done)
        self.assertEqual([rows[rung, "all"]["count"] for rung in ("1", "1-2", "node", "two nodes")], [5, 4, 2, 1])
        self.assertAlmostEqual(rows["1", 2]["linear"], 200 / 190 - 1)
        self.assertAlmostEqual(rows["1-2", 4]["efficiency"], 380 / 340 - 1)
        # Amdahl's law through 190 on 2: a serial share of 1/19.
        self.assertAlmostEqual(rows["1-2", 4]["amdahl"], 100 / (1 / 19 + 18 / 19 / 4) / 340 - 1)
        self.assertEqual(json.loads(done.stdout)["left_out"],
                         {"flagged": 1, "not weak scaling": 1, "no number": 1})

    def test_every_n_is_predicted(self):
        text = COLUMNS + "\n" + "".join(f"s,c,{n},{90 * n},weak,,6,x\n" for n in (1, 3, 6, 12, 18, 24))
        rows = self.rows(self.check(text))
        self.assertEqual([rows["1", n]["refused"] for n in (3, 6, 12)], [0, 0, 0])
        self.assertEqual([rows["node", n]["refused"] for n in (12, 18, 24)], [0, 0, 0])

    def test_a_missing_column_is_named(self):
        done = self.check("source,curve_id,n_gpus\ns,c,1\n")
        self.assertEqual(done.returncode, 1)
        self.assertIn("throughput", done.stderr)
        self.assertNotIn("Traceback", done.stderr)

    def test_the_cluster_map_sets_the_node(self):
        text = COLUMNS + "\n" + "".join(f"s,c,{n},{100 * n},weak,,,x\n" for n in (1, 4, 8))
        nodes = self.folder / "nodes.csv"
        nodes.write_text("system,gpus_per_node\nx,4\n")
        self.assertNotIn(("node", 8), self.rows(self.check(text)))
        self.assertIn(("node", 8), self.rows(self.check(text, "--cluster-map", nodes)))


if __name__ == "__main__":
    programs.main()
