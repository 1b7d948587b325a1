# SPDX-License-Identifier: Apache-2.0
# labels: process cpu_only quick
# timeout: 300
"""Tests `howmany gpus --cluster NAME --up-to N -- CMD` without a GPU, with a script that writes the count of the hook
itself, so without PyTorch."""

import contextlib
import json
import pathlib
import sys

import programs
from fake import Fake

SCRIPT = pathlib.Path(__file__).resolve().parent / "counted_script.py"


class AbsentScript(programs.TestCase):
    def gpus(self, *arguments, options=(), up_to=8, cluster="a100x4", **environment):
        with contextlib.chdir(self.folder):
            return programs.run("howmany", "gpus", "--cluster", cluster, "--up-to", up_to, *options, "--",
                                sys.executable, SCRIPT, "{n}", *arguments, **environment)

    def answer(self, *arguments, options=(), **more):
        done = self.gpus(*arguments, options=("--json", *options), **more)
        self.assertEqual(done.code, 0, done)
        return done.json()

    def test_every_row_is_predicted_from_the_count(self):
        answer = self.answer("--group")
        self.assertEqual([answer["measured"], answer["rehearsed"]], [[], []])
        self.assertEqual([row["devices"] for row in answer["predicted"]], [1, 2, 4, 8])
        self.assertEqual([answer["cluster"], answer["scaling"], answer["what"]], ["a100x4", "weak", SCRIPT.name])
        counted = answer["counted"]
        self.assertEqual([counted["world"], counted["collectives"], counted["operations"]], [4, 20, 41])
        self.assertEqual(counted["flop"], 60e12)
        self.assertEqual(counted["gradient_bytes"], 20 * 8 * 2**20)
        step, one = counted["step_s"], answer["predicted"][0]
        self.assertAlmostEqual(one["samples_per_s"], 32 / step["value"])
        self.assertAlmostEqual(one["low"], 32 / step["high"])
        self.assertIn("counted and not measured", answer["basis"])
        self.assertTrue(answer["next"])
        self.assertEqual(list(self.folder.iterdir()), [])

    def test_the_interval_of_the_efficiency_is_narrower_than_that_of_the_rate(self):
        for row in self.answer("--group")["predicted"][1:]:
            self.assertLess(row["efficiency_high"] / row["efficiency_low"], row["high"] / row["low"])

    def test_without_a_group_it_exchanges_what_ddp_would(self):
        alone, ddp = (self.answer(*words) for words in ((), ("--group",)))
        self.assertEqual([alone["counted"]["world"], alone["counted"]["collectives"]], [1, 6])  # of 1 and of 25 MiB
        for a, b in zip(alone["predicted"], ddp["predicted"], strict=True):
            self.assertAlmostEqual(a["efficiency"], b["efficiency"], delta=0.05)

    def test_a_script_that_cannot_be_one_of_several_is_counted_alone(self):
        self.assertEqual(self.answer("--fail-in-group")["counted"]["world"], 1)

    def test_a_script_that_needs_a_group_is_counted_there(self):
        answer = self.answer("--group", "--fail-alone")
        self.assertEqual([answer["counted"]["world"], len(answer["predicted"])], [4, 4])

    def test_a_step_that_needs_values_is_computed(self):
        self.assertEqual(self.answer("--group")["counted"]["way"], "shapes")
        self.assertEqual(self.answer("--group", "--needs-values")["counted"]["way"], "real")

    def test_strong_scaling_counts_each_number(self):
        answer = self.answer("--group", "--strong")
        self.assertEqual(answer["scaling"], "strong")
        rows = answer["predicted"]
        self.assertGreater(rows[1]["efficiency"], rows[3]["efficiency"])
        self.assertLess(rows[3]["efficiency"], self.answer("--group")["predicted"][3]["efficiency"])

    def test_rows_that_do_not_fit_are_refused(self):
        answer = self.answer("--group", "--reserve", 73, cluster="a100x8")
        self.assertEqual(["73 GB" in row.get("refused", "") for row in answer["predicted"]], [True] * 4)
        self.assertIsNone(answer["recommended"])
        self.assertIn("73 GB", answer["because"])
        rows = self.answer("--reserve", 71.9, cluster="a100x8")["predicted"]
        self.assertEqual(["refused" in row for row in rows], [False, True, True, True])  # with buckets

    def test_the_loader_needs_cores(self):
        counted = self.answer("--group", "--loader", 10)["counted"]
        self.assertAlmostEqual(counted["loader_cores_per_gpu"], 10 / counted["step_s"]["value"])
        self.assertNotIn("loader_cores_per_gpu", self.answer("--group")["counted"])

    def test_limits_of_time_and_device_hours(self):
        self.assert_refused(self.gpus(options=("--budget", 3)), "--samples")
        answer = self.answer(options=("--samples", "1M", "--finish-within", 1))
        self.assertEqual([answer["samples"], answer["finish_within_hours"]], [1e6, 1])
        self.assertIn("hours_high", answer["predicted"][0])

    def test_without_samples_the_rate_is_of_batches(self):
        answer = self.answer("--batch", 0)
        self.assertEqual(answer["rate_unit"], "gpu_batches_per_s")
        answer = self.answer("--batch", 0, options=("--samples-per-step", 16))
        self.assertEqual(answer["counted"]["samples"], 16)

    def test_no_answer_if_nothing_follows_from_the_count(self):
        self.assert_refused(self.gpus("--unknown", options=("--quiet",)), "mylib::scan")
        for option in ("--refuse", "--raise-refused"):
            self.assert_refused(self.gpus(option, "a CUDA extension", options=("--quiet",)), ": a CUDA extension")
        self.assert_refused(self.gpus(cluster="no-such"), "no-such")
        done = self.gpus("--silent")
        self.assertEqual(done.code, 3, done)

    def test_what_only_a_measurement_can_honour_is_refused(self):
        self.assert_refused(self.gpus(options=("--rounds", 3, "--out", "x")), "--rounds, --out")
        self.assert_refused(self.gpus(options=("--devices", "cpu:0")), "A100", "--devices")
        self.assert_refused(self.gpus(options=("--model", "mlp")), "--model")


