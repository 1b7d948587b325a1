# SPDX-License-Identifier: Apache-2.0
# timeout: 120
"""Tests the commands in documents: every option exists, and recorded results render."""
import os
import pathlib
import re
import shutil
import subprocess
import sys

import programs

ROOT = pathlib.Path(os.environ["HOWMANY_SOURCE"])
DOCUMENTS = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md")),
             *sorted((ROOT / "examples").rglob("*.md")), *sorted((ROOT / "examples/slurm").glob("*.sh"))]
COMMAND = re.compile(r"(?:howmany|scripts/run) (gpus|workers|backend|transfer|compare|gate|history|devices|train|report|"
                     r"selftest)\b((?:[^`|\n\\]|\\\n)*)")


class Documents(programs.TestCase):
    def test_options_of_commands_exist(self):
        known, found = {}, 0
        for path in DOCUMENTS:
            for command, words in COMMAND.findall(path.read_text()):
                if command not in known:
                    known[command] = set(re.findall(r"--[a-z][a-z-]*", programs.run("howmany", command, "--help").out))
                words = words.split(" -- ")[0]  # the rest is a command of the user
                for option in re.findall(r"(?<![\w-])--[a-z][a-z-]*", words):
                    found += 1
                    self.assertIn(option, known[command], f"{path.name}: howmany {command}{words}")
        self.assertGreater(found, 40)

    def test_recorded_results_render(self):
        scripts = self.folder / "root/scripts"
        scripts.mkdir(parents=True)
        shutil.copy(ROOT / "scripts/update-docs", scripts)
        shutil.copy(ROOT / "README.md", scripts.parent)
        for folder in ("docs", "examples"):
            shutil.copytree(ROOT / folder, scripts.parent / folder)
        done = subprocess.run([sys.executable, scripts / "update-docs", "--check", "--bin", programs.BIN.resolve()],
                              capture_output=True, text=True)
        self.assertIn(done.returncode, (0, 1), done.stderr)
        self.assertEqual(done.stderr, "")

    def test_the_sample_report_is_one_page_that_loads_nothing(self):
        page = (ROOT / "examples/report/report.html").read_text()
        self.assertIn("How many devices", page)
        self.assertNotRegex(page, r"<script|<link|src=|@import|url\(")


programs.main()
