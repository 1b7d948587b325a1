# SPDX-License-Identifier: Apache-2.0
# labels: process cpu_only
# timeout: 180
"""Tests `howmany backend` and `howmany transfer` through the command line, with fake bench programs."""
import csv
import json
import pathlib
import sys

import programs
from fake import HERE, Fake


class Suites(Fake):
    def setUp(self):
        super().setUp()
        imitation = (HERE / "fake_suites.py").read_text().split("\n", 1)[1]
        for name in ("backend_bench", "transfer_bench", "torch_collectives.py"):
            tool = self.folder / "bin" / name
            tool.write_text(f"#!{sys.executable} -S\n{imitation}")
            tool.chmod(0o755)

    def backend(self, *more, torch=("--backend", "gloo,local"), how={}, **environment):
        return self.howmany("backend", "--devices", "cpu:0,cpu:1", "--out", self.out, *torch, *more,
                            FAKE_SUITE=json.dumps(how), **environment)


class Backend(Suites):
    def test_recommends_the_fastest_and_shows_the_crossing(self):
        done = self.backend()
        self.assertEqual(done.code, 0, done)
        self.assertTrue(done.out.startswith("Use local: all_reduce of 16 MiB"), done)
        self.assertIn("Fastest: gloo below 12.", done.out)  # crosses at 13.3 kB
        answer = self.summary()["answer"]["backend"]
        self.assertEqual((answer["recommended"], answer["certain"]), ("local", True))
        fits = {f["backend"]: f for f in answer["fits"] if f["op"] == "all_reduce"}
        self.assertAlmostEqual(fits["gloo"]["latency_s"], 10e-6, delta=1e-8)
        self.assertAlmostEqual(fits["local"]["bytes_per_s"], 2e9, delta=1e6)
        self.assertIn("busbw", done.out)
        crossing, = [c for c in answer["crossings"] if c["op"] == "all_reduce"]
        self.assertEqual((crossing["below"], crossing["above"], crossing["certain"]), ("gloo", "local", True))
        self.assertTrue(4096 <= crossing["low"] < crossing["bytes"] < crossing["high"] <= 65536, crossing)
        self.assertIn("no time left", done.out)

    def test_leaves_files_that_agree(self):
        self.assertEqual(self.backend("--rounds", "1").code, 0)
        self.assertEqual(sorted(p.name for p in self.out.iterdir()),
                         ["backend.json", "backend.samples.jsonl", "report.html", "summary.csv", "summary.json"])
        with open(self.out / "summary.csv", newline="") as file:
            rows = list(csv.DictReader(file))
        cell = next(r for r in rows if (r["case"], r["bytes"], r["metric"]) ==
                    ("all_reduce/gloo", "1024", "median_s"))
        self.assertAlmostEqual(float(cell["value"]), 10e-6 + 2e-9 * 1024)
        self.assertLess(float(cell["low"]), float(cell["value"]))

    def test_each_cell_is_the_mean_of_rounds_of_fresh_processes(self):
        self.assertEqual(self.backend("--rounds", "3", how={"gloo": "drifts"}).code, 0)
        cells = {m["case"]: m for m in self.summary()["measurements"] if m["parameters"].get("bytes") == "1024"}
        gloo, local = (cells[f"all_reduce/{name}"]["metrics"]["median_s"] for name in ("gloo", "local"))
        self.assertAlmostEqual(gloo["value"], (1 * 1.01 * 1.02) ** (1 / 3) * (10e-6 + 2e-9 * 1024), delta=1e-12)
        self.assertLess(gloo["low"], 0.99 * gloo["value"])
        self.assertGreater(gloo["high"], 1.01 * gloo["value"])
        self.assertEqual((gloo["n"], gloo["basis"]), (3, "rounds"))
        self.assertAlmostEqual(local["low"], local["high"], delta=1e-12)
        rows = json.loads((self.out / "backend.json").read_text())["benchmarks"]
        self.assertEqual({r["repetition_index"] for r in rows if "gloo" in r["name"]}, {0, 1, 2})
        lines = (self.out / "backend.samples.jsonl").read_text().splitlines()
        self.assertEqual({json.loads(line)["round"] for line in lines}, {0, 1, 2})

    def test_json_is_the_summary_and_nothing_else(self):
        done = self.backend("--json")
        self.assertEqual(done.json(), self.summary())

    def test_wrong_data_is_1_and_names_the_element(self):
        done = self.backend(how={"gloo": "wrong"})
        self.assertEqual(done.code, 1, done)
        self.assertIn("rank 1 of 2, element 5: 7 instead of 8", " ".join(done.out.split()))

    def test_a_backend_that_dies_leaves_the_others(self):
        done = self.backend(how={"gloo": "die"})
        self.assertEqual(done.code, 3, done)
        self.assertIn("backend_bench", done.err)
        seen = {m["case"] for m in self.summary()["measurements"]}
        self.assertLessEqual({"all_reduce/local", "all_reduce/gloo"}, seen)

    def launched(self, *more, FAKE_CORES="4", **launch):
        place = {"launcher": "mpirun", "rank": 0, "world": 2, "local_rank": 0, "local_world": 2, **launch}
        return self.howmany("backend", "--out", self.out, *more, FAKE_LAUNCH=json.dumps(place), FAKE_CORES=FAKE_CORES,
                            FAKE_ARGUMENTS=str(self.folder / "arguments"))

    def test_ranks_of_a_launcher_are_measured_in_one_start(self):
        done = self.launched()
        self.assertEqual(done.code, 0, done)
        self.assertTrue(done.out.startswith("Use local: all_reduce"), done)
        self.assertIn("mpirun started 2 ranks.\n", done.out)
        self.assertIn("loopback TCP", done.out)
        request = self.summary()["context"]["howmany_request"]
        self.assertEqual((request["launcher"], request["ranks"]), ("mpirun", 2))

    def test_ranks_of_a_launcher_are_called_with_the_same(self):
        self.assertEqual(self.launched("--ops", "all_reduce", rank=1, local_rank=1).code, 0)
        self.assertEqual(self.launched("--ops", "all_reduce").code, 0)
        other, first, ceilings = map(json.loads, (self.folder / "arguments").read_text().splitlines())
        self.assertEqual(first, other, "or they would not have each other")
        self.assertTrue(ceilings[0].endswith("transfer_bench"), ceilings)

    def test_dtypes_and_numbers_of_ranks_are_axes(self):
        self.assertEqual(self.launched("--dtype", "f32,bf16", "--device-count", "2,1").code, 0)
        bench = json.loads((self.folder / "arguments").read_text().splitlines()[0])
        for flag, value in (("--dtype", "f32,bf16"), ("--device-count", "2,1")):
            self.assertEqual(bench[bench.index(flag) + 1], value)
        request = self.summary()["context"]["howmany_request"]
        self.assertEqual(request["dtype"], ["f32", "bf16"])

    def test_what_one_host_can_move_is_no_ceiling_of_several(self):
        done = self.launched(local_world=1)
        self.assertIn("mpirun started 2 ranks, 1 on a host, so what the machine can move was not measured.",
                      " ".join(done.out.split()))
        self.assertNotIn("loopback TCP", done.out)

    def test_what_the_cores_of_one_rank_can_move_is_no_ceiling_of_all(self):
        done = self.launched(FAKE_CORES="1")
        self.assertIn("rank 0 has 1 of the cores", done.out)
        self.assertNotIn("loopback TCP", done.out)

    def test_no_rank_begins_where_a_run_is(self):
        self.assertEqual(self.launched().code, 0)
        calls = (self.folder / "arguments").read_text()
        for rank in (0, 1):
            self.assert_refused(self.launched(rank=rank, local_rank=rank), "holds a run already")
        self.assertEqual((self.folder / "arguments").read_text(), calls)

    def test_half_a_launch_and_rounds_of_one_start_are_refused(self):
        self.assert_refused(self.launched(world=1, why="[launch] RANK is set, but WORLD_SIZE is not"), "RANK is set")
        self.assert_refused(self.launched("--rounds", "3"), "--rounds", "mpirun starts the ranks once")
        self.assertFalse(self.out.exists())

    def test_bad_usage_is_one_line_and_2(self):
        for arguments, words in ((("--backend", "gluu"), ("gluu", "gloo")),
                                 (("--max-bytes", "lots"), ("--max-bytes", "lots")),
                                 (("--time-budget", "0"), ("--time-budget",)),
                                 (("--devises", "cpu:0"), ("--devices",))):
            self.assert_refused(self.backend(*arguments), *words)

    def test_one_rank_is_refused(self):
        words = "a backend carries data between ranks, and one has no other; give"
        for arguments in (("--devices", "cpu:0"), ("--devices", "cpu:1-1"), ("--device-count", "1")):
            self.assert_refused(self.howmany("backend", "--out", self.out, *arguments), arguments[0], words)
        self.assertFalse(self.out.exists())
        self.assertEqual(self.howmany("backend", "--out", self.out, "--devices", "cpu:0-1").code, 0)

    def test_how_busy_others_were_is_recorded_where_all_ranks_are_our_own(self):
        self.assertEqual(self.backend("--rounds", "1").code, 0)
        self.assertTrue(0 <= self.summary()["context"]["busy_elsewhere_fraction"] <= 1)
        self.out = self.folder / "launched"
        self.assertEqual(self.launched().code, 0)
        self.assertNotIn("busy_elsewhere_fraction", self.summary()["context"])

    def test_report_takes_no_options_of_another_question(self):
        self.assertEqual(self.backend("--rounds", "1").code, 0)
        for option, value in (("--samples", "5"), ("--min-efficiency", "0.5")):
            self.assert_refused(self.howmany("report", self.out, option, value), option, "howmany backend")

    def test_report_prints_it_again(self):
        done = self.backend()
        again = self.howmany("report", self.out)
        self.assertEqual(again.code, 0, again)
        self.assertEqual(again.out, done.out.rpartition("Files: ")[0])

    def test_a_second_run_does_not_overwrite_the_first(self):
        self.assertEqual(self.backend().code, 0)
        self.assert_refused(self.backend(), "--out")