class WithGpus(Fake):
    def test_nothing_is_counted_if_a_gpu_is_here(self):
        words = ("gpus", "--cluster", "a100x4", "--up-to", 8, "--out", self.out, "--", sys.executable, SCRIPT, "{n}")
        for environment, counts in (({}, True), ({"FAKE_GPUS": "1"}, False), ({"SLURM_GPUS_ON_NODE": "1"}, False)):
            done = self.howmany(*words, **environment)
            self.assertEqual("--out cannot be given" in done.err, counts, done)


class Count(programs.TestCase):
    """script_bench --count."""

    def bench(self, gpu, *options):
        self.lines = self.folder / "lines"
        return programs.run("script_bench", "--count", gpu, "--samples-file", self.lines, *options, "--", sys.executable, SCRIPT,
                            "{n}")

    def test_the_line_has_what_the_hook_wrote(self):
        gpu = {"name": "NVIDIA A100", "memory": 80e9, "capability": [8, 0], "devices": 1}
        file = self.folder / "gpu.json"
        file.write_text(json.dumps(gpu | {"memory": 80_000_000_000}))
        for given in (file, file.read_text()):
            done = self.bench(given)
            self.assertEqual(done.code, 0, done)
        first, second = (json.loads(line) for line in self.lines.read_text().splitlines())
        self.assertEqual(first["counted"], second["counted"])
        self.assertEqual([first["counted"][key] for key in ("device", "way", "host_ops")], ["NVIDIA A100", "shapes", 400])
        self.assertTrue(first["name"].startswith("count/script/"))
        self.assertEqual(first["parameters"]["evidence"], "predicted")

    def test_other_gpus_are_refused(self):
        for bad, word in (('{"name": "A100"}', "memory"), ("{", "--count"), ("no-such-file", "no-such-file"),
                          ('{"name": "A100", "memory": 1, "capability": [8], "devices": 1}', "capability")):
            self.assert_refused(self.bench(bad), word)
        gpu = '{"name": "A100", "memory": 1, "capability": [8, 0], "devices": 1}'
        self.assert_refused(self.bench(gpu, "--workers", "0,1"), "--workers")


if __name__ == "__main__":
    programs.main()
