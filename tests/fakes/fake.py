# SPDX-License-Identifier: Apache-2.0
"""`howmany` with programs that imitate the bench, see fake_bench.py."""
import json
import pathlib
import sys

import programs

HERE = pathlib.Path(__file__).resolve().parent


class Fake(programs.TestCase):
    def setUp(self):
        super().setUp()
        self.out = self.folder / "out"
        self.log = self.folder / "log"
        tools = self.folder / "bin"
        tools.mkdir()
        imitation = (HERE / "fake_bench.py").read_text().split("\n", 1)[1]
        for name in ("speedup_bench", "howmany-devices", "howmany-train"):
            (tools / name).write_text(f"#!{sys.executable} -S\n{imitation}")
            (tools / name).chmod(0o755)
        self.environment = {"HOWMANY_BENCH_DIR": str(tools), "FAKE_LOG": str(self.log)}

    def howmany(self, *arguments, **environment):
        return programs.run("howmany", *arguments, timeout=120, **{**self.environment, **environment})

    def gpus(self, *more, **environment):
        """One round of single and ddp on 1 and 2 devices: three runs."""
        return self.howmany(*self.arguments(), *more, **environment)

    def arguments(self):
        return ("gpus", "--devices", "cpu:0,cpu:1", "--mode", "ddp", "--rounds", "1", "--out", self.out)

    def started(self):
        return [json.loads(line) for line in self.log.read_text().splitlines()] if self.log.exists() else []

    def summary(self):
        return json.loads((self.out / "summary.json").read_text())

    def samples(self):
        return [json.loads(line) for line in (self.out / "speedup.samples.jsonl").read_text().splitlines()]

    def rows(self):
        return json.loads((self.out / "speedup.json").read_text())["benchmarks"]
