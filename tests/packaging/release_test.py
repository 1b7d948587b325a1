# SPDX-License-Identifier: Apache-2.0
# labels: process cpu_only
# timeout: 900
"""Rehearses the release: runs the steps of .github/workflows/release.yml on a copy of this tree, with archives of
this build in place of those of scripts/bundle. The nightly run also checks a real wheel."""
import hashlib
import os
import re
import shlex
import subprocess
import tarfile
import unittest

import packed
import portable
import programs
import workflow

FILE = packed.ROOT / ".github/workflows/release.yml"
RELEASE = workflow.read(FILE)
PORTABLE = RELEASE["env"]["PLATFORM"]


class Release(programs.TestCase):
    def setUp(self):
        super().setUp()
        self.tree = self.folder / "tree"
        packed.repository(self.tree)
        (self.folder / "bin").mkdir()

    def stub(self, path, text):
        path.write_text(f"#!/usr/bin/env bash\nset -e\n{text}\n")
        path.chmod(0o755)

    def run_step(self, job, name, folder=None, platform=PORTABLE, code=0):
        done = workflow.run_step(
            workflow.steps(RELEASE["jobs"][job])[name], folder or self.tree, {"github.token": "token"},
            PLATFORM=platform, GITHUB_REF_NAME=f"v{packed.VERSION}", GITHUB_REPOSITORY="someone/howmany",
            GITHUB_SERVER_URL="https://host.invalid", PATH=f"{self.folder / 'bin'}:{os.environ['PATH']}")
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done

    def bundle(self, wheel, platform):
        """Replaces scripts/bundle: `wheel` is the wheel that it makes."""
        packed.release(self.folder / "packed")
        self.stub(self.tree / "scripts/bundle", f"""
case $* in
  "--wheel") mkdir -p dist
    cp {shlex.quote(str(wheel))} dist/howmany-{packed.VERSION}-py3-none-{platform}.whl ;;
  "") mkdir -p build; cp {self.folder}/packed/{packed.PROGRAMS} build/ ;;
  *) exit 2 ;;
esac""")
        for step in ("notes", "wheel", "archive", "collect"):
            self.run_step("build", step, platform=platform)
        return self.tree / "release"

    def test_a_release_has_wheel_archives_recipes_and_checksums(self):
        wheel = packed.thin_wheel(self.folder)
        release = self.bundle(wheel, PORTABLE)
        name = f"howmany-{packed.VERSION}"
        files = {f"{name}-py3-none-{PORTABLE}.whl", packed.PROGRAMS, packed.SOURCE, f"{name}-recipes.tar.gz"}
        self.assertEqual(set(os.listdir(release)), files | {"SHA256SUMS"})
        sums = dict(reversed(line.split("  ")) for line in (release / "SHA256SUMS").read_text().splitlines())
        self.assertEqual(sums, {file: hashlib.sha256((release / file).read_bytes()).hexdigest() for file in files})
        with tarfile.open(release / f"{name}-recipes.tar.gz") as archive:
            recipes = {path: archive.extractfile(path).read().decode() for path in archive.getnames()
                       if archive.getmember(path).isfile()}
        for path, text in recipes.items():
            self.assertNotIn("OWNER", text, path)
            self.assertNotIn("0" * 64, text, path)
        self.assertIn(sums[packed.PROGRAMS], recipes[f"{name}-recipes/easybuild/{name}.eb"])
        self.assertIn(sums[packed.SOURCE], recipes[f"{name}-recipes/easybuild/{name}-source.eb"])
        with tarfile.open(release / packed.SOURCE) as archive:
            self.assertIn(f"{name}/CMakeLists.txt", archive.getnames())

    def test_the_release_of_the_tag_gets_the_notes_and_all_files(self):
        (self.folder / "artifact/release").mkdir(parents=True)
        for file in ("notes.md", "release/a.whl", "release/SHA256SUMS"):
            (self.folder / "artifact" / file).write_text("")
        self.stub(self.folder / "bin/gh", f'printf "%s\\n" "$@" > {self.folder}/arguments')
        self.run_step("attach", "attach", folder=self.folder / "artifact")
        words = (self.folder / "arguments").read_text().splitlines()
        self.assertEqual(words[:3], ["release", "create", f"v{packed.VERSION}"])
        self.assertEqual(words[-2:], ["release/SHA256SUMS", "release/a.whl"])
        self.assertEqual(words[words.index("--notes-file") + 1], "notes.md")
        self.assertIn("--verify-tag", words)
        self.run_step("publish", "wheel", folder=self.folder / "artifact")
        self.assertEqual(os.listdir(self.folder / "artifact/dist"), ["a.whl"])

    def test_a_tag_without_notes_makes_no_release(self):
        notes = self.tree / "CHANGELOG.md"
        notes.write_text(notes.read_text().replace(f"## [{packed.VERSION}]", "## [9.9.9]"))
        self.run_step("build", "notes", code=2)

    @programs.nightly
    def test_the_wheel_passes_the_checks_under_its_own_tag_only(self):
        wheel = packed.checked(packed.ROOT / "scripts/wheel", portable.build(), self.folder)
        wheel = wheel.splitlines()[-1]
        platform = re.search(r"py3-none-(\w+)\.whl", wheel)[1]
        self.bundle(wheel, platform)
        self.run_step("build", "check", platform=platform)
        for folder in ("tools", "fresh", "unpacked"):
            subprocess.run(["rm", "-rf", self.tree / folder], check=True)
        self.run_step("build", "check", platform="manylinux_2_17_x86_64", code=2)


class Permissions(unittest.TestCase):
    def test_publishing_waits_for_the_owner_and_for_the_release(self):
        publish = RELEASE["jobs"]["publish"]
        self.assertEqual(publish["if"], "vars.PUBLISH_TO_PYPI == 'true'")
        self.assertEqual((publish["needs"], RELEASE["jobs"]["attach"]["needs"]), ("attach", "build"))

    def test_each_job_has_the_least_permissions(self):
        self.assertEqual(RELEASE["permissions"], {})
        self.assertEqual({name: job["permissions"] for name, job in RELEASE["jobs"].items()},
                         {"build": {"contents": "read"}, "attach": {"contents": "write"},
                          "publish": {"id-token": "write"}})
        for path in (".github/workflows/ci.yml", "examples/ci/howmany.yml"):
            self.assertEqual(workflow.read(packed.ROOT / path)["permissions"], {"contents": "read"}, path)

    def test_no_value_is_pasted_into_commands(self):
        files = [*(packed.ROOT / ".github/workflows").glob("*.yml"), packed.ROOT / "examples/ci/howmany.yml",
                 packed.ROOT / "action.yml"]
        for path in files:
            jobs = workflow.read(path)
            for job in jobs.get("jobs", {"action": jobs.get("runs")}).values():
                for step in job["steps"]:
                    self.assertNotIn("${{", step.get("run", ""), path)

    def test_the_documents_name_the_wheel_of_the_release(self):
        wheel = f"howmany-{packed.VERSION}-py3-none-{PORTABLE}.whl"
        for path in ("docs/ADMINS.md", "examples/ci/howmany.yml", "examples/ci/gitlab.yml"):
            self.assertIn(wheel, (packed.ROOT / path).read_text(), path)


if __name__ == "__main__":
    programs.main()
