# SPDX-License-Identifier: Apache-2.0
# labels: process nightly
# timeout: 1200
"""Tests that the installed folder is complete: it runs from another place and needs only the C
library of the system."""

import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

import only_python
import portable
import programs



class Bundle(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.temporary = tempfile.TemporaryDirectory()
        first = pathlib.Path(cls.temporary.name) / "packed"
        subprocess.run(["cmake", "--install", portable.build(), "--prefix", first], check=True,
                       capture_output=True)
        cls.folder = pathlib.Path(cls.temporary.name) / "a place" / "elsewhere"
        cls.folder.parent.mkdir()
        shutil.move(first, cls.folder)

    @classmethod
    def tearDownClass(cls):
        cls.temporary.cleanup()

    def run_program(self, name, *arguments, timeout=1100):
        environment = {"PATH": "/usr/bin:/bin", "HOME": self.temporary.name}
        return subprocess.run([self.folder / "bin" / name, *arguments], capture_output=True,
                              text=True, timeout=timeout, env=environment, check=False,
                              cwd=self.temporary.name)

    def test_every_library_but_the_c_librarys_comes_along(self):
        programs_here = [p for p in self.folder.glob("bin/*") if p.suffix not in (".py", ".zip")] + [
            p for p in self.folder.glob("libexec/howmany/*")]
        self.assertGreater(len(programs_here), 8)
        for program in programs_here:
            self.assertEqual(only_python.libraries_outside(self.folder, program), {}, program.name)

    def test_the_programs_start(self):
        for name, argument in (("howmany", "--version"), ("howmany-train", "--help"),
                               ("howmany-devices", "--json"), ("speedup_bench", "--help")):
            done = self.run_program(name, argument)
            self.assertEqual(done.returncode, 0, done.stderr)

    def test_the_rows_of_torch_come_along(self):
        cases = {}
        for name, backend in (("backend_bench", "local"), ("torch_collectives.py", "torch:gloo")):
            done = self.run_program(name, "--backend", backend, "--oversubscribe", "--list", "--ops", "all_reduce",
                                    "--devices", "cpu:0,cpu:1")
            self.assertEqual(done.returncode, 0, done.stderr)
            cases[backend] = {line.replace(backend, "X") for line in done.stdout.split() if "all_reduce" in line}
        self.assertEqual(cases["torch:gloo"], cases["local"])

    def test_it_has_module_files(self):
        names = sorted(path.name for path in (self.folder / "share/modulefiles/howmany").iterdir())
        self.assertEqual([names[0], f"{names[0]}.lua"], names)

    def test_it_finds_its_tests_and_passes_them(self):
        done = self.run_program("howmany", "selftest")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertRegex(done.stdout, r"^All is well: \d{2,} tests passed here")
        self.assertIn("not exercised: GPUs" if not os.path.exists("/dev/nvidia0") else "", done.stdout)

    def test_without_its_tests_it_says_so(self):
        tests = self.folder / "libexec"
        hidden = tests.rename(self.folder / "hidden")
        try:
            done = self.run_program("howmany", "selftest", "--quiet")
        finally:
            hidden.rename(tests)
        self.assertEqual(done.returncode, 3)
        self.assertIn("built or packed without its tests", done.stdout)


if __name__ == "__main__":
    programs.main()
