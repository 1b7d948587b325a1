# SPDX-License-Identifier: Apache-2.0
# labels: process
# timeout: 400
"""Runs the steps of the CI examples and of action.yml, in a repository with a slower commit on a branch."""
import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

import packed
import programs
import workflow

EXAMPLES = pathlib.Path(os.environ["HOWMANY_SOURCE"]) / "examples"
ACTION = workflow.steps(workflow.read(packed.ROOT / "action.yml")["runs"])


class Example(programs.TestCase):
    """`self.repo` has the example of examples/gate in main, and a branch."""

    def git(self, *words):
        return packed.checked("git", "-C", self.repo, "-c", "user.name=x", "-c", "user.email=x@y", *words)

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

    def commit_notes(self):
        (self.repo / "notes").write_text("words")
        self.git("add", ".")
        self.git("commit", "-q", "-m", "notes")

    def skip_without_benchmark(self, done):
        if "Could not find a package configuration file provided by \"benchmark\"" in done.stderr:
            raise unittest.SkipTest("Google Benchmark is not installed")
        return done


class GitHub(Example):
    def measure(self):
        step = workflow.steps(workflow.read(EXAMPLES / "ci/howmany.yml")["jobs"]["gate"])["Measure"]
        self.summary = self.folder / "summary.md"
        return self.skip_without_benchmark(workflow.run_step(
            step, self.repo, {}, PATH=f"{programs.BIN.resolve()}:{os.environ['PATH']}", BENCH="words_bench",
            GITHUB_BASE_REF="main", GITHUB_STEP_SUMMARY=str(self.summary)))

    def test_a_slower_commit_fails_with_annotations_and_files(self):
        self.commit("after")
        done = self.measure()
        self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
        self.assertIn("::error", done.stdout)
        self.assertIn("SLOWER", self.summary.read_text())
        self.assertIn("<failure", (self.repo / "gate.xml").read_text())

    def test_an_unchanged_program_passes(self):
        self.commit_notes()
        done = self.measure()
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)


class GitLab(Example):
    def measure(self):
        stub = self.folder / "bin/apt-get"
        stub.parent.mkdir()
        stub.write_text("#!/bin/sh\n")
        stub.chmod(0o755)
        job = workflow.read(EXAMPLES / "ci/gitlab.yml")["howmany"]
        self.reports = job["artifacts"]["reports"]
        return self.skip_without_benchmark(workflow.run_gitlab(
            job, self.repo, HOWMANY=str(packed.thin_wheel(self.folder)), PIP_NO_INDEX="1",
            PATH=f"{stub.parent}:/usr/bin:/bin", CI_MERGE_REQUEST_DIFF_BASE_SHA=self.git("rev-parse", "main").strip()))

    def test_a_slower_commit_fails_with_a_report(self):
        self.commit("after")
        done = self.measure()
        self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
        self.assertIn("<failure", (self.repo / self.reports["junit"]).read_text())

    def test_an_unchanged_program_passes(self):
        self.commit_notes()
        done = self.measure()
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)


class Action(programs.TestCase):
    @classmethod
    def setUpClass(cls):
        keeper = tempfile.TemporaryDirectory(prefix="hm_test_")
        cls.addClassCleanup(keeper.cleanup)
        cls.built = pathlib.Path(keeper.name)
        for version in ("before", "after"):
            source, build = cls.built / f"{version}-source", cls.built / version
            shutil.copytree(EXAMPLES / "gate", source)
            shutil.copy(EXAMPLES / f"gate/words_{version}.cpp", source / "words_before.cpp")
            done = subprocess.run(["cmake", "-S", source, "-B", build, "-DCMAKE_BUILD_TYPE=Release"],
                                  capture_output=True, text=True, check=False)
            if "provided by \"benchmark\"" in done.stderr:
                raise unittest.SkipTest("Google Benchmark is not installed")
            packed.checked("cmake", "--build", build, "--target", "words_bench")

    def setUp(self):
        super().setUp()
        self.inputs = {name: str(given.get("default", "")) for name, given in
                       workflow.read(packed.ROOT / "action.yml")["inputs"].items()}
        self.inputs |= {"base": f"{self.built}/before/words_bench", "candidate": f"{self.built}/after/words_bench",
                        "wheel": str(packed.thin_wheel(self.folder))}

    def step(self, name, **environment):
        values = {f"inputs.{input}": value for input, value in self.inputs.items()}
        values |= {"github.token": "token", "github.action_repository": "someone/howmany", "github.action_ref": "v1"}
        return workflow.run_step(ACTION[name], self.folder, values, RUNNER_TEMP=str(self.folder), PIP_NO_INDEX="1",
                                 GITHUB_STEP_SUMMARY=str(self.folder / "summary.md"), **environment)

    def gate(self):
        installed = self.step("install")
        self.assertEqual(installed.returncode, 0, installed.stderr)
        return self.step("gate")

    def test_a_slower_candidate_fails_with_annotations_and_files(self):
        done = self.gate()
        self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
        self.assertIn("::error", done.stdout)
        self.assertIn("SLOWER", (self.folder / "summary.md").read_text())
        self.assertIn("<failure", (self.folder / "gate/gate.xml").read_text())
        self.assertTrue((self.folder / "gate/gate.sarif").is_file())

    def test_equal_programs_pass(self):
        self.inputs["candidate"] = self.inputs["base"]
        done = self.gate()
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_inputs_are_never_commands_or_options(self):
        self.inputs |= {"candidate": "--help", "out": "$(touch injected)", "budget": "1; touch injected"}
        done = self.gate()
        self.assertEqual(done.returncode, 2, done.stdout + done.stderr)
        self.assertFalse((self.folder / "injected").exists())

    def test_the_wheel_of_the_actions_release_is_checked(self):
        self.inputs["wheel"] = ""
        wheel = packed.thin_wheel(self.folder)
        gh = self.folder / "bin/gh"
        gh.parent.mkdir()
        gh.write_text(f"""#!/bin/sh
[ "$1 $2 $3" = "release download v1" ] && mkdir -p howmany-wheel && cd howmany-wheel
cp {wheel} howmany-{packed.VERSION}-py3-none-any.whl && sha256sum *.whl > SHA256SUMS
[ ! -e ../bad ] || echo >> "$(echo *.whl)"
""")
        gh.chmod(0o755)
        path = f"{gh.parent}:{os.environ['PATH']}"
        self.assertEqual(self.step("install", PATH=path).returncode, 0)
        (self.folder / "bad").write_text("")
        self.assertNotEqual(self.step("install", PATH=path).returncode, 0)


if __name__ == "__main__":
    programs.main()
