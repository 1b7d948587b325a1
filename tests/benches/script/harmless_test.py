# SPDX-License-Identifier: Apache-2.0
# labels: process torch
# timeout: 1500
"""A script has the same results, recompilations, messages and exit code with the hook as without it."""

import os
import pathlib
import re
import subprocess

import programs
from torch_scripts import PYTHON, SCRIPTS, needs_torch

SCRIPT = SCRIPTS / "harmless.py"


@needs_torch
class Harmless(programs.TestCase):
    def start(self, case, **environment):
        return subprocess.Popen([PYTHON, SCRIPT, case], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                cwd=self.folder, env=os.environ | environment)

    def compare(self, *cases, steps=12):
        """`steps`: recorded; 0: the record cannot be written."""
        for case in cases:
            with self.subTest(case):
                out = self.folder / case
                out.mkdir()
                both = [self.start(case),
                        self.start(case, HOWMANY_SCRIPT_OUT=str(out), HOWMANY_SCRIPT_SECONDS="600",
                                   PYTHONPATH=str(programs.BIN / "howmany_hook.zip"))]
                (results, errors), (hooked, messages) = [one.communicate(timeout=400) for one in both]
                self.assertEqual(hooked, results, messages)
                self.assertEqual(both[1].returncode, both[0].returncode)
                self.assertNotIn("global hooks", messages)
                self.assertNotIn("howmany_hook", messages)
                records = [path.read_text() for path in pathlib.Path(out).glob("rank*")] if steps else []
                self.assertEqual([record.count('"kind": "step"') for record in records], [steps] if steps else [])
                print(case, *(re.findall(r"[0-9.]+ ms", text)[-1:] for text in (errors, messages)))

    def test_models_are_saved_copied_and_translated(self):
        self.compare("saved", "bytes_of_the_model", "copied", "scripted", "exported", "symbolic")

    def test_torch_compile_makes_no_graph_again(self):
        self.compare("compiled_model", "compiled_in_place", "compiled_step", "compiled_step_with_a_loader",
                     "compiled_and_validated")

    def test_gradients_within_gradients(self):
        self.compare("nested_backward", "vmapped", "penalized")

    def test_functions_of_torch_stay_what_they_are(self):
        self.compare("functions")

    def test_a_record_that_cannot_be_written_ends_only_the_measurement(self):
        self.compare("folder_removed", "folder_unwritable", "disk_full", steps=0)

    def test_the_exit_code_is_the_scripts(self):
        self.compare("exit_code")


if __name__ == "__main__":
    programs.main()