class Transfer(Suites):
    def test_answers_in_tables_and_files(self):
        done = self.howmany("transfer", "--out", self.out)
        self.assertEqual(done.code, 0, done)
        self.assertTrue(done.out.startswith("Copy large buffers with 2 threads"), done)
        self.assertRegex(done.out, r"Below \S+ KiB a copy of host memory is latency")
        self.assertIn("skipped: this build has no cuda devices", done.out)
        answer = self.summary()["answer"]["transfer"]
        self.assertEqual(answer["recommended"], 2)
        self.assertEqual(answer["skipped"][0]["kind"], "host_to_device")
        self.assertEqual(sorted(p.name for p in self.out.iterdir()),
                         ["report.html", "summary.csv", "summary.json", "transfer.json", "transfer.samples.jsonl"])

    def test_reports_whether_pinning_pays(self):
        done = self.howmany("transfer", "--devices", "cuda:0,cuda:1", "--out", self.out,
                            FAKE_SUITE=json.dumps({"transfer": "gpus"}))
        self.assertEqual(done.code, 0, done)
        words = " ".join(done.out.split())
        self.assertTrue(words.startswith("Pin what goes to a GPU: 54.9 GB/s to cuda:0 from pinned memory, 18.0 GB/s"), done)
        for part in ("Copy large buffers with 2 threads", "One training step", "1.24 ms", "Rates of GPUs",
                     "Copies to and from cuda:1 (median)"):
            self.assertIn(part, words)
        answer = self.summary()["answer"]["transfer"]
        self.assertEqual([d["device"] for d in answer["devices"]], ["cuda:0", "cuda:1"])
        self.assertAlmostEqual(answer["devices"][0]["to_device"]["pinned_async_bytes_per_s"], 55.2e9, delta=1e8)
        self.assertEqual(answer["steps"][0]["batch_in_pinned_s"], 1.86e-3)
        self.assertEqual(self.summary()["context"]["howmany_request"]["devices"], "cuda:0,cuda:1")
        again = self.howmany("report", self.out)
        self.assertEqual(again.out, done.out.rpartition("Files: ")[0])

    def test_each_host_of_a_launcher_measures_itself_once(self):
        place = {"launcher": "srun", "rank": 2, "world": 4, "local_rank": 0, "local_world": 2, "host": "node7"}
        done = self.howmany("transfer", "--out", self.out, FAKE_LAUNCH=json.dumps(place))
        self.assertTrue(done.out.startswith("On node7: Copy large buffers"), done)
        self.assertTrue((self.out / "node7/summary.json").exists())
        done = self.howmany("transfer", "--out", self.out, FAKE_LAUNCH=json.dumps({**place, "local_rank": 1}))
        self.assertEqual((done.code, done.out), (0, ""))
        done = self.howmany("transfer", "--out", self.out, FAKE_LAUNCH=json.dumps({**place, "local_world": 0}))
        self.assert_refused(done, "LOCAL_WORLD_SIZE")

    def test_how_busy_others_were_is_recorded_where_no_launcher_started_us(self):
        self.assertEqual(self.howmany("transfer", "--out", self.out).code, 0)
        self.assertTrue(0 <= self.summary()["context"]["busy_elsewhere_fraction"] <= 1)
        place = {"launcher": "srun", "rank": 0, "world": 2, "local_rank": 0, "local_world": 2, "host": "node7"}
        self.out = self.folder / "launched"
        self.assertEqual(self.howmany("transfer", "--out", self.out, FAKE_LAUNCH=json.dumps(place)).code, 0)
        self.assertNotIn("busy_elsewhere_fraction", self.summary()["context"])

    def test_a_batch_of_no_model_is_refused(self):
        self.assert_refused(self.howmany("transfer", "--out", self.out, "--batch-per-device", "32"), "--batch-per-device requires --model")

    def test_hands_the_devices_on(self):
        done = self.howmany("transfer", "--devices", "cuda:3", "--devices", "cuda:1", "--out", self.out,
                            FAKE_SUITE=json.dumps({"transfer": "gpus"}))
        answer = self.summary()["answer"]["transfer"]
        self.assertEqual([d["device"] for d in answer["devices"]], ["cuda:3", "cuda:1"], done)


