# SPDX-License-Identifier: Apache-2.0
# labels: process
# timeout: 180
"""scripts/ci-gate in a repository of its own, with a fake cmake that copies programs instead of building them."""
import json
import os
import pathlib
import shutil
import subprocess
import sys

import programs
from fake import HERE

CMAKE = """#!/usr/bin/env bash
# -S SOURCE -B BUILD ... configures: remembers the source. --build BUILD --target NAME... "builds" from it.
set -e
if [ "$1" = -S ]; then mkdir -p "$4/bin"; echo "$2" >"$4/source"; exit 0; fi
source=$(cat "$2/source")
cp "$source/bench.py" "$2/bin/core_bench"
cp "$HOWMANY_PROGRAM" "$2/bin/howmany"
"""


class CiGate(programs.TestCase):
    def setUp(self):
        super().setUp()
        self.repo, self.tools = self.folder / "repo", self.folder / "tools"
        (self.repo / "scripts").mkdir(parents=True)
        self.tools.mkdir()
        shutil.copy(pathlib.Path(os.environ["HOWMANY_SOURCE"]) / "scripts" / "ci-gate", self.repo / "scripts")
        (self.tools / "cmake").write_text(CMAKE)
        (self.tools / "cmake").chmod(0o755)
        self.git("init", "-q", "-b", "main")
        self.commit(0.001)
        self.git("checkout", "-q", "-b", "change")

    def git(self, *words):
        subprocess.run(["git", "-C", self.repo, "-c", "user.name=x", "-c", "user.email=x@y", *words], check=True)

    def commit(self, seconds):
        program = (HERE / "fake_gbench.py").read_text().split("\n", 1)[1].replace('"a": 0.001', f'"a": {seconds}')
        (self.repo / "bench.py").write_text(f"#!{sys.executable} -S\n{program}")
        (self.repo / "bench.py").chmod(0o755)
        self.git("add", ".")
        self.git("commit", "-q", "-m", "bench")

    def gate(self, *more):
        summary = self.folder / "summary.md"
        return subprocess.run([self.repo / "scripts" / "ci-gate", "--budget", "4", "--out", self.folder / "out", *more],
                              capture_output=True, text=True, cwd=self.folder,
                              env={**os.environ, "PATH": f"{self.tools}:{os.environ['PATH']}",
                                   "HOWMANY_PROGRAM": str(programs.BIN.resolve() / "howmany"),
                                   "GITHUB_STEP_SUMMARY": str(summary)})

    def test_a_slower_commit_is_exit_1_with_reports_and_nothing_left_behind(self):
        self.commit(0.0015)
        done = self.gate()
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn("SLOWER", done.stdout)
        self.assertIn("SLOWER", (self.folder / "summary.md").read_text())
        self.assertIn("<failure", (self.folder / "out" / "gate.xml").read_text())
        self.assertEqual(len(json.loads((self.folder / "out" / "gate.sarif").read_text())["runs"][0]["results"]), 1)
        trees = subprocess.run(["git", "-C", self.repo, "worktree", "list"], capture_output=True, text=True).stdout
        self.assertEqual(len(trees.splitlines()), 1)

    def test_an_unchanged_bench_is_exit_0_at_once(self):
        (self.repo / "readme").write_text("words")
        self.git("add", ".")
        self.git("commit", "-q", "-m", "words")
        done = self.gate()
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("identical", done.stdout)

    def test_main_itself_is_not_built_twice(self):
        done = self.gate()
        self.assertEqual((done.returncode, done.stdout), (0, "Nothing differs from main: nothing to measure.\n"), done.stderr)

    def test_a_clone_without_the_branch_takes_the_remote_one(self):
        clone = self.folder / "clone"
        self.commit(0.0015)
        subprocess.run(["git", "clone", "-q", self.repo, clone], check=True)
        self.repo = clone
        done = self.gate()
        self.assertEqual(done.returncode, 1, done.stderr)

    def test_wrong_options_tell_how(self):
        done = self.gate("--bnech", "x")
        self.assertEqual(done.returncode, 2)
        self.assertIn("scripts/ci-gate --base v1.2", done.stderr)


programs.main()
