# SPDX-License-Identifier: Apache-2.0
# labels: process
"""Tests speedup_bench --rehearse: one rank of many. Its collectives take the times of a cost table."""

import json

import programs

MODEL = ("--model", "mlp:sizes=16-32-4", "--batch-per-device", 8, "--case-budget", 0.05)
WEIGHTS = 16 * 32 + 32 + 32 * 4 + 4


class Rehearse(programs.TestCase):
    def bench(self, *arguments, world=64, seconds=0.001, groups=(), text=None):
        costs = self.folder / "costs.json"
        points = [[1024, seconds], [1 << 30, seconds]]
        kinds = ("all_reduce", "reduce_scatter", "all_gather", "broadcast", "send")
        table = dict.fromkeys(kinds, points)
        groups = [{"ranks": n, "stride": s} | table for n, s in groups]
        costs.write_text(text or json.dumps({"world": world, "groups": groups} | table))
        self.out, self.samples = self.folder / "out.json", self.folder / "samples.jsonl"
        return programs.run("speedup_bench", *MODEL, "--rehearse", costs, f"--benchmark_out={self.out}",
                            "--samples-file", self.samples, *(arguments or ("--mode", "ddp")), timeout=120)

    def line(self, *arguments, **options):
        done = self.bench(*arguments, **options)
        self.assertEqual(done.code, 0, done)
        return json.loads(self.samples.read_text().splitlines()[-1])

    def test_the_row_is_that_of_all_ranks(self):
        line = self.line()
        name = "rehearsal/ddp/mlp:sizes=16-32-4/backend:rehearsal/devices:64/batch:8/scaling:weak"
        self.assertEqual(line["name"], name)
        self.assertEqual(line["parameters"] | {"kernels": ""},
                         {"mode": "ddp", "model": "mlp:sizes=16-32-4", "backend": "rehearsal", "devices": "64",
                          "batch_per_device": "8", "global_batch": "512", "scaling": "weak", "kernels": "",
                          "precision": "f32", "cores_per_device": "1", "evidence": "rehearsed"})
        row = json.loads(self.out.read_text())["benchmarks"][0]
        self.assertAlmostEqual(row["samples_per_s"], 512 / row["median_s"], delta=1e-3 * row["samples_per_s"])
        self.assertNotIn("loss", row)

    def test_the_buckets_of_each_step_are_logged(self):
        steps = self.line()["steps"]
        self.assertGreaterEqual(len(steps), 6)
        for step in steps:
            self.assertEqual({(one["op"], one["ranks"], one["backward"]) for one in step["collectives"]},
                             {("all_reduce", 64, -1)})
            self.assertGreaterEqual(sum(one["bytes"] for one in step["collectives"]), 4 * WEIGHTS)
            for one in step["collectives"]:
                self.assertGreaterEqual(one["at_s"], 0)
                self.assertLess(one["at_s"], one["waited_s"])
                self.assertLess(one["waited_s"], step["s"])

    def test_blocking_collectives_are_waited_for_at_once(self):
        for one in self.line("--mode", "ddp", "--sync", "inline")["steps"][0]["collectives"]:
            self.assertEqual([one["backward"], one["waited_s"]], [-1, one["at_s"]])

    def test_a_step_lasts_as_long_as_its_collectives(self):
        for count in (1, 2):
            devices = ",".join(f"cpu:{i}" for i in range(count))
            line = self.line("--mode", "ddp", "--devices", devices, "--oversubscribe", seconds=0.05)
            self.assertGreaterEqual(min(line["seconds"]), 0.05)
            self.assertEqual(line["parameters"]["devices"], "64")

    def test_sharded_gathers_ahead_of_its_waits(self):
        for step in self.line("--mode", "sharded")["steps"]:
            kinds = [one["op"] for one in step["collectives"]]
            self.assertEqual(sorted(kinds), 3 * ["all_gather"] + ["all_reduce"] + 2 * ["reduce_scatter"])
            second = step["collectives"][1]  # gathered while the first unit computes
            self.assertLess(second["at_s"], second["waited_s"])
            self.assertTrue(all(one["at_s"] <= one["waited_s"] < step["s"] for one in step["collectives"]))

    def test_a_message_adds_its_time_to_the_step_of_a_pipeline(self):
        """Two stages and one micro-batch: activations go forward, gradients back, and losses are summed."""
        mode = "pipeline:micro_batches=1"
        for devices in ("cpu:0", "cpu:0,cpu:1"):
            line = self.line("--mode", mode, "--devices", devices, "--oversubscribe", world=2, seconds=100)
            self.assertEqual(line["name"], f"rehearsal/{mode}/mlp:sizes=16-32-4/backend:rehearsal/devices:2/batch:8/scaling:weak")
            self.assertEqual(line["parameters"]["evidence"], "rehearsed")
            self.assertNotIn("steps", line)
            for step in line["seconds"]:
                self.assertAlmostEqual(step, 300, delta=20)  # and own work
        row = json.loads(self.out.read_text())["benchmarks"][0]
        self.assertAlmostEqual(row["bubble_fraction"], 1, delta=0.1)
        self.assertEqual(row["theoretical_bubble_fraction"], 0.5)

    def test_replicas_of_stages_sum_their_gradients(self):
        groups = ((2, 32), (32, 1))
        line = self.line("--mode", "hybrid:stages=2,micro_batches=1", seconds=100, groups=groups)
        self.assertEqual(line["parameters"]["global_batch"], "512")
        for step in line["seconds"]:
            self.assertGreater(step, 380)

    def test_only_modes_over_ranks_can_be_rehearsed(self):
        for mode in ("single", "model", "hybrid:across=model"):
            self.assert_refused(self.bench("--mode", mode), "one device in each rank")
        self.assert_refused(self.bench("--mode", "ddp,single"), "one --mode")

    def test_more_stages_than_layers_are_refused(self):
        self.assert_refused(self.bench("--mode", "pipeline", world=4, groups=((2, 1),)), "4 stages")

    def test_options_that_would_change_nothing_are_refused(self):
        for more in (("--device-count", 2), ("--trace-file", self.folder / "trace")):
            self.assert_refused(self.bench("--mode", "ddp", *more), more[0])

    def test_bad_tables_are_refused(self):
        for text, word in (('{"world": 4', "JSON"), ('{"world": 1}', "world"), ('{"all_reduce": []}', "world"),
                           ('{"world": 4, "all_reduce": []}', "all_reduce"),
                           ('{"world": 4, "all_reduce": [[8, 1], [8, 2]]}', "ascending"),
                           ('{"world": 4, "all_reduce": [[8]]}', "all_reduce"),
                           ('{"world": 4, "core_s": [1]}', "core_s")):
            self.assert_refused(self.bench(text=text), word)
        self.assertEqual(self.bench(text='{"world": 4}').code, 3)
        self.assertIn("no broadcast", json.loads(self.out.read_text())["benchmarks"][0]["error_message"])


if __name__ == "__main__":
    programs.main()
