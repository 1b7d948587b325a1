# SPDX-License-Identifier: Apache-2.0
# labels: process
# timeout: 180
"""Tests --trace-file: the parts of a step, and a trace for Perfetto."""

import json
import unittest

import programs

SMALL = ("--model", "mlp:sizes=16-32-4", "--batch-per-device", 8)
DEVICES = programs.run("howmany-devices", "--json").json()
HAS_GLOO = any(part["name"] == "gloo" and part["usable"] for part in DEVICES["backends"]["comms"])
PARTS = [f"profile_{part}_s" for part in ("compute", "optimizer", "comm", "copy", "data", "host")]


def fields(data):
    """Returns [(number, value)] of a protobuf message: numbers as int, strings as bytes."""
    found, at = [], 0

    def varint():
        nonlocal at
        value = shift = 0
        while True:
            byte = data[at]
            at, value, shift = at + 1, value | (byte & 0x7f) << shift, shift + 7
            if byte < 0x80:
                return value

    while at < len(data):
        key = varint()
        value = varint()
        if key & 7:
            assert key & 7 == 2 and at + value <= len(data), f"wire type {key & 7} at {at}"
            at, value = at + value, data[at:at + value]
        found.append((key >> 3, value))
    return found


def texts(data, *path):
    """Returns the values at the end of a path of field numbers."""
    if not path:
        return [data]
    return [text for number, value in fields(data) if number == path[0] for text in texts(value, *path[1:])]


class Profile(programs.TestCase):
    def setUp(self):
        super().setUp()
        self.trace = self.folder / "trace.pftrace"

    def measure(self, *arguments):
        out = self.folder / "out.json"
        done = programs.run("speedup_bench", *SMALL, "--case-budget", 0.05, "--oversubscribe", *arguments,
                            f"--benchmark_out={out}", timeout=120)
        self.assertEqual(done.code, 0, done)
        return json.loads(out.read_text())["benchmarks"]

    def names(self, kind):
        """Returns the names of groups and tracks, or the interned names, of all sequences."""
        path = {"tracks": (1, 60, 2), "slices": (1, 12, 2, 2), "categories": (1, 12, 1, 2)}[kind]
        return [text.decode() for text in texts(self.trace.read_bytes(), *path)]

    def check_parts(self, row):
        self.assertGreaterEqual(row["profile_steps"], 3)
        self.assertEqual(row["profile_dropped_spans"], 0)
        for part in PARTS:
            self.assertTrue(0 <= row[part] <= row["profile_step_s"], (part, row))
        self.assertGreater(row["profile_compute_s"], 0)
        self.assertGreater(row["profile_optimizer_s"], 0)
        self.assertGreater(row["profile_cost_fraction"], -1)

    def test_one_device_computes_and_talks_to_nobody(self):
        (row,) = self.measure("--mode", "single", "--trace-file", self.trace)
        self.check_parts(row)
        self.assertEqual((row["profile_comm_s"], row["profile_hidden_comm_s"]), (0, 0))
        self.assertEqual(self.names("tracks"), [row["name"], "rank 0"])
        self.assertLessEqual({"iteration", "forward", "backward", "linear", "sgd"}, set(self.names("slices")))
        self.assertLessEqual({"step", "compute", "optimizer"}, set(self.names("categories")))

    def test_ranks_that_are_threads_are_all_in_the_trace(self):
        (row,) = self.measure("--mode", "ddp", "--backend", "local", "--device-count", 2, "--trace-file", self.trace)
        self.check_parts(row)
        self.assertGreater(row["profile_comm_s"] + row["profile_hidden_comm_s"], 0)
        self.assertLessEqual({"rank 0", "rank 1", "communication of rank 0", "communication of rank 1"},
                             set(self.names("tracks")))
        self.assertIn("all_reduce", self.names("slices"))

    @unittest.skipUnless(HAS_GLOO, "gloo was not built or cannot be used here")
    def test_ranks_that_are_processes_are_all_in_the_trace(self):
        (row,) = self.measure("--mode", "ddp", "--backend", "gloo", "--device-count", 2, "--trace-file", self.trace)
        self.check_parts(row)
        self.assertEqual(self.names("tracks"), [row["name"], "rank 0", "communication of rank 0", "rank 1",
                                                "communication of rank 1"])
        self.assertEqual(self.names("slices").count("iteration"), 2, "once for each rank's track")

    def test_threads_of_replicas_count_for_the_one_rank(self):
        (row,) = self.measure("--mode", "data_parallel", "--device-count", 2, "--trace-file", self.trace)
        self.check_parts(row)
        self.assertEqual(self.names("tracks").count("device of rank 0"), 2)
        self.assertGreater(row["profile_copy_s"], 0)

    def test_cases_share_the_file(self):
        rows = self.measure("--mode", "single,ddp", "--backend", "local", "--device-count", 1, "--trace-file",
                            self.trace)
        tracks = self.names("tracks")
        self.assertEqual([track for track in tracks if "/" in track], [row["name"] for row in rows])

    def test_nothing_is_profiled_unless_asked_for(self):
        (row,) = self.measure("--mode", "single")
        self.assertEqual([key for key in row if key.startswith("profile")], [])
        self.assertFalse(self.trace.exists())

    def test_a_trace_that_cannot_be_written_is_refused_at_once(self):
        self.assert_refused(programs.run("speedup_bench", *SMALL, "--trace-file", "/nowhere/t.pftrace"),
                            "--trace-file", "/nowhere/t.pftrace")

    def test_howmany_gpus_tells_where_a_step_goes(self):
        out = self.folder / "out"
        done = programs.run("howmany", "gpus", *SMALL, "--mode", "ddp", "--backend", "local", "--devices",
                            "cpu:0,cpu:1", "--oversubscribe", "--rounds", 2, "--time-budget", 4, "--profile",
                            "--out", out, timeout=120)
        self.assertEqual(done.code, 0, done)
        self.assertIn("Time of a step of mlp:sizes=16-32-4", done.out)
        self.assertRegex(done.out, r"\n  1 device: .*compute \d+ %")
        self.assertRegex(done.out, r"\n  2 devices, ddp: .*communication \d+ %")
        self.assertIn(str(out / "trace.pftrace"), done.out)
        again = programs.run("howmany", "report", out)
        self.assertIn("Time of a step of", again.out)
        measurements = json.loads((out / "summary.json").read_text())["measurements"]
        self.trace = out / "trace.pftrace"
        groups = [track for track in self.names("tracks") if "/" in track]
        self.assertEqual(len(groups), len(measurements), "in the first round only")
        for one in measurements:
            self.assertEqual(one["metrics"]["profile_compute_s"]["unit"], "s")
            self.assertEqual(one["metrics"]["profile_compute_s"]["n"], 1)


programs.main()
