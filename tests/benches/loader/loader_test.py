# SPDX-License-Identifier: Apache-2.0
# labels: process
# timeout: 120
"""Tests loader_bench on the command line."""
import json
import pathlib

import images
import programs

SMALL = ("--images", 24, "--width", 64, "--height", 48, "--image-size", 32, "--batch-per-device", 4,
         "--case-budget", 0.05)


def bench(*arguments, **environment):
    return programs.run("loader_bench", *arguments, **environment)


class Loader(programs.TestCase):
    def setUp(self):
        super().setUp()
        self.out = self.folder / "loader.json"

    def rows(self, *arguments):
        done = bench(*arguments, f"--benchmark_out={self.out}")
        self.assertEqual(done.code, 0, done)
        return json.loads(self.out.read_text())["benchmarks"]

    def test_a_row_for_each_number_of_workers(self):
        rows = self.rows(*SMALL, "--workers", "0,1,2")
        self.assertEqual([r["name"] for r in rows],
                         [f"loader/painted/workers:{w}/batch:4/prefetch:2/as:threads" for w in (0, 1, 2)])
        for row in rows:
            self.assertGreater(row["samples_per_s"], 0)
            self.assertLessEqual(row["latency_p50_s"], row["latency_p95_s"])
            self.assertLessEqual(row["latency_p95_s"], row["latency_max_s"])
            self.assertGreater(row["decode_s"], 0)
            self.assertNotIn("stall_fraction", row)

    def test_a_demand_is_in_the_name_and_its_stall_in_the_row(self):
        row, = self.rows(*SMALL, "--workers", 1, "--samples-per-second", 1000, "--ranks", 2)
        self.assertIn("/ranks:2/demand:1000", row["name"])
        self.assertTrue(0 <= row["stall_fraction"] <= 1)

    def test_batches_for_a_gpu_that_is_not_here_are_skipped_with_a_word(self):
        here, there = self.rows(*SMALL, "--workers", 1, "--to", "cpu:0,cuda:63")
        self.assertGreater(here["samples_per_s"], 0)
        self.assertTrue(there["name"].endswith("/to:cuda:63"))
        self.assertEqual(there["skipped"], 1)
        self.assertRegex(there["label"], "skipped: .*(GPU|CUDA)")

    def test_a_folder_of_the_users_own_bad_files_counted(self):
        images.write_folder(self.folder / "data")
        (self.folder / "data" / "cat" / "bad name\n\udcff.png").write_bytes(b"no image")
        row, = self.rows("--data", self.folder / "data", "--workers", 1, "--batch-per-device", 4, "--image-size", 16,
                         "--case-budget", 0.05)
        self.assertTrue(row["name"].startswith("loader/images/"))
        context = json.loads(self.out.read_text())["context"]
        self.assertEqual(context["loader_files_bad"], "1")
        self.assertIn("cat/bad name\\x0a\\xff.png: ", context["loader_first_bad"])

    def test_numbers_that_are_not_finite_are_refused(self):
        for option in ("--case-budget", "--samples-per-second"):
            self.assert_refused(bench(*SMALL, option, "nan"), option, "nan")

    def test_samples_are_kept_a_line_a_row(self):
        path = self.folder / "samples"
        self.rows(*SMALL, "--workers", "1,2", "--samples-file", path)
        lines = [json.loads(line) for line in path.read_text().splitlines()]
        self.assertEqual([line["parameters"]["workers"] for line in lines], ["1", "2"])

    def test_a_number_that_is_given_again_is_measured_again(self):
        path = self.folder / "samples"
        rows = self.rows(*SMALL, "--workers", "0,2,2,0", "--samples-file", path)
        self.assertEqual([row["name"].split("/")[2] for row in rows],
                         ["workers:0", "workers:2", "workers:2", "workers:0"])
        self.assertEqual(len(path.read_text().splitlines()), 4)

    def test_repeats_that_do_not_fit_into_the_budget_are_skipped(self):
        rows = self.rows(*SMALL, "--workers", "0,2,2,0", "--time-budget", 1e-3)
        self.assertEqual(["skipped" in row for row in rows], [False, False, True, True])

    def test_the_context_has_the_limits(self):
        self.rows("--data", "null", "--workers", 0, "--case-budget", 0.01)
        limits = json.loads(json.loads(self.out.read_text())["context"]["loader_limits"])
        self.assertGreater(limits["cores"], 0)

    def test_painted_files_are_gone_afterwards(self):
        self.rows(*SMALL, "--workers", 1)
        done = bench(*SMALL, "--workers", 1, TMPDIR=str(self.folder))
        self.assertEqual(done.code, 0, done)
        self.assertEqual([p.name for p in self.folder.iterdir()], ["loader.json"])

    def test_bad_usage_is_one_line_and_2(self):
        self.assert_refused(bench("--workers", "-1"), "--workers")
        self.assert_refused(bench("--workers", "10000"), "--workers")
        self.assert_refused(bench("--data", self.folder / "none"), "none", "does not exist")
        self.assert_refused(bench("--data", "cost:soon"), "cost:soon")
        self.assert_refused(bench("--data", "null", "--cache", "cold"), "cold")
        self.assert_refused(bench("--batch-per-device", "0"), "--batch-per-device")
        self.assert_refused(bench("--wokers", "1"), "--wokers", "--workers")
        empty = self.folder / "empty"
        (empty / "cat").mkdir(parents=True)
        self.assert_refused(bench("--data", empty), "no usable image")
        loop = pathlib.Path(self.folder / "loop")
        (loop / "cat").mkdir(parents=True)
        (loop / "cat" / "again").symlink_to(loop)
        (loop / "cat" / "x.jpg").symlink_to(loop / "cat" / "x.jpg")
        self.assert_refused(bench("--data", loop), "no usable image")


if __name__ == "__main__":
    programs.main()
