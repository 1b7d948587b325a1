# SPDX-License-Identifier: Apache-2.0
# labels: process
# timeout: 300
"""Tests backend_bench and transfer_bench as `howmany` runs them: names, JSON, samples, checks, exit
codes."""

import json
import re
import unittest

import programs

OPS = {"all_reduce", "all_gather", "reduce_scatter", "broadcast", "reduce", "gather", "scatter",
       "all_to_all", "send_recv"}


def bench(*arguments, program="backend_bench", **environment):
    return programs.run(program, *arguments, timeout=120, **environment)


def has(backend):
    return backend in bench("--backend", "nothing").err


class Measured(programs.TestCase):
    def measure(self, *arguments, program="backend_bench", code=0):
        out, samples = self.folder / "out.json", self.folder / "samples.jsonl"
        done = bench(*arguments, f"--benchmark_out={out}", "--samples-file", samples, program=program)
        self.assertEqual(done.code, code, done)
        rows = json.loads(out.read_text())["benchmarks"]
        return rows, [json.loads(line) for line in samples.read_text().splitlines()]


class Backend(Measured):
    def cells(self, backend, devices, *more):
        rows, lines = self.measure("--backend", backend, "--device-count", devices, "--oversubscribe",
                                   "--min-bytes", 64, "--max-bytes", 4096, "--size-factor", 64,
                                   "--time-budget", 4, *more)
        for row in rows:
            self.assertNotIn("error_occurred", row, row)
        return rows, lines

    def check(self, backend):
        rows, lines = self.cells(backend, 2)
        self.assertEqual({row["name"].split("/")[1] for row in rows}, OPS | {"overlap", "pace"})
        measured = [row for row in rows if "algbw_bytes_per_s" in row]
        for row in measured:
            self.assertAlmostEqual(row["algbw_bytes_per_s"] * row["median_s"] / row["bytes"], 1, places=3)
        by_name = {(line["name"], line["parameters"]["timing"]): line for line in lines}
        # The first case, because a loaded machine may lack time for the others.
        row = next(r for r in measured if r["name"] == f"backend/all_reduce/{backend}/dtype:f32/devices:2/bytes:64")
        seconds = sorted(by_name[row["name"], "isolated"]["seconds"])
        self.assertEqual(row["samples"], len(seconds))
        self.assertAlmostEqual(row["min_s"], seconds[0])
        self.assertAlmostEqual(row["busbw_bytes_per_s"], row["algbw_bytes_per_s"], delta=1)

    def test_threads_measure_every_operation(self):
        self.check("local")

    @unittest.skipUnless(has("gloo"), "built without gloo")
    def test_processes_measure_every_operation(self):
        self.check("gloo")

    def test_bus_bandwidth_of_one_rank_is_absent_and_said_to_be(self):
        rows, _ = self.cells("local", 1, "--ops", "all_reduce")
        for row in rows:
            self.assertNotIn("busbw_bytes_per_s", row)
            self.assertIn("not defined", row["label"])

    def test_what_does_not_fit_into_memory_is_skipped_with_the_reason(self):
        rows, _ = self.measure("--backend", "local", "--device-count", 2, "--oversubscribe", "--ops",
                               "all_reduce", "--min-bytes", 64, "--max-bytes", 1 << 40,
                               "--size-factor", 1024, "--time-budget", 1)
        self.assertIn("free memory", rows[-1]["label"])
        self.assertEqual(rows[-1]["skipped"], 1)

    def test_bad_usage_is_one_line_and_2(self):
        for arguments, words in ((("--backend", "lokal"), ("lokal", "local")),
                                 (("--ops", "all_reduse"), ("all_reduse", "all_reduce")),
                                 (("--dtype", "f16"), ("f16",)),
                                 (("--min-bytes", 8, "--max-bytes", 4), ("--min-bytes",))):
            self.assert_refused(bench("--oversubscribe", *arguments), *words)


class Transfer(Measured):
    def test_copies_are_measured_and_the_rest_skipped_with_the_reason(self):
        rows, lines = self.measure("--max-bytes", 4096, "--time-budget", 0.5, "--model",
                                   "mlp:sizes=16-32-4", program="transfer_bench")
        kinds = {row["name"].split("/")[1] for row in rows}
        self.assertLessEqual({"copy", "small_copies", "loopback_tcp", "step", "host_to_device"}, kinds)
        for row in rows:
            self.assertNotIn("error_occurred", row, row)
            self.assertTrue("skipped" in row or row["median_s"] > 0, row)
        self.assertIn("pinned memory serves GPUs",
                      next(r for r in rows if "host_to_device/memory:pinned" in r["name"])["label"])
        self.assertTrue(all(min(line["seconds"]) > 0 for line in lines))

    def step(self, folder, budget):
        """Returns the row of one training step, which takes tens of milliseconds or more."""
        out = self.folder / folder
        done = bench("--max-bytes", 64, "--time-budget", budget, "--model", "resnet18:image=64", "--batch-per-device", 4,
                     "--benchmark_filter=part:whole", f"--benchmark_out={out}", program="transfer_bench")
        self.assertEqual(done.code, 0, done)
        row, = json.loads(out.read_text())["benchmarks"]
        return row

    def test_a_step_that_its_budget_has_no_time_for_is_left_out_with_one_that_has(self):
        """A busy machine may slow the step down between two runs. Then a later one is left out too,
        and only if it names a larger budget than it was given."""
        budget = 0.01
        row = self.step("first", budget)
        self.assertEqual(row["skipped"], 1)
        while "skipped" in row:
            told = re.fullmatch(r"skipped: a step takes \S+ s here, which --time-budget (\d+) has time for", row["label"])
            self.assertTrue(told, row)
            self.assertGreater(int(told[1]), budget)
            budget = 2 * int(told[1])
            row = self.step(f"of {budget} s", budget)
        self.assertGreaterEqual(row["samples"], 1)

    def test_slices_of_the_cores_are_devices(self):
        rows, _ = self.measure("--min-bytes", 1 << 20, "--max-bytes", 1 << 20, "--time-budget", 0.5, "--devices",
                               "cpu:0,cpu:1", "--benchmark_filter=device", program="transfer_bench")
        rates = {row["name"]: row["bytes_per_s"] for row in rows if "bytes_per_s" in row}
        for name in ("host_to_device/bytes:1048576/device:cpu:1/how:sync/memory:pageable",
                     "device_to_host/bytes:1048576/device:cpu:0/how:sync/memory:pageable",
                     "device_to_device/bytes:1048576/from:cpu:1/path:memory/to:cpu:0"):
            self.assertGreater(rates[f"transfer/{name}"], 0)

    def test_devices_that_cannot_be_copied_to_are_refused(self):
        for devices, words in (("cpu:0,cuda:0", "not both"), ("cpu:77", "--devices cpu:77: there are"),
                               ("cuda:77", "--devices cuda:77: there are")):
            self.assert_refused(bench("--devices", devices, program="transfer_bench"), words)

    def test_several_copies_of_it_are_refused(self):
        done = bench(program="transfer_bench", RANK="1", WORLD_SIZE="2", LOCAL_RANK="1",
                     MASTER_ADDR="127.0.0.1", MASTER_PORT="1")
        self.assert_refused(done, "one process")


if __name__ == "__main__":
    programs.main()