SCRIPT = pathlib.Path(__file__).resolve().parents[1] / "gpus" / "recorded_script.py"


class OwnScript(programs.TestCase):
    """The gradient buckets of a script that writes the records of the hook itself, so without PyTorch."""

    def test_its_buckets_decide(self):
        out = self.folder / "out"
        done = programs.run("howmany", "backend", "--devices", "cpu:0,cpu:1", "--oversubscribe", "--backend", "local",
                            "--max-bytes", "1K", "--time-budget", 6, "--rounds", 1, "--out", out, "--",
                            sys.executable, SCRIPT, "{n}", timeout=120)
        self.assertIn(done.code, (0, 3), done)  # 3: out of time
        cells = [m for m in json.loads((out / "summary.json").read_text())["measurements"]
                 if m["parameters"].get("model") == "recorded_script.py"]
        self.assertEqual([m["parameters"]["bytes"] for m in cells], ["1048576"] * 2)
        for name in ("summary.json", "report.html"):
            self.assertNotIn(str(SCRIPT.parent), (out / name).read_text())

    def test_a_script_that_fails_is_quoted(self):
        done = programs.run("howmany", "backend", "--devices", "cpu:0,cpu:1", "--backend", "local", "--quiet",
                            "--out", self.folder / "out", "--", sys.executable, SCRIPT, "{n}", "--fail", "1",
                            timeout=120)
        self.assert_refused(done, "the disk is full", code=3)


if __name__ == "__main__":
    programs.main()
