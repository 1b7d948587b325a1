# SPDX-License-Identifier: Apache-2.0
# labels: process quick
"""scripts/tidy and scripts/ci-gate compare with main, and fail if there is none."""
import os
import pathlib
import shutil
import subprocess

import programs

SCRIPTS = pathlib.Path(os.environ["HOWMANY_SOURCE"]) / "scripts"


class ChangeBase(programs.TestCase):
    """A clone with a branch that has left main."""

    def setUp(self):
        super().setUp()
        self.repo = self.folder / "repo"
        (self.repo / "scripts").mkdir(parents=True)
        for name in ("common.sh", "tidy", "ci-gate"):
            shutil.copy(SCRIPTS / name, self.repo / "scripts")
        self.git("init", "-q", "-b", "main")
        self.git("add", ".")
        self.commit("first")
        self.main = self.git("rev-parse", "HEAD")
        self.git("checkout", "-q", "--detach")

    def git(self, *words):
        return subprocess.run(["git", "-C", self.repo, "-c", "user.name=x", "-c", "user.email=x@y", *words], check=True,
                              capture_output=True, text=True).stdout.strip()

    def commit(self, subject):
        self.git("commit", "-q", "--allow-empty", "-m", subject)

    def script(self, name):
        return subprocess.run([self.repo / "scripts" / name], capture_output=True, text=True, check=False)

    def test_nothing_to_compare_with_is_a_failure(self):
        self.commit("change")
        self.git("branch", "-D", "main")
        for name, code in (("tidy", 1), ("ci-gate", 2)):
            done = self.script(name)
            self.assertEqual(done.returncode, code, done.stderr)
            self.assertIn("main", done.stderr)

    def test_origin_stands_in_for_main(self):
        self.git("update-ref", "refs/remotes/origin/main", self.main)
        self.git("branch", "-D", "main")
        for name in ("tidy", "ci-gate"):
            done = self.script(name)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn("nothing to", done.stdout)

    def test_the_history_must_reach_main(self):
        self.git("checkout", "-q", "--orphan", "other")
        self.commit("other")
        done = self.script("tidy")
        self.assertEqual(done.returncode, 1)
        self.assertIn("no common commit", done.stderr)


if __name__ == "__main__":
    programs.main()
