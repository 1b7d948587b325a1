# SPDX-License-Identifier: Apache-2.0
# labels: process cpu_only
# timeout: 300
"""Tests speedup_bench as `howmany gpus` runs it: names, JSON, samples, checks, exit codes."""

import json
import os
import signal
import subprocess
import unittest

import images
import processes
import programs

# Enough layers for one stage on each of three devices.
LAYERS = ("--model", "mlp:sizes=16-32-24-4", "--batch-per-device", 8, "--case-budget", 0.05)
SMALL = ("--model", "mlp:sizes=16-32-4", "--batch-per-device", 8, "--case-budget", 0.05)


def speedup(*arguments, **environment):
    return programs.run("speedup_bench", *arguments, timeout=120, **environment)


def process_backends():
    told = speedup("--backend", "nothing").err
    return [name for name in ("gloo", "mpi") if name in told]


def has_gloo():
    return "gloo" in process_backends()


IN_ONE_PROCESS, OVER_RANKS = ["data_parallel", "model"], ["ddp", "sharded", "tensor", "pipeline", "hybrid"]


class Speedup(programs.TestCase):
    def measure(self, *arguments, code=0, small=SMALL):
        """Returns the result, the rows of the JSON and the lines of samples."""
        out, samples = self.folder / "out.json", self.folder / "samples.jsonl"
        done = speedup(*small, *arguments, f"--benchmark_out={out}", "--samples-file", samples)
        self.assertEqual(done.code, code, done)
        rows = json.loads(out.read_text())["benchmarks"]
        lines = [json.loads(line) for line in samples.read_text().splitlines()]
        return done, rows, lines

    def test_one_case_leaves_a_row_and_its_samples(self):
        _, rows, lines = self.measure("--mode", "single")
        row, line = rows[0], lines[0]
        name = "speedup/single/mlp:sizes=16-32-4/backend:local/devices:1/batch:8/scaling:weak"
        self.assertEqual([row["name"], row["run_name"], line["name"]], [name] * 3)
        seconds = sorted(line["seconds"])
        self.assertEqual(row["iterations"], len(seconds))
        self.assertEqual(row["samples"], len(seconds))
        self.assertAlmostEqual(row["real_time"] / 1e3, sum(seconds) / len(seconds), delta=1e-9)
        self.assertAlmostEqual(row["min_s"], seconds[0])
        self.assertAlmostEqual(row["samples_per_s"], 8 / row["median_s"], delta=1e-3)
        self.assertAlmostEqual(row["flop_per_s"], 2 * 8 * (2 * 16 * 32 + 3 * 32 * 4) / row["median_s"],
                               delta=1)
        self.assertGreaterEqual(row["data_wait_fraction"], 0)
        self.assertGreater(row["loss"], 0)
        self.assertEqual((line["world"], line["flags"]), (1, []))
        self.assertEqual(line["parameters"] | {"kernels": ""},
                         {"mode": "single", "model": "mlp:sizes=16-32-4", "backend": "local",
                          "devices": "1", "batch_per_device": "8", "global_batch": "8",
                          "scaling": "weak", "kernels": "", "cores_per_device": "1",
                          "precision": "f32"})

    def test_every_mode_and_backend_runs_on_one_to_three_devices(self):
        _, rows, lines = self.measure("--device-count", "1,2,3", "--oversubscribe", small=LAYERS)
        names = [row["name"].split("/") for row in rows]
        seen = {(n[1], n[3], n[4]) for n in names}
        ways = [(mode, "local") for mode in IN_ONE_PROCESS + OVER_RANKS]
        ways += [(mode, backend) for mode in OVER_RANKS for backend in process_backends()]
        want = {("single", "backend:local", "devices:1")} | {
            (mode, f"backend:{backend}", f"devices:{n}") for mode, backend in ways
            for n in (1, 2, 3)}
        self.assertEqual(seen, want)
        self.assertEqual(len(rows), len(want))
        self.assertEqual([row["name"] for row in rows], [line["name"] for line in lines])
        for line in lines:
            over_ranks = line["parameters"]["mode"] in OVER_RANKS
            self.assertEqual(line["world"], int(line["parameters"]["devices"]) if over_ranks else 1)

    def test_stages_tell_their_bubble_beside_theory(self):
        _, rows, _ = self.measure("--mode", "pipeline:micro_batches=4,schedule=gpipe,ddp",
                                  "--backend", "local", "--device-count", 2, "--oversubscribe", small=LAYERS)
        pipeline, ddp = rows
        self.assertIn("/pipeline:micro_batches=4,schedule=gpipe/", pipeline["name"])
        self.assertAlmostEqual(pipeline["theoretical_bubble_fraction"], 1 / 5)
        self.assertTrue(0 < pipeline["bubble_fraction"] < 1)
        self.assertEqual(ddp["bubble_fraction"], 0)
        self.assertGreater(ddp["exposed_communication_s"], 0)
        for row in rows:
            self.assertIn(row["straggler_rank"], (0, 1))
            self.assertGreaterEqual(row["straggler_extra_s"], 0)
        for row in rows:
            self.assertGreater(row["peak_bytes_per_device"], 16 * 32 * 4)
            self.assertGreater(row["first_step_s"], 0)

    def test_strong_scaling_keeps_the_global_batch(self):
        out = self.folder / "out.json"
        done = speedup("--model", "simple_net", "--mode", "ddp", "--backend", "local",
                       "--global-batch", 7, "--device-count", "1,2", "--case-budget", 0.01,
                       f"--benchmark_out={out}", "--oversubscribe")
        self.assertEqual(done.code, 0, done)
        self.assertEqual([row["name"].split("/", 3)[3] for row in json.loads(out.read_text())["benchmarks"]],
                         ["backend:local/devices:1/batch:7/scaling:strong",
                          "backend:local/devices:2/batch:4/scaling:strong"])

    def test_shared_cores_are_marked(self):
        many = len(os.sched_getaffinity(0)) + 1
        arguments = ("--mode", "ddp", "--backend", "local", "--device-count", many)
        self.assert_refused(speedup(*SMALL, *arguments), str(many), "--oversubscribe")
        _, rows, lines = self.measure(*arguments, "--oversubscribe")
        self.assertEqual((rows[0]["label"], lines[0]["flags"]),
                         ("oversubscribed", ["oversubscribed"]))

    def test_googles_own_flags_work(self):
        _, rows, _ = self.measure("--mode", "single,ddp", "--backend", "local", "--device-count", 1,
                                  "--benchmark_filter=speedup/ddp", "--benchmark_repetitions=3")
        iterations = [row for row in rows if row["run_type"] == "iteration"]
        self.assertEqual([row["repetition_index"] for row in iterations], [0, 1, 2])
        self.assertTrue(all("/ddp/" in row["name"] for row in rows))

    def test_list_prints_names_and_measures_nothing(self):
        done = speedup("--list")
        self.assertEqual(done.code, 0, done)
        names = done.out.splitlines()
        self.assertIn("speedup/single/mlp/backend:local/devices:1/batch:128/scaling:weak", names)
        self.assertEqual(len(set(names)), len(names))

    def test_context_tells_the_build_and_the_machine_and_no_environment(self):
        out = self.folder / "out.json"
        done = speedup(*SMALL, "--mode", "single", f"--benchmark_out={out}", SECRET_TOKEN="hunter2")
        self.assertEqual(done.code, 0, done)
        context = json.loads(out.read_text())["context"]
        for key in ("commit", "compiler", "compiler_flags", "build_type", "cpu", "cores_allowed",
                    "cores_because", "governor", "memory_bytes", "kernel", "onednn", "gloo",
                    "world", "launcher"):
            self.assertTrue(context[key], key)
        self.assertNotIn("hunter2", out.read_text())

    def test_bad_usage_is_one_line_and_2(self):
        for arguments, words in (
                (("--mode", "dpp"), ("dpp", "ddp")),
                (("--model", "mpl"), ("mpl", "mlp")),
                (("--backend", "lokal"), ("lokal", "local")),
                (("--devices", "cpu:x"), ("cpu:x",)),
                (("--devices", "cuda:0"), ("cuda:0",)),
                (("--mode", "single:graph=maybe"), ("graph", "maybe")),
                (("--mode", "single:graph=on", "--devices", "cpu:0"), ("graph=on", "cpu:0")),
                (("--batch-per-devise", 3), ("--batch-per-device",)),
                (("--batch-per-device", 2**63 - 1), ("--batch-per-device", str(2**63 - 1))),
                (("--global-batch", 2**63 - 1), ("--global-batch", str(2**63 - 1))),
                (("--model", "resnet18:image=1024", "--batch-per-device", 2**30),
                 (f"a batch of {2**30} samples is 1.35e+07 GB", "more than the memory here")),
                (("--case-budget", "nan"), ("--case-budget", "nan")),
                (("--timeout", "nan"), ("--timeout", "nan")),
                (("--mode", "ddp", "--devices", "cpu:0,cpu:1", "--global-batch", 1), ("1", "2 devices")),
                (("--device-count", 3, "--devices", "cpu:0,cpu:1"), ("3", "2")),
                (("--kernels", "referense"), ("reference",)),
                (("--benchmark_filter=nothing_has_this_name",), ("nothing_has_this_name",)),
                (("--benchmark_out=/nowhere/out.json", "--mode", "single"), ("/nowhere/out.json",))):
            self.assert_refused(speedup(*arguments), *words)

    def test_the_gain_of_a_graph_is_of_gpus_and_says_where_there_are_none(self):
        done = speedup(*SMALL, "--graph-gain", CUDA_VISIBLE_DEVICES="")
        self.assertEqual((done.code, done.out), (0, ""), done)
        self.assertIn("--graph-gain is skipped: ", done.err)

    def test_random_interleaving_over_processes_is_refused(self):
        if not has_gloo():
            self.skipTest("built without gloo")
        self.assert_refused(speedup(*SMALL, "--mode", "ddp", "--backend", "gloo", "--device-count", 2,
                                    "--oversubscribe", "--benchmark_enable_random_interleaving=true"),
                            "interleaving")

    def test_a_loss_that_is_not_a_number_is_an_error(self):
        out, samples = self.folder / "out.json", self.folder / "samples.jsonl"
        done = speedup(*SMALL, "--mode", "single", "--lr", "1e30", f"--benchmark_out={out}",
                       "--samples-file", samples)
        self.assertEqual(done.code, 3, done)
        self.assertIn("loss", json.loads(out.read_text())["benchmarks"][0]["error_message"])
        self.assertFalse(samples.exists())

    def test_trains_on_files(self):
        images.write_folder(self.folder / "photos")
        arguments = ("--model", "resnet18:image=32,classes=2,width=4", "--data",
                     self.folder / "photos", "--batch-per-device", 4, "--mode", "single,ddp",
                     "--backend", "local", "--device-count", "1,2", "--oversubscribe",
                     "--case-budget", 0.05, f"--benchmark_out={self.folder / 'out.json'}")
        for workers in (0, 1):
            done = speedup(*arguments, "--workers", workers)
            self.assertEqual(done.code, 0, done)
            for row in json.loads((self.folder / "out.json").read_text())["benchmarks"]:
                self.assertGreater(row["data_wait_fraction"], 0, row)
        (self.folder / "photos" / "cat" / "zero.jpg").write_bytes(b"")
        done = speedup(*arguments, "--on-bad-image", "skip")
        self.assertEqual(done.code, 0, done)
        self.assertIn("zero.jpg", done.err)
        self.assert_refused(speedup(*arguments), "zero.jpg")

    def start(self, *arguments):
        return self.popen(programs.BIN / "speedup_bench", *SMALL, *arguments,
                          f"--benchmark_out={self.folder / 'out.json'}",
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def rows(self):
        return json.loads((self.folder / "out.json").read_text() or '{"benchmarks": []}')["benchmarks"]

    def wait_for_rows(self, count):
        """Waits until the JSON has this many rows. It must be readable at all times."""
        self.wait_until(f"{count} rows", lambda: (self.folder / "out.json").exists() and len(self.rows()) >= count)

    def test_killed_it_keeps_what_it_measured(self):
        running = self.start("--mode", "single,data_parallel,ddp", "--backend", "local",
                             "--device-count", "1", "--min-iterations", "5000")
        self.wait_for_rows(1)
        running.kill()
        running.communicate(timeout=60)
        self.assertNotIn("error_occurred", self.rows()[0])

    @unittest.skipUnless(has_gloo(), "built without gloo")
    def test_a_rank_that_dies_is_named_and_the_rest_is_kept(self):
        running = self.start("--mode", "single,ddp", "--backend", "gloo", "--device-count", "2",
                             "--oversubscribe", "--min-iterations", "20000", "--max-iterations",
                             "20000")
        self.wait_for_rows(1)
        rank = self.wait_until("rank 1", lambda: processes.ranks_below(running.pid).get(1))
        os.kill(rank, signal.SIGKILL)
        _, err = running.communicate(timeout=90)
        self.assertEqual(running.returncode, 3, err)
        self.assertIn("rank 1 of 2", err)
        self.assertNotIn("error_occurred", self.rows()[0])


if __name__ == "__main__":
    programs.main()
