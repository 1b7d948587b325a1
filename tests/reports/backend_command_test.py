# labels: process
# timeout: 180
"""`howmany backend` and `howmany transfer` as a user meets them, with benches that imitate the real ones."""
import csv
import json
import sys

import programs
from fake import HERE, Fake


class Suites(Fake):
    def setUp(self):
        super().setUp()
        imitation = (HERE / "fake_suites.py").read_text().split("\n", 1)[1]
        for name in ("backend_bench", "transfer_bench"):
            tool = self.folder / "bin" / name
            tool.write_text(f"#!{sys.executable} -S\n{imitation}")
            tool.chmod(0o755)

    def backend(self, *more, how={}, **environment):
        return self.howmany("backend", "--devices", "cpu:0,cpu:1", "--out", self.out, *more,
                            FAKE_SUITE=json.dumps(how), **environment)


class Backend(Suites):
    def test_recommends_the_fastest_and_says_from_which_size_on(self):
        done = self.backend()
        self.assertEqual(done.code, 0, done)
        self.assertTrue(done.out.startswith("Use local: gloo below 12."), done)  # crosses at 13.3 kB
        answer = self.summary()["answer"]["backend"]
        self.assertEqual((answer["recommended"], answer["certain"]), ("local", True))
        fits = {f["backend"]: f for f in answer["fits"] if f["op"] == "all_reduce"}
        self.assertAlmostEqual(fits["gloo"]["latency_s"], 10e-6, delta=1e-8)
        self.assertAlmostEqual(fits["local"]["bytes_per_s"], 2e9, delta=1e6)
        self.assertIn("busbw", done.out)
        self.assertIn("no time left", done.out)

    def test_leaves_files_that_agree(self):
        self.assertEqual(self.backend("--rounds", "1").code, 0)
        self.assertEqual(sorted(p.name for p in self.out.iterdir()),
                         ["backend.json", "backend.samples.jsonl", "summary.csv", "summary.json"])
        with open(self.out / "summary.csv", newline="") as file:
            rows = list(csv.DictReader(file))
        cell = next(r for r in rows if (r["case"], r["bytes"], r["metric"]) ==
                    ("all_reduce/gloo", "1024", "median_s"))
        self.assertAlmostEqual(float(cell["value"]), 10e-6 + 2e-9 * 1024)
        self.assertLess(float(cell["low"]), float(cell["value"]))

    def test_each_cell_is_the_median_of_rounds_of_fresh_processes(self):
        self.assertEqual(self.backend("--rounds", "3", how={"gloo": "drifts"}).code, 0)
        cells = {m["case"]: m for m in self.summary()["measurements"] if m["parameters"].get("bytes") == "1024"}
        gloo, local = (cells[f"all_reduce/{name}"]["metrics"]["median_s"] for name in ("gloo", "local"))
        self.assertAlmostEqual(gloo["value"], 1.01 * (10e-6 + 2e-9 * 1024), delta=1e-12)
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

    def test_many_copies_of_it_are_refused(self):
        for name in ("WORLD_SIZE", "OMPI_COMM_WORLD_SIZE"):
            self.assert_refused(self.backend(**{name: "2"}), "2 copies", "backend_bench")
        self.assertFalse(self.out.exists())

    def test_bad_usage_is_one_line_and_2(self):
        for arguments, words in ((("--backend", "gluu"), ("gluu", "gloo")),
                                 (("--max-bytes", "lots"), ("--max-bytes", "lots")),
                                 (("--time-budget", "0"), ("--time-budget",)),
                                 (("--devises", "cpu:0"), ("--devices",))):
            self.assert_refused(self.backend(*arguments), *words)

    def test_report_prints_it_again(self):
        done = self.backend()
        again = self.howmany("report", self.out)
        self.assertEqual(again.code, 0, again)
        self.assertEqual(again.out, done.out.rpartition("Files: ")[0])

    def test_a_second_run_does_not_overwrite_the_first(self):
        self.assertEqual(self.backend().code, 0)
        self.assert_refused(self.backend(), "--out")


class Transfer(Suites):
    def test_answers_in_words_and_files(self):
        done = self.howmany("transfer", "--out", self.out)
        self.assertEqual(done.code, 0, done)
        self.assertTrue(done.out.startswith("Copy large buffers with 2 threads"), done)
        self.assertIn("Below 7.81 KiB a copy is latency", done.out)
        self.assertIn("skipped: this build has no cuda devices", done.out)
        answer = self.summary()["answer"]["transfer"]
        self.assertEqual(answer["recommended"], 2)
        self.assertEqual(answer["skipped"][0]["kind"], "host_to_device")
        self.assertEqual(sorted(p.name for p in self.out.iterdir()),
                         ["summary.csv", "summary.json", "transfer.json", "transfer.samples.jsonl"])

    def test_says_of_gpus_whether_pinning_pays(self):
        done = self.howmany("transfer", "--devices", "cuda:0,cuda:1", "--out", self.out,
                            FAKE_SUITE=json.dumps({"transfer": "gpus"}))
        self.assertEqual(done.code, 0, done)
        words = " ".join(done.out.split())
        self.assertTrue(words.startswith("Pin what goes to a GPU: to cuda:0 pinned memory moves 54.9 GB/s, 3.1x"), done)
        for part in ("pin_memory saves 1.24 ms of the 45.1 ms step", "Copy large buffers with 2 threads",
                     "55.2 GB/s is normal, 1.00 of 55.4 GB/s (H200, PCIe 5 x16; github.com/stas00/ml-engineering",
                     "takes 1.002 of the time of a bare cudaMemcpyAsync loop", "Copies to and from cuda:1 (median)"):
            self.assertIn(part, words)
        answer = self.summary()["answer"]["transfer"]
        self.assertEqual([d["device"] for d in answer["devices"]], ["cuda:0", "cuda:1"])
        self.assertAlmostEqual(answer["devices"][0]["to_device"]["pinned_async_bytes_per_s"], 55.2e9, delta=1e8)
        self.assertEqual({v["verdict"] for v in answer["verdicts"]}, {"normal"})
        self.assertEqual(answer["steps"][0]["batch_in_pinned_s"], 1.86e-3)
        self.assertEqual(self.summary()["context"]["howmany_request"]["devices"], "cuda:0,cuda:1")
        again = self.howmany("report", self.out)
        self.assertEqual(again.out, done.out.rpartition("Files: ")[0])

    def test_hands_the_devices_on(self):
        done = self.howmany("transfer", "--devices", "cuda:3", "--devices", "cuda:1", "--out", self.out,
                            FAKE_SUITE=json.dumps({"transfer": "gpus"}))
        answer = self.summary()["answer"]["transfer"]
        self.assertEqual([d["device"] for d in answer["devices"]], ["cuda:3", "cuda:1"], done)


if __name__ == "__main__":
    programs.main()
