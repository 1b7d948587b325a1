# SPDX-License-Identifier: Apache-2.0
# labels: process
# timeout: 180
"""The step `Measure` of examples/ci/howmany.yml, in a repository with a slower commit on a branch."""
import os
import pathlib
import re
import shutil
import subprocess
import textwrap
import unittest

import programs

EXAMPLES = pathlib.Path(os.environ["HOWMANY_SOURCE"]) / "examples"


def step(name):
    """The commands of a step of the workflow."""
    text = (EXAMPLES / "ci/howmany.yml").read_text()
    block = re.search(rf"- name: {name}\n +run: \|\n((?: {{10}}.*\n)+)", text)
    return textwrap.dedent(block[1])


class Workflow(programs.TestCase):
    def git(self, *words):
        subprocess.run(["git", "-C", self.repo, "-c", "user.name=x", "-c", "user.email=x@y", *words], check=True)

    def commit(self, version):
        shutil.copy(EXAMPLES / f"gate/words_{version}.cpp", self.repo / "words_before.cpp")
        self.git("add", ".")
        self.git("commit", "-q", "-m", version)

    def setUp(self):
        super().setUp()
        self.repo = self.folder / "repo"
        shutil.copytree(EXAMPLES / "gate", self.repo)
        self.git("init", "-q", "-b", "main")
        self.commit("before")
        self.git("update-ref", "refs/remotes/origin/main", "HEAD")
        self.git("checkout", "-q", "-b", "change")

    def measure(self):
        summary = self.folder / "summary.md"
        path = f"{programs.BIN.resolve()}:{os.environ['PATH']}"
        done = subprocess.run(["bash", "-e", "-o", "pipefail", "-c", step("Measure")], cwd=self.repo, text=True,
                              capture_output=True, env={**os.environ, "PATH": path, "BENCH": "words_bench",
                                                        "GITHUB_BASE_REF": "main", "GITHUB_STEP_SUMMARY": str(summary)})
        if "Could not find a package configuration file provided by \"benchmark\"" in done.stderr:
            raise unittest.SkipTest("Google Benchmark is not installed")
        return done, summary

    def test_a_slower_commit_fails_with_annotations_and_files(self):
        self.commit("after")
        done, summary = self.measure()
        self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
        self.assertIn("::error", done.stdout)
        self.assertIn("SLOWER", summary.read_text())
        self.assertIn("<failure", (self.repo / "gate.xml").read_text())

    def test_an_unchanged_program_passes(self):
        (self.repo / "notes").write_text("words")
        self.git("add", ".")
        self.git("commit", "-q", "-m", "notes")
        done, _ = self.measure()
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)


programs.main()
