# SPDX-License-Identifier: Apache-2.0
"""`howmany workers` with a program that imitates loader_bench, see fake_loader.py."""
import json
import sys

import programs
from fake import HERE


class FakeLoader(programs.TestCase):
    def setUp(self):
        super().setUp()
        self.out, self.log = self.folder / "out", self.folder / "log"
        tools = self.folder / "bin"
        tools.mkdir()
        for name, imitation in (("loader_bench", "fake_loader.py"), ("speedup_bench", "fake_bench.py")):
            (tools / name).write_text(f"#!{sys.executable} -S\n" + (HERE / imitation).read_text().split("\n", 1)[1])
            (tools / name).chmod(0o755)
        self.environment = {"HOWMANY_BENCH_DIR": str(tools), "FAKE_LOG": str(self.log)}

    def workers(self, *arguments, out=None, **environment):
        return programs.run("howmany", "workers", "--out", out or self.out, *arguments, timeout=120,
                            **{**self.environment, **environment})

    def started(self):
        return [json.loads(line) for line in self.log.read_text().splitlines()] if self.log.exists() else []

    def trials(self):
        """The numbers of each run of turns."""
        return [tuple(map(int, run["workers"].split(","))) for run in self.started()
                if "workers" in run and run.get("cache") != "cold"]

    def answer(self):
        return json.loads((self.out / "summary.json").read_text())["answer"]["workers"]
