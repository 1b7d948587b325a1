# SPDX-License-Identifier: Apache-2.0
# labels: process
"""Tests `howmany cluster`."""

import json
import pathlib

import programs

OURS = """name = "ours"
device = "A100"
devices_per_node = 4
source = "nccl-tests"
[node]
busbw_gb_per_s = 200
latency_us = 20
"""


class Clusters(programs.TestCase):
    def cluster(self, *arguments):
        return programs.run("howmany", "cluster", *arguments)

    def test_lists_those_that_are_built_in(self):
        done = self.cluster("list", "--json")
        self.assertEqual(done.code, 0, done)
        names = [one["name"] for one in done.json()]
        self.assertEqual(names, sorted(names))
        self.assertLessEqual({"v100x8", "a100x8", "h100x8", "mi250x", "mi300x8"}, set(names))
        for name in names:
            self.assertIn(name, self.cluster().out)

    def test_shows_the_file_of_a_user(self):
        path = self.folder / "ours.toml"
        path.write_text(OURS)
        shown = self.cluster(path, "--json").json()
        self.assertEqual([shown["name"], shown["devices_per_node"], shown["network_bytes_per_s"]], ["ours", 4, None])
        self.assertEqual([table["world"] for table in shown["seconds"]], [2, 4])
        self.assertIn("nccl-tests", self.cluster(path).out)

    def test_what_backend_measured_becomes_a_file(self):
        run = pathlib.Path(__file__).resolve().parents[3] / "docs" / "results" / "guide" / "backend"
        done = self.cluster("--from", run, "--backend", "gloo")
        self.assertEqual(done.code, 0, done)
        path = self.folder / "here.toml"
        path.write_text(done.out)
        shown = self.cluster(path, "--json").json()
        self.assertEqual([shown["name"], shown["device"], shown["devices_per_node"]], ["here", "cpu", 2])
        rows = {row["parameters"]["bytes"]: row["metrics"]["median_s"]["value"]
                for row in json.loads((run / "summary.json").read_text())["measurements"]
                if row["case"] == "all_reduce/gloo"}
        table = {str(int(size)): seconds for size, seconds in shown["seconds"][0]["all_reduce"]}
        for size in set(rows) & set(table):
            self.assertAlmostEqual(table[size] / rows[size], 1, places=4)
        self.assertGreater(len(set(rows) & set(table)), 2)
        self.assert_refused(self.cluster("--from-backend", run, "--backend", "nccl"), "nccl")

    def test_a_table_of_nccl_tests_is_a_cluster(self):
        path = self.folder / "nccl.txt"
        path.write_text("# nThread 1 nGpus 8\n"
                        "# size count type redop root time algbw busbw #wrong time algbw busbw #wrong\n"
                        "1048576 262144 float sum -1 45.10 23.25 40.69 0 44.70 23.46 41.05 0\n")
        self.assertEqual(self.cluster(path, "--json").json()["devices_per_node"], 8)
        for spelling in ("--from", "--from-nccl-tests"):
            done = self.cluster(spelling, path)
            self.assertEqual(done.code, 0, done)
            self.assertIn("8 = [[1048576, 45.1]]", done.out)
        answer = programs.run("howmany", "predict", "--rates", "1=10,8=75", "--cluster", path, "--up-to", 8 * 2, "--json")
        self.assert_refused(answer, "[network]")

    def test_bad_files_and_names_are_refused(self):
        path = self.folder / "bad.toml"
        path.write_text(OURS + "latencyus = 20\n")
        self.assert_refused(self.cluster(path), "bad.toml:8: node.latencyus")
        self.assert_refused(self.cluster("a100x9"), "a100x9", "howmany cluster list")


if __name__ == "__main__":
    programs.main()
