# SPDX-License-Identifier: Apache-2.0
# labels: process cpu_only
# timeout: 120
"""Tests `howmany why` on the folder of a script's run, with evidence as script_bench records it."""
import json
import pathlib
import shutil
import sys
import tempfile

import programs

SCRIPT = pathlib.Path(__file__).resolve().parents[1] / "gpus" / "recorded_script.py"

MS = 1e-3


def rank(exchange):
    return {"step_s": 10 * MS + exchange, "data_s": 1 * MS, "epochs_s": 0, "outside_s": 0, "backward_s": 4 * MS + exchange,
            "optimizer_s": 1 * MS, "blocked_s": 0}


def detail(mode, began, ranks, exchange=0.0):
    one = {"train_s": 9 * MS + exchange, "backward_s": 4 * MS + exchange, "blocked_s": exchange, "began_s": began}
    if mode == "synced":
        one |= {"spans": [["data", 0, 1 * MS], ["backward", 4 * MS, 4 * MS + exchange]]}
        one |= {"buckets": [[25e6, 6 * MS, 8 * MS + exchange]]} if ranks > 1 else {}
    return {"mode": mode, "ranks": [one] * ranks}


def evidence(ranks):
    """A step of 10 ms on one device, and of 16 ms on more: 6 ms of exchange."""
    exchange = 6 * MS if ranks > 1 else 0
    modes = ["synced", "noop", "alone"] if ranks > 1 else ["synced"]
    steps = [detail(mode, 5 + i / 10, ranks, exchange if mode == "synced" else 0) for i, mode in enumerate(modes * 5)]
    return {"gpu": False, "ddp": ranks > 1, "recording": 0.001, "cores": 1, "threads": 1, "samples": 64,
            "gradient_bytes": 25e6, "bucket_cap": 25e6, "ranks": [rank(exchange)] * ranks,
            "steps": steps}


class Why(programs.TestCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.measured = pathlib.Path(tempfile.mkdtemp())
        cls.addClassCleanup(shutil.rmtree, cls.measured)
        programs.run("howmany", "gpus", "--devices", "cpu:0,cpu:1", "--oversubscribe", "--rounds", "1",
                     "--out", cls.measured / "out", "--", sys.executable, SCRIPT, "{n}", timeout=100, RECORDED_SPEED="0.625")

    def setUp(self):
        super().setUp()
        self.out = self.folder / "out"
        shutil.copytree(self.measured / "out", self.out)

    def why(self, *arguments):
        return programs.run("howmany", "why", *arguments)

    def summary(self):
        return json.loads((self.out / "summary.json").read_text())

    def record(self, evidence_of=evidence):
        """Replaces the evidence of the runs on one device and on two; None: an older version measured."""
        path = self.out / "speedup.samples.jsonl"
        lines = [json.loads(line) for line in path.read_text().splitlines()]
        for line, ranks in zip(lines, (1, 2), strict=True):
            line.pop("why")
            if evidence_of is not None:
                line["why"] = evidence_of(ranks)
        path.write_text("".join(json.dumps(line) + "\n" for line in lines))

    def test_needs_the_folder_of_a_run(self):
        self.assert_refused(self.why(self.folder / "nothing"), "nothing")
        self.assert_refused(self.why(self.folder), "summary.json")

    def test_needs_evidence(self):
        self.record(None)
        self.assert_refused(self.why(self.out), "measure again")

    def test_refuses_other_commands(self):
        summary = self.summary()
        for name in ("workers", "backend", "transfer"):
            (self.out / "summary.json").write_text(json.dumps(summary | {"answer": {name: {}}}))
            self.assert_refused(self.why(self.out), f"howmany {name}")
        (self.out / "base.json").write_text("{}")
        self.assert_refused(self.why(self.out), "howmany gate")

    def test_names_the_job_of_a_study(self):
        jobs = [{"nodes": n, "script": f"nodes-{n}.sh", "job_id": None} for n in (1, 2)]
        study = {"schema": "howmany.study/1", "directory": "/", "submit": ["sbatch"], "options": [], "command": ["x"],
                 "nodes": [1, 2], "one_job": False, "jobs": jobs}
        (self.out / "study.json").write_text(json.dumps(study))
        self.assert_refused(self.why(self.out), "nodes-2")

    def test_answers_again_on_another_machine(self):
        self.record()
        copy = self.folder / "copy"
        shutil.copytree(self.out, copy)
        shutil.rmtree(self.out)
        answers = [self.why(path, "--json") for path in (copy, copy / "summary.json")]
        for done in answers:
            self.assertEqual(done.code, 0, done)
            self.assertEqual(done.json(), answers[0].json())
        two = answers[0].json()["counts"][-1]
        self.assertEqual((two["devices"], two["refused"]), (2, None))
        parts = {part["part"]: part["seconds"] for part in two["parts"]}
        self.assertAlmostEqual(parts["exchange"], 6 * MS, delta=1 * MS)
        self.assertAlmostEqual(sum(parts.values()), two["lost_s"])
        self.assertIn("gradient exchange", " ".join(self.why(copy).out.split()))

    def test_without_the_samples_the_answer_is_the_stored_one(self):
        stored = self.summary()["answer"] | {"why": {"because": "stored", "counts": []}}
        (self.folder / "summary.json").write_text(json.dumps(self.summary() | {"answer": stored}))
        done = self.why(self.folder / "summary.json", "--json")
        self.assertEqual((done.code, done.json()), (0, stored["why"]), done)
        self.assertEqual(list(self.folder.glob("*.pftrace")), [])

    def test_writes_a_timeline_of_all_ranks(self):
        self.record()
        done = self.why(self.out, "--json")
        self.assertEqual(done.code, 0, done)
        self.assertIn(str(self.out / "why.pftrace"), done.err)
        trace = (self.out / "why.pftrace").read_bytes()
        for name in (b"rank 0", b"rank 1", b"buckets of rank 1", b"all-reduce 25 MB", b"step without exchange"):
            self.assertIn(name, trace)
        self.why(self.out, "--trace", self.folder / "mine")
        self.assertEqual((self.folder / "mine").read_bytes(), trace)

    def test_answers_if_the_timeline_cannot_be_written(self):
        self.record()
        done = self.why(self.out, "--json", "--trace", self.folder / "no" / "trace")
        self.assertEqual(done.code, 0, done)
        self.assertIn("not written", done.err)
        self.assertIsInstance(done.json(), dict)


if __name__ == "__main__":
    programs.main()
